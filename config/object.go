package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder walks the nodes of one document and collects what is wrong with their meaning.
type decoder struct {
	file     string
	opts     Options
	problems []*FieldError
	warnings []Warning
}

// place is where a value stands: in the file, in the structure, in which job.
type place struct {
	line, col int
	path      string
	job       string
}

// plainKey matches the keys that a path can show as they are.
var plainKey = regexp.MustCompile(`^[-\w]{1,64}$`)

func (p place) child(m member) place {
	path := m.key
	if !plainKey.MatchString(path) {
		path = quote(path)
	}
	if p.path != "" {
		path = p.path + "." + path
	}
	return place{line: m.value.line, col: m.value.col, path: path, job: p.job}
}

func (p place) item(i int, n *node) place {
	return place{line: n.line, col: n.col, path: p.path + "[" + strconv.Itoa(i) + "]", job: p.job}
}

func (d *decoder) fail(at place, format string, args ...any) {
	d.problems = append(d.problems, &FieldError{
		File: d.file, Line: at.line, Column: at.col, Path: at.path, Job: at.job, Err: fmt.Errorf(format, args...),
	})
}

func (d *decoder) warn(at place, format string, args ...any) {
	d.warnings = append(d.warnings, Warning{
		File: d.file, Line: at.line, Column: at.col, Path: at.path, Job: at.job, Message: fmt.Sprintf(format, args...),
	})
}

// object reads the entries of a mapping by name. The names that were asked for are the names that
// exist: [object.done] reports every other.
type object struct {
	d     *decoder
	n     *node
	at    place
	known []string
	valid bool // false: it was no mapping, so that nothing can be missing from it
}

// object returns n as a mapping; where it is something else it says so and returns an empty one.
func (d *decoder) object(n *node, at place) *object {
	if n.kind != kindMap {
		d.fail(at, "is %s (want a mapping)", n.kind)
		return &object{d: d, n: &node{kind: kindMap}, at: at}
	}
	return &object{d: d, n: n, at: at, valid: true}
}

// take returns the value of key. It is an error for a key to be there without a value: nobody can
// say whether the default was meant or a value forgotten.
func (o *object) take(key string) (*node, place, bool) {
	o.known = append(o.known, key)
	m, ok := o.n.get(key)
	if !ok {
		return nil, o.at, false
	}
	at := o.at.child(m)
	if m.value.kind == kindNull {
		o.d.fail(at, "has no value (give one, or remove the key)")
		return nil, at, false
	}
	return m.value, at, true
}

// has reports whether key is there, and whether with a value of any worth does not matter.
func (o *object) has(key string) bool {
	_, ok := o.n.get(key)
	return ok
}

// value returns the value of key, nothing where it is not there.
func (o *object) value(key string) *node {
	if m, ok := o.n.get(key); ok {
		return m.value
	}
	return &node{}
}

// placeOf returns where the value of key stands, or the object itself where there is none.
func (o *object) placeOf(key string) place {
	if m, ok := o.n.get(key); ok {
		return o.at.child(m)
	}
	return o.at
}

// done reports the keys that nobody asked for.
func (o *object) done() {
	unknown := 0
	for _, m := range o.n.fields {
		if slices.Contains(o.known, m.key) {
			continue
		}
		if unknown++; unknown > mostErrors {
			continue // the wrong file: hints for all of it would take minutes
		}
		at := o.at.child(m)
		at.line, at.col = m.line, m.col
		o.d.fail(at, "unknown key%s", o.hint(m.key))
	}
}

func (o *object) hint(key string) string {
	if there := foreignHint(key, o.known); there != "" {
		return there
	}
	if cronRest.MatchString(key) {
		return " (within braces a comma ends what is not in quotes: put the whole schedule in quotes)"
	}
	if near := nearest(key, o.known); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	for _, home := range keyHomes {
		for _, k := range home.keys {
			if key == k || len(k) >= 5 && strings.HasPrefix(key, k) {
				if slices.Contains(o.known, k) { // timeoutSeconds
					return fmt.Sprintf(" (did you mean %s?)", k)
				}
				return fmt.Sprintf(" (%s belongs %s)", k, home.where)
			}
		}
	}
	known := slices.Sorted(slices.Values(o.known))
	return fmt.Sprintf(" (want one of %s)", strings.Join(known, ", "))
}

// keyHomes says where keys belong that are often written one level too high or too low.
var keyHomes = []struct {
	where string
	keys  []string
}{
	{"to a trigger, in jobs[].triggers[]", []string{"misfire", "priority", "schedule"}},
	{"into retry", []string{"maxRetries", "backoff", "maxDelay", "delay"}},
	{"into misfire", []string{"grace", "window", "limit", "policy"}},
	{"into a schedule", []string{"cron", "rate", "every", "once", "calendar", "ambiguous", "gap", "jitter", "start", "end"}},
	{"to a job, in jobs[]", []string{"timeout", "deadline", "overlap", "maxParallel", "retry", "recovery", "scope", "historyLimit", "path", "paused", "triggers"}},
	{"to the document", []string{"defaults", "calendars", "jobs"}},
	{"into defaults", []string{"requireTimeZone"}},
}

// text reads a string of 1 to most bytes.
func (o *object) text(key string, most int) (string, place, bool) {
	n, at, ok := o.take(key)
	if !ok {
		return "", at, false
	}
	s, ok := o.d.text(n, at, most)
	return s, at, ok
}

