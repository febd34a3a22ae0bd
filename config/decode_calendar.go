package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasecron/leasecron/engine/schedule"
)

// calendars are the calendars of a document, and the names of the ones that have a problem.
type calendars struct {
	specs  map[string]schedule.CalendarSpec
	broken map[string]bool
}

// errBrokenCalendar: the calendar is defined, and what is wrong with it was said there.
var errBrokenCalendar = errors.New("calendar has a problem")

// lend copies a calendar, and the ones that it is made of, into job.
func (c calendars) lend(name string, job *Job) error {
	if c.broken[name] {
		return errBrokenCalendar
	}
	spec, ok := c.specs[name]
	if !ok {
		known := slices.Sorted(maps.Keys(c.specs))
		if near := nearest(name, known); near != "" {
			return fmt.Errorf("unknown calendar %s (did you mean %s?)", quote(name), near)
		}
		if len(known) == 0 {
			return fmt.Errorf("unknown calendar %s (the document defines none)", quote(name))
		}
		return fmt.Errorf("unknown calendar %s (want one of %s)", quote(name), strings.Join(known, ", "))
	}
	if _, ok := job.Calendars[name]; ok {
		return nil
	}
	if job.Calendars == nil {
		job.Calendars = make(map[string]schedule.CalendarSpec)
	}
	job.Calendars[name] = spec
	for _, part := range spec.Any {
		if err := c.lend(part, job); err != nil {
			return err
		}
	}
	return nil
}

// calendars reads the calendars of the document.
func (d *decoder) calendars(o *object) calendars {
	c := calendars{specs: make(map[string]schedule.CalendarSpec), broken: make(map[string]bool)}
	n, at, ok := o.take("calendars")
	if !ok {
		return c
	}
	if len(n.fields) > mostCalendars {
		d.fail(at, "has %d calendars (want at most %d)", len(n.fields), mostCalendars)
		return c
	}
	places := make(map[string]place)
	for _, m := range d.object(n, at).n.fields {
		cat := at.child(m)
		before := len(d.problems)
		if err := checkName(m.key); err != nil {
			d.fail(cat, "%w", err)
		}
		spec := d.calendar(m.value, cat)
		places[m.key] = cat
		if len(d.problems) > before {
			// A stand-in, so that what is made of it is not called undefined too.
			c.broken[m.key] = true
			spec = schedule.CalendarSpec{Weekdays: []string{}}
		}
		c.specs[m.key] = spec
	}
	if len(d.problems) > 0 {
		// Invalid names would be reported once more.
		maps.DeleteFunc(c.specs, func(name string, _ schedule.CalendarSpec) bool { return checkName(name) != nil })
	}
	reported := make(map[string]bool)
	for _, err := range unjoin(schedule.CheckCalendars(c.specs)) {
		var bad *schedule.CalendarError
		switch {
		case !errors.As(err, &bad):
			d.fail(at, "%w", err)
		case !reported[bad.Name]: // what is made of it meets the same problem
			reported[bad.Name], c.broken[bad.Name] = true, true
			d.fail(places[bad.Name], "%w", bad.Err)
		}
	}
	return c
}

// calendar reads one calendar. Items are checked one by one, so that an error names its own.
func (d *decoder) calendar(n *node, at place) schedule.CalendarSpec {
	var spec schedule.CalendarSpec
	o := d.object(n, at)
	spec.Dates = d.words(o, "dates", schedule.MaxCalendarDates, func(v string) schedule.CalendarSpec {
		return schedule.CalendarSpec{Dates: []string{v}}
	})
	spec.Weekdays = d.words(o, "weekdays", 7, func(v string) schedule.CalendarSpec {
		return schedule.CalendarSpec{Weekdays: []string{v}}
	})
	spec.Any = d.words(o, "any", mostCalendars, nil)
	spec.From, _, _ = o.text("from", longestWord)
	spec.To, _, _ = o.text("to", longestWord)
	if v, at, ok := o.text("cron", longestSchedule); ok {
		spec.Cron = v
		d.checkCalendar(schedule.CalendarSpec{Cron: v}, at)
	}
	spec.TimeZone = o.timeZone("")
	if name, at, ok := o.text("ics", longestURL); ok {
		spec.ICS = d.ics(name, at)
	}
	o.done()
	return spec
}

// longestWord bounds a weekday, a date, a time of day.
const longestWord = 64

// words reads a list of words; one is checked by making a calendar of it alone. An empty list is
// not nil: it has a meaning.
func (d *decoder) words(o *object, key string, most int, alone func(string) schedule.CalendarSpec) []string {
	items, at, ok := o.list(key, most)
	if !ok {
		return nil
	}
	words := make([]string, 0, len(items))
	for i, item := range items {
		itemAt := at.item(i, item)
		v, ok := d.text(item, itemAt, longestURL)
		if !ok {
			continue
		}
		if alone != nil {
			d.checkCalendar(alone(v), itemAt)
		}
		words = append(words, v)
	}
	return words
}

// checkCalendar reports what is wrong with a calendar, or a part of one, at its place.
func (d *decoder) checkCalendar(spec schedule.CalendarSpec, at place) {
	const name = "part"
	for _, err := range unjoin(schedule.CheckCalendars(map[string]schedule.CalendarSpec{name: spec})) {
		if bad, ok := errors.AsType[*schedule.CalendarError](err); ok {
			err = bad.Err
		}
		d.fail(at, "%w", err)
	}
}

// ics returns the text of the iCalendar file of a name.
func (d *decoder) ics(name string, at place) string {
	if d.opts.Resolve == nil {
		d.fail(at, "%s cannot be read: nothing is known beside the document", quote(name))
		return ""
	}
	data, err := d.opts.Resolve(name)
	switch {
	case err != nil:
		d.fail(at, "%s cannot be read: %w", quote(name), err)
		return ""
	case len(data) > longestICS:
		d.fail(at, "%s has more than %d bytes (want at most that)", quote(name), longestICS)
		return ""
	case len(data) == 0:
		d.fail(at, "%s is empty (want an iCalendar file)", quote(name))
		return ""
	}
	d.checkCalendar(schedule.CalendarSpec{ICS: string(data)}, at)
	return string(data)
}
