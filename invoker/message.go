package invoker

import (
	"strings"
	"unicode/utf8"

	"github.com/leasecron/leasecron/engine/run"
)

// maxMessage is the most that is kept of what an app says, in bytes.
const maxMessage = 1 << 10

// message makes text fit to be stored, logged and shown: valid UTF-8 on one line, without
// control and direction characters, at most 1 KiB, and without the token that an app may echo.
func message(raw []byte, token string) string {
	raw = raw[:min(len(raw), maxMessage)]
	// A character that the limit cut in two is dropped, not replaced.
	for i := len(raw) - 1; i >= 0 && i >= len(raw)-utf8.UTFMax; i-- {
		if utf8.RuneStart(raw[i]) {
			if !utf8.FullRune(raw[i:]) {
				raw = raw[:i]
			}
			break
		}
	}
	text := string(raw)
	if token != "" {
		text = strings.ReplaceAll(text, token, "[token]")
	}
	return run.OneLine(text, maxMessage)
}

// clip cuts valid UTF-8 to 1 KiB between two characters.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
