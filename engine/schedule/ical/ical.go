// Package ical reads the events of an iCalendar file (RFC 5545) as spans of time: all-day
// and timed events, recurring ones with their exceptions, and moved or cancelled instances.
//
// It answers in wall time. Which zone an event without one belongs to is the caller's
// decision, since the same holidays begin at another instant in another place. Files are
// limited in size, and recurrences to what can be searched in bounded time.
package ical

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ics "github.com/arran4/golang-ical"
)

// Limits of a file.
const (
	MaxBytes     = 1 << 20
	MaxEvents    = 10_000
	MaxRecurring = 1_000
	MaxDates     = 10_000 // RDATE and EXDATE of one event
	MaxDuration  = 366 * 24 * time.Hour
)

// Span is one occurrence of an event.
type Span struct {
	// Start is the first wall second, counted from 1970-01-01T00:00:00 as if its zone were
	// UTC.
	Start int64
	// End is the wall second after the last, for an all-day event.
	End int64
	// Duration is the length of a timed event, in elapsed time.
	Duration time.Duration
	// AllDay events last from midnight to midnight in the zone of whoever asks.
	AllDay bool
	// Zone is the IANA name of a timed event's zone, empty for whoever asks.
	Zone string
}

// Calendar is the events of a file. It is immutable and safe for concurrent use.
type Calendar struct {
	events []*event
}

// event is a VEVENT with its recurrence. Times are wall seconds in its zone.
type event struct {
	span     Span
	location *time.Location // of span.Zone, nil: floating or all-day
	rule     *recurrence    // nil: one occurrence
	extra    []int64        // RDATE
	except   map[int64]bool // EXDATE, and instances that have a VEVENT of their own
}

// Parse reads the text of a file. loadZone finds the zone of a TZID.
func Parse(text string, loadZone func(name string) (*time.Location, error)) (*Calendar, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("iCalendar file has %d bytes, the limit is %d", len(text), MaxBytes)
	}
	file, err := ics.ParseCalendar(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("iCalendar file: %w", err)
	}
	if !strings.Contains(strings.ToUpper(text), "BEGIN:VCALENDAR") {
		return nil, errors.New("iCalendar file: BEGIN:VCALENDAR is missing")
	}
	components := file.Events()
	if len(components) > MaxEvents {
		return nil, fmt.Errorf("iCalendar file has %d events, the limit is %d", len(components), MaxEvents)
	}
	r := reader{loadZone: loadZone, masters: make(map[string]*event)}
	for i, component := range components {
		if err := r.read(component); err != nil {
			return nil, fmt.Errorf("iCalendar event %d%s: %w", i+1, title(component), err)
		}
	}
	r.applyOverrides()
	return &Calendar{events: r.events}, nil
}

// Spans returns the occurrences that touch the wall times [from, to), in no special order.
func (c *Calendar) Spans(from, to int64) []Span {
	var spans []Span
	for _, e := range c.events {
		length := max(e.span.End-e.span.Start, int64(e.span.Duration/time.Second))
		for _, start := range e.starts(from-length, to) {
			s := e.span
			s.End += start - s.Start
			s.Start = start
			spans = append(spans, s)
		}
	}
	return spans
}

// starts returns the starts of the occurrences in [from, to).
func (e *event) starts(from, to int64) []int64 {
	found := make(map[int64]bool)
	if s := e.span.Start; s >= from && s < to {
		found[s] = true
	}
	for _, s := range e.extra {
		if s >= from && s < to {
			found[s] = true
		}
	}
	if e.rule != nil {
		for _, s := range e.rule.between(from, to) {
			found[s] = true
		}
	}
	maps.DeleteFunc(found, func(s int64, _ bool) bool { return e.except[s] })
	return slices.Sorted(maps.Keys(found))
}

// reader collects events.
type reader struct {
	loadZone  func(string) (*time.Location, error)
	events    []*event
	masters   map[string]*event // recurring events by UID
	recurring int
	overrides []override
}

// override is an instance of a recurring event that has moved or was cancelled.
type override struct {
	uid string
	at  moment
}

