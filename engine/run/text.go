package run

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine makes what an app says fit to be stored, logged and shown: valid UTF-8 on one line, without
// control and direction characters, cut between two characters to at most so many bytes.
func OneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = strings.TrimSpace(text[:cut])
	}
	return text
}