func (d *decoder) text(n *node, at place, most int) (string, bool) {
	switch {
	case n.kind != kindString || n.badNumber != "":
		// A number or a true in place of a text is as likely a slip as meant.
		hint := ""
		if n.kind == kindNumber || n.kind == kindBool || n.badNumber != "" {
			hint = ", in quotes"
		}
		kind := n.kind
		if n.badNumber != "" {
			kind = kindNumber
		}
		d.fail(at, "is %s (want text%s)", kind, hint)
		return "", false
	case n.text == "":
		d.fail(at, "is empty (want text, or no such key)")
		return "", false
	case len(n.text) > most:
		d.fail(at, "has %d bytes (want at most %d)", len(n.text), most)
		return "", false
	}
	return n.text, true
}

func (o *object) boolean(key string) (value, ok bool) {
	n, at, ok := o.take(key)
	if !ok {
		return false, false
	}
	if n.kind != kindBool {
		o.d.fail(at, "is %s (want true or false)", shown(n))
		return false, false
	}
	return n.text == "true", true
}

func (o *object) integer(key string, least, most int) (int, bool) {
	n, at, ok := o.take(key)
	if !ok {
		return 0, false
	}
	return o.d.integer(n, at, least, most)
}

func (d *decoder) integer(n *node, at place, least, most int) (int, bool) {
	v, err := strconv.Atoi(n.text)
	if n.kind != kindNumber || err != nil || v < least || v > most {
		d.fail(at, "is %s (want a whole number from %d to %d)", shown(n), least, most)
		return 0, false
	}
	return v, true
}

func (o *object) number(key string, least, most float64) (float64, bool) {
	n, at, ok := o.take(key)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if n.kind != kindNumber || err != nil || v < least || v > most {
		o.d.fail(at, "is %s (want a number from %v to %v)", shown(n), least, most)
		return 0, false
	}
	return v, true
}

func (o *object) duration(key string, least, most time.Duration) (time.Duration, bool) {
	n, at, ok := o.take(key)
	if !ok {
		return 0, false
	}
	v, err := parseDuration(n, least, most)
	if err != nil {
		o.d.fail(at, "%w", err)
		return 0, false
	}
	return v, true
}

// parseDuration reads a duration as Go writes it. A number without a unit is refused: readers
// differ on whether 60 is seconds or minutes.
func parseDuration(n *node, least, most time.Duration) (time.Duration, error) {
	switch {
	case n.kind == kindNumber:
		return 0, fmt.Errorf("%s has no unit (want a duration such as 30s, 5m or 2h)", quote(n.text))
	case n.kind != kindString:
		return 0, fmt.Errorf("is %s (want a duration such as 30s, 5m or 2h)", shown(n))
	case len(n.text) > 64:
		return 0, errors.New("is too long for a duration such as 30s, 5m or 2h")
	}
	v, err := time.ParseDuration(n.text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is no duration (want one such as 30s, 5m or 2h)", quote(n.text))
	case v < least || v > most:
		return 0, fmt.Errorf("%s is out of range (want %s to %s)", quote(n.text), shortDuration(least), shortDuration(most))
	}
	return v, nil
}

// shortDuration prints a duration without units that are zero: 24h, not 24h0m0s.
func shortDuration(v time.Duration) string {
	s := v.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// word reads one of a closed set of words.
func word[T ~string](o *object, key string, allowed ...T) (T, bool) {
	n, at, ok := o.take(key)
	if !ok {
		return "", false
	}
	return decodeWord(o.d, n, at, key, allowed...)
}

func decodeWord[T ~string](d *decoder, n *node, at place, key string, allowed ...T) (T, bool) {
	words := supported(key, allowed)
	switch {
	case n.kind == kindString && slices.Contains(pendingValues[key], n.text):
		d.fail(at, "%s is not supported yet", quote(n.text))
		return "", false
	case n.kind != kindString || !slices.Contains(words, n.text):
		hint := ""
		if near := nearest(n.text, words); near != "" && n.kind == kindString {
			hint = fmt.Sprintf("; did you mean %s?", near)
		}
		d.fail(at, "is %s (want %s%s)", shown(n), strings.Join(words, ", "), hint)
		return "", false
	}
	return T(n.text), true
}

// supported leaves out the words whose feature does not exist yet.
func supported[T ~string](key string, all []T) []string {
	var words []string
	for _, w := range all {
		if !slices.Contains(pendingValues[key], string(w)) {
			words = append(words, string(w))
		}
	}
	return words
}

// list reads a list of at most most items.
func (o *object) list(key string, most int) ([]*node, place, bool) {
	n, at, ok := o.take(key)
	if !ok {
		return nil, at, false
	}
	switch {
	case n.kind != kindList:
		o.d.fail(at, "is %s (want a list)", shown(n))
		return nil, at, false
	case len(n.items) > most:
		o.d.fail(at, "has %d items (want at most %d)", len(n.items), most)
		return nil, at, false
	}
	return n.items, at, true
}

// shown describes a value in an error.
func shown(n *node) string {
	switch n.kind {
	case kindBool, kindNumber:
		return n.text
	case kindString:
		return quote(n.text)
	case kindNull, kindList, kindMap:
	}
	return n.kind.String()
}
