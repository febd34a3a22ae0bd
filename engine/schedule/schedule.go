package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the kind of a schedule.
type Kind uint8

// The kinds of a schedule. The zero value is manual: no instants at all.
const (
	KindManual Kind = iota
	KindCron        // wall times of a zone
	KindRate        // fixed rate: start + n × interval
	KindEvery       // fixed delay: interval after the end of the previous occurrence
	KindOnce        // one instant
)

var kindNames = [...]string{"manual", "cron", "rate", "every", "once"}

// String returns the word that opens the text form.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", k)
}

// The values of Schedule.Ambiguous: what a wall time means that a clock change repeats.
const (
	AmbiguousAuto  = "auto"  // the default: both for expressions that follow the clock, else first
	AmbiguousFirst = "first" // the first time only
	AmbiguousBoth  = "both"  // both times
)

// The values of Schedule.Gap: what a wall time means that a clock change skips.
const (
	GapSkip = "skip" // the default: nothing
	GapNext = "next" // the instant at which the gap ends, once
)

// Limits of what a schedule may say.
const (
	MinInterval = time.Second
	MaxInterval = 30 * 24 * time.Hour
	MaxJitter   = 24 * time.Hour
	MaxCount    = 1_000_000_000
	MinYear     = 2000
	MaxYear     = 9998
)

// Schedule is a parsed schedule: a value, printed by String and read back by Parse. Times
// are UTC and at most microseconds fine, so that equal schedules are ==.
type Schedule struct {
	Kind      Kind
	Cron      string        // KindCron: the expression, single-spaced
	Interval  time.Duration // KindRate, KindEvery
	Count     int           // KindEvery: occurrences that may fire, 0: no limit
	At        time.Time     // KindOnce
	TimeZone  string        // IANA name, empty: UTC
	Start     time.Time     // inclusive, zero: none
	End       time.Time     // exclusive, zero: none
	Calendar  string        // name of the calendar of excluded instants, empty: none
	Ambiguous string        // AmbiguousAuto, …; empty: auto
	Gap       string        // GapSkip, …; empty: skip
	Jitter    time.Duration // upper bound of the delay of the sending, 0: none
}

// ErrNoDate reports a cron expression that names a date that exists in no year.
var ErrNoDate = errors.New("no future date")

// Validate reports what makes a schedule unfit for being loaded: everything that Parse
// refuses, a zone that does not exist, and a date that exists in no year (ErrNoDate).
// Whether a calendar exists is reported by Compile.
func (s Schedule) Validate() error {
	if err := s.check(); err != nil {
		return err
	}
	if s.TimeZone != "" {
		if _, err := loadZone(s.TimeZone); err != nil {
			return err
		}
	}
	if s.Kind != KindCron {
		return nil
	}
	text, err := parseCron(s.Cron)
	if err != nil {
		return err
	}
	table, err := newCronTable(text, "")
	if err != nil {
		return err
	}
	if !table.hasDate() {
		return fmt.Errorf("%w: cron %s names a date that exists in no year", ErrNoDate, s.Cron)
	}
	return nil
}

// check reports what is wrong with the schedule by itself. Parse calls it, and so does
// Compile for a schedule that was not parsed.
func (s Schedule) check() error {
	switch s.Kind {
	case KindManual:
		if s != (Schedule{}) {
			return errors.New("manual takes no options")
		}
	case KindCron:
		if _, err := parseCron(s.Cron); err != nil {
			return err
		}
	case KindRate, KindEvery:
		if err := checkDuration("interval", s.Interval, MinInterval, MaxInterval); err != nil {
			return err
		}
	case KindOnce:
		if err := checkTime("once", s.At); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown kind %v", s.Kind)
	}
	if s.Count < 0 || s.Count > MaxCount {
		return fmt.Errorf("x%d is out of range, want x1 to x%d", s.Count, MaxCount)
	}
	if s.Count > 0 && s.Kind != KindEvery {
		return fmt.Errorf("a repeat count is for every, not for %v", s.Kind)
	}
	return s.checkOptions()
}

func (s Schedule) checkOptions() error {
	if !s.Start.IsZero() {
		if err := checkTime("start", s.Start); err != nil {
			return err
		}
	}
	if !s.End.IsZero() {
		if err := checkTime("end", s.End); err != nil {
			return err
		}
		if !s.Start.IsZero() && !s.End.After(s.Start) {
			return fmt.Errorf("end %s is not after start %s", formatTime(s.End), formatTime(s.Start))
		}
	}
	if s.Calendar != "" && !validName(s.Calendar) {
		return fmt.Errorf("calendar name %s does not match %s", clip(s.Calendar), namePattern)
	}
	switch s.Ambiguous {
	case "", AmbiguousAuto, AmbiguousFirst, AmbiguousBoth:
	default:
		return fmt.Errorf("ambiguous=%s is unknown, want auto, first or both", clip(s.Ambiguous))
	}
	switch s.Gap {
	case "", GapSkip, GapNext:
	default:
		return fmt.Errorf("gap=%s is unknown, want skip or next", clip(s.Gap))
	}
	if s.Jitter != 0 {
		return checkDuration("jitter", s.Jitter, time.Microsecond, MaxJitter)
	}
	return nil
}

func checkDuration(what string, d, lo, hi time.Duration) error {
	if d < lo || d > hi {
		return fmt.Errorf("%s %v is out of range %s to %s", what, d, lo, formatDays(hi))
	}
	if d%time.Microsecond != 0 {
		return fmt.Errorf("%s %v is finer than a microsecond", what, d)
	}
	return nil
}

func checkTime(what string, t time.Time) error {
	if y := t.UTC().Year(); y < MinYear || y > MaxYear {
		return fmt.Errorf("%s %s: the year is out of range %d-%d", what, formatTime(t), MinYear, MaxYear)
	}
	if t.Nanosecond()%1000 != 0 {
		return fmt.Errorf("%s %s is finer than a microsecond", what, formatTime(t))
	}
	return nil
}

const namePattern = "^[a-z0-9][a-z0-9._-]{0,127}$"

// validName reports whether the name matches namePattern.
func validName(name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		word := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !word && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
