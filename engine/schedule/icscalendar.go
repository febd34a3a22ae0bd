package schedule

import (
	"slices"
	"sync"

	"github.com/leasecron/leasecron/engine/schedule/ical"
)

// eventCalendar excludes the events of an iCalendar file. Recurring events have no end, so
// that they are listed a page of about a year at a time, when one is first asked for.
type eventCalendar struct {
	events *ical.Calendar
	zone   *zone // of all-day events and of times without a zone

	mu    sync.Mutex
	pages map[int64][]interval
}

// interval is [start, end) in UTC.
type interval struct{ start, end int64 }

const (
	pageShift = 25 // 2^25 seconds, about 388 days
	maxPages  = 32
)

func newEventCalendar(events *ical.Calendar, z *zone) *eventCalendar {
	return &eventCalendar{events: events, zone: z, pages: make(map[int64][]interval)}
}

func (c *eventCalendar) at(utc int64) (excluded bool, until int64) {
	number := utc >> pageShift
	page := c.page(number)
	end := (number + 1) << pageShift
	i, _ := slices.BinarySearchFunc(page, utc, func(v interval, at int64) int {
		if v.end <= at {
			return -1
		}
		return 1
	})
	switch {
	case i == len(page):
		return false, end
	case page[i].start > utc:
		return false, min(page[i].start, end)
	default:
		return true, page[i].end
	}
}

// page returns the merged intervals that touch a page, in order.
func (c *eventCalendar) page(number int64) []interval {
	c.mu.Lock()
	defer c.mu.Unlock()
	if page, ok := c.pages[number]; ok {
		return page
	}
	if len(c.pages) >= maxPages {
		clear(c.pages)
	}
	page := c.list(number<<pageShift, (number+1)<<pageShift)
	c.pages[number] = page
	return page
}

func (c *eventCalendar) list(from, to int64) []interval {
	var all []interval
	for _, s := range c.events.Spans(from-wallMargin, to+wallMargin) {
		z := c.zone
		if s.Zone != "" {
			var err error
			if z, err = loadZone(s.Zone); err != nil {
				continue // it was there when the file was read
			}
		}
		v := interval{start: z.utc(s.Start)}
		if s.AllDay {
			v.end = z.utc(s.End)
		} else {
			v.end = v.start + int64(s.Duration.Seconds())
		}
		if v.start < v.end && v.start < to && v.end > from {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b interval) int { return int(max(min(a.start-b.start, 1), -1)) })
	merged := all[:0]
	for _, v := range all {
		if n := len(merged); n > 0 && v.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, v.end)
			continue
		}
		merged = append(merged, v)
	}
	return merged
}

// icsCalendars keeps what was compiled last: every trigger that names a calendar compiles it,
// a file may be large, and the pages are worth sharing too.
var icsCalendars struct {
	sync.Mutex
	known map[icsKey]*eventCalendar
}

type icsKey struct {
	text string
	zone *zone
}

const maxICSCalendars = 64

// icsCalendar returns the calendar of an iCalendar file for triggers in a zone.
func icsCalendar(text string, z *zone) (*eventCalendar, error) {
	key := icsKey{text, z}
	icsCalendars.Lock()
	defer icsCalendars.Unlock()
	if c, ok := icsCalendars.known[key]; ok {
		return c, nil
	}
	events, err := ical.Parse(text, loadICSZone)
	if err != nil {
		return nil, err
	}
	if icsCalendars.known == nil || len(icsCalendars.known) >= maxICSCalendars {
		icsCalendars.known = make(map[icsKey]*eventCalendar)
	}
	c := newEventCalendar(events, z)
	icsCalendars.known[key] = c
	return c, nil
}
