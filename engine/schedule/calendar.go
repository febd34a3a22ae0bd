package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CalendarSpec defines a calendar: the instants at which triggers that name it do not
// fire. Exactly one of Dates, Weekdays, From with To, Cron, ICS and Any is set.
type CalendarSpec struct {
	Dates    []string `json:"dates,omitempty"`    // whole days, as 2026-12-25
	Weekdays []string `json:"weekdays,omitzero"`  // whole days, as SAT; empty but not nil: SAT and SUN
	From     string   `json:"from,omitempty"`     // daily span, as 22:00 or 22:00:30, inclusive
	To       string   `json:"to,omitempty"`       // exclusive; before From: the span crosses midnight
	Cron     string   `json:"cron,omitempty"`     // the seconds that match
	ICS      string   `json:"ics,omitempty"`      // the text of an iCalendar file: its events
	Any      []string `json:"any,omitempty"`      // names of other calendars
	TimeZone string   `json:"timeZone,omitempty"` // IANA name, empty: the trigger's
}

// Limits of a set of calendars.
const (
	MaxCalendarDates = 10_000
	MaxCalendars     = 1_000
)

// CalendarError says what is wrong with a calendar.
type CalendarError struct {
	Name string
	Err  error
}

func (e *CalendarError) Error() string { return fmt.Sprintf("calendar %s: %v", clip(e.Name), e.Err) }

// Unwrap returns the cause.
func (e *CalendarError) Unwrap() error { return e.Err }

// CheckCalendars reports everything that is wrong with a set of calendars, also with those
// that no schedule uses: a join of *CalendarError in the order of their names.
func CheckCalendars(specs map[string]CalendarSpec) error {
	if len(specs) > MaxCalendars {
		return fmt.Errorf("there are %d calendars, the limit is %d", len(specs), MaxCalendars)
	}
	c := newCalendarCompiler(specs, utcZone)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		c.add(name)
	}
	slices.SortStableFunc(c.errs, func(a, b *CalendarError) int { return strings.Compare(a.Name, b.Name) })
	var all []error
	for _, err := range c.errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// calendar is a set of excluded seconds.
type calendar interface {
	// at reports whether the second is excluded, and until when that surely stays so: a
	// later second, at which it may have changed.
	at(utc int64) (excluded bool, until int64)
}

// compileCalendar makes the calendar of a name for triggers in a zone.
func compileCalendar(name string, specs map[string]CalendarSpec, triggerZone *zone) (calendar, error) {
	c := newCalendarCompiler(specs, triggerZone)
	if _, ok := specs[name]; ok {
		c.add(name)
	} else {
		c.refuse(name, errors.New("it is not defined"))
	}
	switch {
	case len(c.errs) > 0:
		return nil, c.errs[0]
	case len(c.found) == 1:
		return c.found[0], nil
	default:
		return c.found, nil
	}
}

// calendarCompiler flattens calendars made of others: each is looked at once, however
// often it is named.
type calendarCompiler struct {
	specs map[string]CalendarSpec
	zone  *zone // of the trigger
	state map[string]visit
	path  []string // from the calendar asked for to the one that is looked at
	found anyCalendar
	errs  []*CalendarError
}

type visit int

const (
	unvisited visit = iota
	open            // on the path
	done
)

func newCalendarCompiler(specs map[string]CalendarSpec, z *zone) *calendarCompiler {
	return &calendarCompiler{specs: specs, zone: z, state: make(map[string]visit)}
}

func (c *calendarCompiler) refuse(name string, err error) {
	c.errs = append(c.errs, &CalendarError{Name: name, Err: err})
}

// add compiles a calendar that is defined, and those that it names.
func (c *calendarCompiler) add(name string) {
	switch c.state[name] {
	case open:
		c.refuse(name, fmt.Errorf("it contains itself: %s", strings.Join(append(c.path, name), " → ")))
		return
	case done:
		return
	case unvisited:
	}
	c.state[name] = open
	c.path = append(c.path, name)
	if err := c.compile(name, c.specs[name]); err != nil {
		c.refuse(name, err)
	}
	c.path = c.path[:len(c.path)-1]
	c.state[name] = done
}

func (c *calendarCompiler) compile(name string, spec CalendarSpec) error {
	if !validName(name) {
		return fmt.Errorf("the name does not match %s", namePattern)
	}
	if err := spec.checkKind(); err != nil {
		return err
	}
	if spec.Any != nil {
		return c.addParts(name, spec)
	}
	z := c.zone
	if spec.TimeZone != "" {
		var err error
		if z, err = loadZone(spec.TimeZone); err != nil {
			return err
		}
	}
	if spec.ICS != "" {
		events, err := icsCalendar(spec.ICS, z)
		if err != nil {
			return err
		}
		c.found = append(c.found, events)
		return nil
	}
	wall, err := spec.wallCalendar()
	if err != nil {
		return err
	}
	c.found = append(c.found, zonedCalendar{wall: wall, zone: z})
	return nil
}

func (c *calendarCompiler) addParts(name string, spec CalendarSpec) error {
	if spec.TimeZone != "" {
		return errors.New("timeZone has no meaning beside any, write it in the calendars named there")
	}
	if len(spec.Any) == 0 {
		return errors.New("any is empty, want names of calendars")
	}
	for _, part := range spec.Any {
		if _, ok := c.specs[part]; !ok {
			c.refuse(name, fmt.Errorf("any names %s, which is not defined", clip(part)))
			continue
		}
		c.add(part)
	}
	return nil
}

// checkKind refuses a definition that does not have exactly one kind.
func (s CalendarSpec) checkKind() error {
	var kinds []string
	for _, kind := range []struct {
		name string
		set  bool
	}{
		{"dates", s.Dates != nil},
		{"weekdays", s.Weekdays != nil},
		{"from and to", s.From != "" || s.To != ""},
		{"cron", s.Cron != ""},
		{"ics", s.ICS != ""},
		{"any", s.Any != nil},
	} {
		if kind.set {
			kinds = append(kinds, kind.name)
		}
	}
	switch len(kinds) {
	case 1:
		return nil
	case 0:
		return errors.New("it is empty, want one of dates, weekdays, from and to, cron, ics or any")
	default:
		return fmt.Errorf("it has %s, want exactly one of them", strings.Join(kinds, ", "))
	}
}

func (s CalendarSpec) wallCalendar() (wallCalendar, error) {
	switch {
	case s.Dates != nil:
		return newDateCalendar(s.Dates)
	case s.Weekdays != nil:
		return newWeekdayCalendar(s.Weekdays)
	case s.Cron != "":
		return newCronCalendar(s.Cron)
	default:
		return newDailyCalendar(s.From, s.To)
	}
}

// anyCalendar excludes what one of its parts excludes.
type anyCalendar []calendar

func (c anyCalendar) at(utc int64) (excluded bool, until int64) {
	allowedUntil := never
	for _, part := range c {
		e, u := part.at(utc)
		switch {
		case e:
			excluded, until = true, max(until, u)
		default:
			allowedUntil = min(allowedUntil, u)
		}
	}
	if excluded {
		return true, until
	}
	return false, allowedUntil
}

// zonedCalendar is a calendar of wall times in a zone. A wall time that a clock change
// repeats is excluded both times.
type zonedCalendar struct {
	wall wallCalendar
	zone *zone
}

func (c zonedCalendar) at(utc int64) (excluded bool, until int64) {
	s := c.zone.at(utc)
	excluded, wallUntil := c.wall.at(utc + s.offset)
	if wallUntil >= never {
		return excluded, never
	}
	return excluded, min(wallUntil-s.offset, s.end)
}
