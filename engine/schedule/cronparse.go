package schedule

import (
	"fmt"
	"strings"
)

// maxCronText bounds a cron expression, in bytes.
const maxCronText = 256

// macros are the names that stand for a whole expression.
var macros = map[string]string{
	"@yearly":   "0 0 0 1 1 *",
	"@annually": "0 0 0 1 1 *",
	"@monthly":  "0 0 0 1 * *",
	"@weekly":   "0 0 0 * * 0",
	"@daily":    "0 0 0 * * *",
	"@midnight": "0 0 0 * * *",
	"@hourly":   "0 0 * * * *",
}

// parseCron checks an expression of 5, 6 or 7 fields, or a macro.
func parseCron(text string) (*cronText, error) {
	if len(text) > maxCronText {
		return nil, fmt.Errorf("cron expression has %d characters, the limit is %d", len(text), maxCronText)
	}
	words := splitWords(text)
	if len(words) == 1 && strings.HasPrefix(words[0], "@") {
		expansion, ok := macros[words[0]]
		if !ok {
			return nil, macroError(words[0])
		}
		words = splitWords(expansion)
	}
	for _, word := range words {
		if err := rejectForeign(word); err != nil {
			return nil, err
		}
	}
	c := &cronText{years: cronField{form: formAny}}
	switch len(words) {
	case 0:
		return nil, fmt.Errorf("cron expression is empty, want 5, 6 or 7 fields")
	case 5:
		words = append([]string{"0"}, words...)
	case 6, 7:
	default:
		return nil, fmt.Errorf("cron expression has %s, want 5 (minute hour dom month dow), 6 (second first) or 7 (year last)",
			plural(len(words), "field"))
	}
	for i, word := range words {
		f, err := parseField(fieldKind(i), word)
		if err != nil {
			return nil, fmt.Errorf("%s field: %w", fieldSpecs[i].name, err)
		}
		if fieldKind(i) == fieldYear {
			c.years = f
		} else {
			c.fields[i] = f
		}
	}
	return c, nil
}

// rejectForeign refuses what other programs allow inside an expression.
func rejectForeign(word string) error {
	switch {
	case strings.HasPrefix(word, "TZ="), strings.HasPrefix(word, "CRON_TZ="):
		_, name, _ := strings.Cut(word, "=")
		return fmt.Errorf("%s is not part of a cron expression: write timeZone: %s beside it, or tz=%s after it",
			clip(word), clip(name), clip(name))
	case word == "@every":
		return macroError(word)
	case strings.HasPrefix(word, "@"):
		return fmt.Errorf("%s must stand alone, it replaces the whole expression", clip(word))
	}
	return nil
}

func macroError(word string) error {
	if word == "@every" {
		return fmt.Errorf("@every is not a cron expression: write \"every 10m\" (from the end of one run to the next) or \"rate 10m\" (on a fixed grid)")
	}
	return fmt.Errorf("%s is unknown, want @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually", clip(word))
}

func parseField(kind fieldKind, text string) (cronField, error) {
	spec := &fieldSpecs[kind]
	for i := range len(text) {
		if text[i] >= 0x80 || text[i] < 0x20 {
			return cronField{}, fmt.Errorf("%s has a character that is not plain ASCII", clip(text))
		}
	}
	upper := strings.ToUpper(text)
	switch upper {
	case "*":
		return cronField{form: formAny}, nil
	case "?":
		if kind != fieldDOM && kind != fieldDOW {
			return cronField{}, fmt.Errorf("? is for the dom and dow fields only, write *")
		}
		return cronField{form: formAny}, nil
	case "H":
		if kind == fieldYear {
			return cronField{}, fmt.Errorf("%s has no meaning here, write a year or *", text)
		}
		return cronField{form: formHash}, nil
	}
	f, special, err := parseForm(kind, upper, text)
	if err != nil || special {
		return f, err
	}
	for item := range strings.SplitSeq(text, ",") {
		if value, _, _ := strings.Cut(item, "/"); value == "?" || strings.EqualFold(value, "H") {
			return cronField{}, fmt.Errorf("%s is malformed, %s stands alone in its field", clip(text), value)
		}
		it, err := parseItem(spec, item)
		if err != nil {
			return cronField{}, err
		}
		f.items = append(f.items, it)
	}
	return f, nil
}

// parseForm reads the forms that stand alone in a day field. special is false when the text
// is an ordinary list.
func parseForm(kind fieldKind, upper, text string) (f cronField, special bool, err error) {
	switch kind {
	case fieldDOM:
		return parseDateForm(upper, text)
	case fieldDOW:
		return parseWeekdayForm(upper, text)
	default:
		return f, false, nil
	}
}

// parseDateForm reads L, L-n, LW and nW.
func parseDateForm(upper, text string) (f cronField, special bool, err error) {
	before, fromLast := strings.CutPrefix(upper, "L-")
	near, nearest := strings.CutSuffix(upper, "W")
	switch {
	case upper == "L":
		return cronField{form: formLast}, true, nil
	case upper == "LW":
		return cronField{form: formLastWork}, true, nil
	case fromLast && isDigits(before):
		n, err := number(before, 0, 30)
		return cronField{form: formLast, n: n}, true, err
	case nearest && isDigits(near):
		n, err := number(near, 1, 31)
		return cronField{form: formWeekday, n: n}, true, err
	case strings.ContainsAny(upper, "LW") && strings.Trim(upper, "0123456789LW-,/*") == "":
		return f, true, fmt.Errorf("%s is malformed, want L, L-n, nW or LW alone in the field", clip(text))
	}
	return f, false, nil
}

