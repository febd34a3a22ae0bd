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
	var all []error
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if _, err := compileCalendar(name, specs, utcZone); err != nil {
			all = append(all, err)
		}
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
	c := calendarCompiler{specs: specs, zone: triggerZone, state: make(map[string]visit)}
	if err := c.add(name); err != nil {
		return nil, err
	}
	if len(c.found) == 1 {
		return c.found[0], nil
	}
	return c.found, nil
}

// calendarCompiler flattens calendars made of others: each is looked at once, however
// often it is named.
type calendarCompiler struct {
	specs map[string]CalendarSpec
	zone  *zone
	state map[string]visit
	path  []string
	found anyCalendar
}

type visit int

const (
	unvisited visit = iota
	open            // on the path that leads here
	done
)

func (c *calendarCompiler) add(name string) error {
	switch c.state[name] {
	case open:
		return &CalendarError{name, fmt.Errorf("it contains itself: %s", strings.Join(append(c.path, name), " → "))}
	case done:
		return nil
	case unvisited:
	}
	spec, ok := c.specs[name]
	if !ok {
		if len(c.path) > 0 {
			return &CalendarError{c.path[len(c.path)-1], fmt.Errorf("any names %s, which is not defined", clip(name))}
		}
		return &CalendarError{name, errors.New("it is not defined")}
	}
	c.state[name] = open
	c.path = append(c.path, name)
	made, err := c.compile(name, spec)
	if err != nil {
		return err
	}
	if made != nil {
		c.found = append(c.found, made)
	}
	c.path = c.path[:len(c.path)-1]
	c.state[name] = done
	return nil
}

// compile returns the calendar of one definition, or nil for one that is made of others.
func (c *calendarCompiler) compile(name string, spec CalendarSpec) (calendar, error) {
	if !validName(name) {
		return nil, &CalendarError{name, fmt.Errorf("the name does not match %s", namePattern)}
	}
	if err := spec.checkKind(); err != nil {
		return nil, &CalendarError{name, err}
	}
	z := c.zone
	if spec.TimeZone != "" {
		var err error
		if z, err = loadZone(spec.TimeZone); err != nil {
			return nil, &CalendarError{name, err}
		}
	}
	if spec.Any != nil {
		if spec.TimeZone != "" {
			return nil, &CalendarError{name, errors.New("timeZone has no meaning beside any, write it in the calendars named there")}
		}
		for _, other := range spec.Any {
			if err := c.add(other); err != nil {
				return nil, err
			}
		}
		return nil, nil //nolint:nilnil // its parts have been added
	}
	if spec.ICS != "" {
		events, err := parseICS(spec.ICS)
		if err != nil {
			return nil, &CalendarError{name, err}
		}
		return newEventCalendar(events, z), nil
	}
	wall, err := spec.wallCalendar()
	if err != nil {
		return nil, &CalendarError{name, err}
	}
	return zonedCalendar{wall: wall, zone: z}, nil
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
