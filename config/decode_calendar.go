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
	return nil
}

func (d *decoder) calendars(o *object) calendars {
	c := calendars{specs: make(map[string]schedule.CalendarSpec), broken: make(map[string]bool)}
	_, at, ok := o.take("calendars")
	if ok {
		d.fail(at, "is not supported yet")
	}
	return c
}