// parseWeekdayForm reads nL and n#k, with a number or a name for n.
func parseWeekdayForm(upper, text string) (f cronField, special bool, err error) {
	spec := &fieldSpecs[fieldDOW]
	day, nth, hash := strings.Cut(upper, "#")
	lastDay, last := strings.CutSuffix(upper, "L")
	switch {
	case hash:
		n, err := spec.value(day)
		if err != nil {
			return f, true, fmt.Errorf("%s is malformed, want one weekday before #, as in FRI#2", clip(text))
		}
		if !isDigits(nth) {
			return f, true, fmt.Errorf("%s is malformed, want a number from 1 to 5 after #, as in FRI#2", clip(text))
		}
		k, err := number(nth, 1, 5)
		if err != nil {
			return f, true, fmt.Errorf("# %w", err)
		}
		return cronField{form: formNthDOW, n: n % 7, k: k}, true, nil
	case upper == "L":
		return f, true, fmt.Errorf("%s needs a weekday before it, as in FRIL", text)
	case strings.Contains(upper, ",") && strings.Contains(upper, "L"):
		return f, true, fmt.Errorf("%s is malformed, want nL or n#k alone in the field", clip(text))
	case last:
		n, err := spec.value(lastDay)
		if err != nil {
			return f, true, fmt.Errorf("%s is malformed, want one weekday before L, as in FRIL", clip(text))
		}
		return cronField{form: formLastDOW, n: n % 7}, true, nil
	}
	return f, false, nil
}

// parseItem reads *, a value, a range, or one of them with a step.
func parseItem(spec *fieldSpec, text string) (it cronItem, err error) {
	if text == "" {
		return it, fmt.Errorf("empty item in the list")
	}
	base, step, stepped := strings.Cut(text, "/")
	lo, hi, ranged := strings.Cut(base, "-")
	switch {
	case base == "":
		return it, fmt.Errorf("%s is malformed, want a value or * before the step", clip(text))
	case base == "*":
		it = cronItem{lo: spec.min, hi: spec.max, step: 1, star: true}
		if spec == &fieldSpecs[fieldDOW] {
			it.hi = 6 // 7 is 0 once more
		}
	case ranged:
		if lo == "" || hi == "" || strings.Contains(hi, "-") {
			return it, fmt.Errorf("%s is malformed, want a range like %d-%d", clip(text), spec.min, spec.max)
		}
		it = cronItem{step: 1, ranged: true}
		if it.lo, err = spec.value(lo); err != nil {
			return it, err
		}
		if it.hi, err = spec.value(hi); err != nil {
			return it, err
		}
		if it.lo > it.hi {
			return it, reversedError(spec, base, lo, hi)
		}
	default:
		if it.lo, err = spec.value(base); err != nil {
			return it, err
		}
		it.hi = it.lo
		if stepped {
			it.hi = spec.max
		}
	}
	if !stepped {
		return it, nil
	}
	if !isDigits(step) {
		return it, fmt.Errorf("%s is malformed, want a number after the slash", clip(text))
	}
	it.step, err = number(step, 1, spec.max-spec.min+1)
	if err != nil {
		return it, fmt.Errorf("step %w", err)
	}
	return it, nil
}

// reversedError says how to write a range that crosses the end of its field.
func reversedError(spec *fieldSpec, text, lo, hi string) error {
	switch spec {
	case &fieldSpecs[fieldYear]:
		return fmt.Errorf("range %s is reversed", clip(text))
	case &fieldSpecs[fieldDOW]:
		if n, err := spec.value(hi); err == nil && n == sunday {
			return fmt.Errorf("range %s is reversed, write %s-7", clip(text), lo)
		}
		return fmt.Errorf("range %s is reversed, write %s-7,1-%s", clip(text), lo, hi)
	default:
		return fmt.Errorf("range %s is reversed, write %s-%d,%d-%s", clip(text), lo, spec.max, spec.min, hi)
	}
}

// value reads a number or a name of the field.
func (spec *fieldSpec) value(text string) (int, error) {
	if isDigits(text) {
		return number(text, spec.min, spec.max)
	}
	for i, name := range spec.names {
		if strings.EqualFold(name, text) {
			return spec.min + i, nil
		}
	}
	if len(spec.names) > 0 {
		return 0, fmt.Errorf("%s is neither a number nor a name such as %s", clip(text), spec.names[0])
	}
	return 0, fmt.Errorf("%s is not a number", clip(text))
}

// number reads digits that have been checked, without wrapping around.
func number(digits string, lo, hi int) (int, error) {
	n := 0
	for i := range len(digits) {
		n = min(n*10+int(digits[i]-'0'), 1<<20)
	}
	if n < lo || n > hi {
		return 0, fmt.Errorf("%s is out of range %d-%d", clip(digits), lo, hi)
	}
	return n, nil
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// splitWords splits at spaces and tabs; other white space is not a separator.
func splitWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
}

// clip quotes a piece of input for an error, shortened.
func clip(text string) string {
	const most = 40
	if text == "" {
		return `""`
	}
	if len(text) > most {
		return fmt.Sprintf("%.*q…", most, text)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return fmt.Sprintf("%q", text)
		}
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
