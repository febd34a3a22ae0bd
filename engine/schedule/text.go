package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxText bounds the text form, in bytes: an expression and all options fit well.
const maxText = 1024

// Parse reads the text form:
//
//	manual
//	cron 0 0 9 * * MON-FRI tz=Asia/Shanghai
//	rate 60s
//	every 00:10:00 x5
//	once 2026-11-01T00:00:00Z
//
// The word cron may be left out. All but manual take the options tz=, start=, end=,
// calendar=, ambiguous=, gap= and jitter=. Intervals are written 90s, 1h30m, hh:mm:ss or
// d.hh:mm:ss.
//
// Whether a zone or a calendar exists is not known here: Compile says that, so that a text
// stays readable when they are gone.
func Parse(text string) (Schedule, error) {
	if len(text) > maxText {
		return Schedule{}, fmt.Errorf("schedule has %d characters, the limit is %d", len(text), maxText)
	}
	words := splitWords(text)
	if len(words) == 0 {
		return Schedule{}, errors.New("schedule is empty, want manual, cron, rate, every or once")
	}
	var s Schedule
	var err error
	body, options := splitOptions(words)
	switch word := words[0]; word {
	case "manual":
		if len(body) > 1 {
			return Schedule{}, fmt.Errorf("manual takes nothing, but %s follows", clip(body[1]))
		}
		if len(options) > 0 {
			return Schedule{}, fmt.Errorf("manual takes no options, but %s follows", clip(options[0]))
		}
		return s, nil
	case "rate":
		err = s.parseRate(body[1:])
	case "every":
		err = s.parseEvery(body[1:])
	case "once":
		err = s.parseOnce(body[1:])
	default:
		if word == "cron" {
			body = body[1:]
		}
		if len(body) == 0 && len(options) > 0 {
			if err := rejectForeign(options[0]); err != nil {
				return Schedule{}, err
			}
		}
		s.Kind, s.Cron = KindCron, strings.Join(body, " ")
	}
	if err != nil {
		return Schedule{}, err
	}
	if err := s.parseOptions(options); err != nil {
		return Schedule{}, err
	}
	if err := s.check(); err != nil {
		return Schedule{}, err
	}
	return s, nil
}

// splitOptions separates the key=value words at the end.
func splitOptions(words []string) (body, options []string) {
	for i, word := range words {
		if strings.Contains(word, "=") {
			return words[:i], words[i:]
		}
	}
	return words, nil
}

func (s *Schedule) parseRate(words []string) (err error) {
	s.Kind = KindRate
	if len(words) != 1 {
		return fmt.Errorf("rate takes one interval, as in rate 60s, but has %s", plural(len(words), "word"))
	}
	s.Interval, err = parseDuration("interval", words[0])
	return err
}

func (s *Schedule) parseEvery(words []string) (err error) {
	s.Kind = KindEvery
	if len(words) < 1 || len(words) > 2 {
		return fmt.Errorf("every takes an interval and perhaps a count, as in every 00:10:00 x5, but has %s",
			plural(len(words), "word"))
	}
	if s.Interval, err = parseDuration("interval", words[0]); err != nil || len(words) == 1 {
		return err
	}
	digits, ok := strings.CutPrefix(words[1], "x")
	if !ok || !isDigits(digits) {
		return fmt.Errorf("count %s is malformed, want x and a number, as in x5", clip(words[1]))
	}
	for i := range len(digits) {
		s.Count = min(s.Count*10+int(digits[i]-'0'), MaxCount+1)
	}
	if s.Count < 1 || s.Count > MaxCount {
		return fmt.Errorf("count %s is out of range x1 to x%d", clip(words[1]), MaxCount)
	}
	return nil
}

func (s *Schedule) parseOnce(words []string) (err error) {
	s.Kind = KindOnce
	if len(words) != 1 {
		return fmt.Errorf("once takes one time, as in once 2026-11-01T00:00:00Z, but has %s", plural(len(words), "word"))
	}
	s.At, err = parseTime("once", words[0])
	return err
}

func (s *Schedule) parseOptions(options []string) error {
	seen := make(map[string]bool, len(options))
	for _, option := range options {
		key, value, ok := strings.Cut(option, "=")
		switch {
		case !ok:
			return fmt.Errorf("%s stands after the options, which come last", clip(option))
		case seen[key]:
			return fmt.Errorf("%s= is given twice", clip(key))
		case value == "":
			return fmt.Errorf("%s= has no value", clip(key))
		}
		seen[key] = true
		if err := s.parseOption(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schedule) parseOption(key, value string) (err error) {
	switch key {
	case "tz":
		s.TimeZone = value
	case "start":
		s.Start, err = parseTime(key, value)
	case "end":
		s.End, err = parseTime(key, value)
	case "calendar":
		s.Calendar = value
	case "ambiguous":
		s.Ambiguous = value
	case "gap":
		s.Gap = value
	case "jitter":
		s.Jitter, err = parseDuration(key, value)
	case "TZ", "CRON_TZ":
		return fmt.Errorf("%s= is not part of a schedule, write tz=%s", key, clip(value))
	default:
		return fmt.Errorf("unknown option %s=, want tz, start, end, calendar, ambiguous, gap or jitter", clip(key))
	}
	return err
}

// String returns the text form, which Parse reads back to an equal schedule.
func (s Schedule) String() string {
	var b strings.Builder
	b.WriteString(s.Kind.String())
	switch s.Kind {
	case KindManual:
		return b.String()
	case KindCron:
		b.WriteString(" " + s.Cron)
	case KindRate:
		b.WriteString(" " + formatSeconds(s.Interval))
	case KindEvery:
		b.WriteString(" " + formatClock(s.Interval))
		if s.Count > 0 {
			fmt.Fprintf(&b, " x%d", s.Count)
		}
	case KindOnce:
		b.WriteString(" " + formatTime(s.At))
	}
	option := func(key, value string) {
		if value != "" {
			b.WriteString(" " + key + "=" + value)
		}
	}
	option("tz", s.TimeZone)
	if !s.Start.IsZero() {
		option("start", formatTime(s.Start))
	}
	if !s.End.IsZero() {
		option("end", formatTime(s.End))
	}
	option("calendar", s.Calendar)
	option("ambiguous", s.Ambiguous)
	option("gap", s.Gap)
	if s.Jitter > 0 {
		option("jitter", formatSeconds(s.Jitter))
	}
	return b.String()
}

// MarshalText writes the text form.
func (s Schedule) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form.
func (s *Schedule) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

func parseTime(what, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	// time.Parse takes a comma before the fraction and one-digit hours, RFC 3339 does not.
	if err != nil || strings.Contains(text, ",") || len(text) < len("2006-01-02T15:04:05Z") || text[10] != 'T' {
		return time.Time{}, fmt.Errorf("%s %s is not a time like 2026-11-01T00:00:00Z", what, clip(text))
	}
	return t.UTC(), nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
