package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// unquotedCron finds the value of schedule or cron where YAML reads its beginning as an alias, an anchor, a
// tag, a list, a mapping or a reserved character, and where only a part of it is in quotes.
var unquotedCron = regexp.MustCompile(`(?:^|[\s{,\[])["']?(schedule|cron)["']?:[ \t]+` +
	"([*@%&!`?\\[{].*|" + `(?:"[^"]*"|'[^']*')[ \t]+[-\d*/?A-Z].*)`)

// anchorName is how people name anchors: an alias to one is no cron expression.
var anchorName = regexp.MustCompile(`^[*&][A-Za-z][-\w]*[\s,}\]]*$`)

// cronRest matches what a comma leaves of an expression within braces, where it begins the next key.
var cronRest = regexp.MustCompile(`^[-\d*/A-Z]+( [-\d*/?#A-Z,]+)+$`)

// longestCronLine bounds the lines that are looked at: what is longer was not written by hand.
const longestCronLine = 4 << 10

// brokenCron is why a line with a schedule cannot be read: its expression needs quotes, and begins where it
// says. It is nil for what cannot be read elsewhere. Line and column are those at which the parser gave up.
func brokenCron(text string, line, col int) (atLine, atCol int, err error) {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return 0, 0, nil
	}
	if at, err := cronInLine(lines[line-1], col); err != nil {
		return line, at, err
	}
	// What a bracket has opened is missed only after the end of its line.
	for line--; line >= 1 && strings.TrimSpace(lines[line-1]) == ""; line-- {
	}
	if line < 1 || len(lines[line-1]) > longestCronLine {
		return 0, 0, nil
	}
	m := unquotedCron.FindStringSubmatch(lines[line-1])
	if m == nil || !strings.ContainsAny(m[2][:1], "[{") || strings.ContainsAny(m[2], "]}") {
		return 0, 0, nil
	}
	at, err := cronInLine(lines[line-1], len(lines[line-1]))
	return line, at, err
}

// cronInLine returns the last expression that begins up to a column, else the first.
func cronInLine(line string, col int) (at int, err error) {
	if len(line) > longestCronLine {
		return 0, nil
	}
	var key, value string
	for offset := 0; ; {
		m := unquotedCron.FindStringSubmatchIndex(line[offset:])
		if m == nil {
			break
		}
		k, begin := line[offset+m[2]:offset+m[3]], offset+m[4]
		column := utf8.RuneCountInString(line[:begin]) + 1
		if key != "" && column > col {
			break
		}
		if v := cronValue(line[:begin], line[begin:]); !anchorName.MatchString(v) {
			key, value, at = k, v, column
		}
		offset = begin
	}
	if key == "" {
		return 0, nil
	}
	written := strings.NewReplacer(`"`, "", "'", "").Replace(value)
	return at, fmt.Errorf("%s is no text to YAML as it stands (put the whole expression in quotes: %s: %s)", quote(value), key, quote(written))
}

// cronValue cuts what follows an expression: a comment, or within braces the next key.
func cronValue(before, value string) string {
	if i := strings.Index(value, " #"); i >= 0 {
		value = value[:i]
	}
	if strings.Count(before, "{") > strings.Count(before, "}") {
		own := strings.IndexAny(value, "]}") + 1 // past the bracket that it begins with
		if !strings.ContainsAny(value[:1], "[{") {
			own = 0
		}
		for _, end := range []string{", ", "}"} {
			if i := strings.Index(value[own:], end); i >= 0 {
				value = value[:own+i]
			}
		}
	}
	return strings.TrimSpace(value)
}