func (r *reader) read(component *ics.VEvent) error {
	if id := component.GetProperty(ics.ComponentPropertyRecurrenceId); id != nil {
		if len(id.ICalParameters["RANGE"]) > 0 {
			return errors.New("RECURRENCE-ID with RANGE is not supported")
		}
		at, err := r.moment(id.ICalParameters, id.Value)
		if err != nil {
			return fmt.Errorf("RECURRENCE-ID: %w", err)
		}
		r.overrides = append(r.overrides, override{uid: component.Id(), at: at})
	}
	if status := component.GetProperty(ics.ComponentPropertyStatus); status != nil && strings.EqualFold(status.Value, "CANCELLED") {
		return nil
	}
	e, err := r.event(component)
	if err != nil {
		return err
	}
	r.events = append(r.events, e)
	if e.rule != nil || len(e.extra) > 0 {
		r.recurring++
		if r.recurring > MaxRecurring {
			return fmt.Errorf("more than %d recurring events", MaxRecurring)
		}
		r.masters[component.Id()] = e
	}
	return nil
}

func (r *reader) event(component *ics.VEvent) (*event, error) {
	start := component.GetProperty(ics.ComponentPropertyDtStart)
	if start == nil {
		return nil, errors.New("DTSTART is missing")
	}
	begin, err := r.moment(start.ICalParameters, start.Value)
	if err != nil {
		return nil, fmt.Errorf("DTSTART: %w", err)
	}
	e := &event{
		span:     Span{Start: begin.wall, AllDay: begin.allDay, Zone: begin.zone},
		location: begin.location,
		except:   make(map[int64]bool),
	}
	if err := r.length(e, begin, component); err != nil {
		return nil, err
	}
	if err := r.dates(e, component.GetProperties(ics.ComponentPropertyRdate), func(wall int64) {
		e.extra = append(e.extra, wall)
	}); err != nil {
		return nil, fmt.Errorf("RDATE: %w", err)
	}
	if err := r.dates(e, component.GetProperties(ics.ComponentPropertyExdate), func(wall int64) {
		e.except[wall] = true
	}); err != nil {
		return nil, fmt.Errorf("EXDATE: %w", err)
	}
	rules := component.GetProperties(ics.ComponentPropertyRrule)
	switch len(rules) {
	case 0:
	case 1:
		if e.rule, err = parseRecurrence(rules[0].Value, e); err != nil {
			return nil, fmt.Errorf("RRULE: %w", err)
		}
	default:
		return nil, errors.New("more than one RRULE")
	}
	if component.GetProperty(ics.ComponentPropertyExrule) != nil {
		return nil, errors.New("EXRULE is not supported, write EXDATE")
	}
	return e, nil
}

// length sets the end of the event from DTEND or DURATION.
func (r *reader) length(e *event, begin moment, component *ics.VEvent) error {
	var length time.Duration
	if end := component.GetProperty(ics.ComponentPropertyDtEnd); end != nil {
		finish, err := r.moment(end.ICalParameters, end.Value)
		if err != nil {
			return fmt.Errorf("DTEND: %w", err)
		}
		if finish.allDay != begin.allDay {
			return errors.New("DTSTART and DTEND must both be dates or both be times")
		}
		length = begin.until(finish)
	} else if d := component.GetProperty(ics.ComponentPropertyDuration); d != nil {
		var err error
		if length, err = parseDuration(d.Value); err != nil {
			return fmt.Errorf("DURATION: %w", err)
		}
	} else if begin.allDay {
		length = 24 * time.Hour
	}
	if length < 0 || length > MaxDuration {
		return fmt.Errorf("its length %v is out of range 0 to 366 days", length)
	}
	if begin.allDay {
		e.span.End = e.span.Start + int64(length/time.Second)
	} else {
		e.span.End = e.span.Start
		e.span.Duration = length
	}
	return nil
}

// dates reads the lists of RDATE and EXDATE, as wall times of the event's zone.
func (r *reader) dates(e *event, properties []*ics.IANAProperty, add func(wall int64)) error {
	n := 0
	for _, p := range properties {
		for value := range strings.SplitSeq(p.Value, ",") {
			if n++; n > MaxDates {
				return fmt.Errorf("more than %d dates", MaxDates)
			}
			at, err := r.moment(p.ICalParameters, value)
			if err != nil {
				return err
			}
			add(at.in(e))
		}
	}
	return nil
}

// applyOverrides takes the instances that have an event of their own out of the recurrence.
func (r *reader) applyOverrides() {
	for _, o := range r.overrides {
		if master := r.masters[o.uid]; master != nil {
			master.except[o.at.in(master)] = true
		}
	}
}

// title names an event in an error.
func title(component *ics.VEvent) string {
	const most = 60
	summary := component.GetProperty(ics.ComponentPropertySummary)
	if summary == nil {
		return ""
	}
	text := []rune(summary.Value)
	return fmt.Sprintf(" (%.*q)", most, string(text[:min(len(text), most)]))
}
