package schedule

import (
	"iter"
	"slices"
	"time"
)

// Env is what a schedule needs besides its text to be computed.
type Env struct {
	// Key is "job/trigger": what H and jitter are hashed from.
	Key string
	// FirstSeen is the base of rate and every without a start, cut to microseconds. The
	// zero value is the Unix epoch.
	FirstSeen time.Time
	// Calendars by name; those that the schedule does not use are not looked at.
	Calendars map[string]CalendarSpec
}

// Timeline is a schedule bound to its environment: a set of instants that can be walked,
// in UTC. It is immutable and safe for concurrent use. There is one for each trigger, so it
// keeps no copy of the schedule but only what differs from trigger to trigger.
type Timeline struct {
	key     string
	zone    *zone
	cron    *cronTimes // KindCron
	options *options   // never nil, shared by all that have none

	// Microseconds since the Unix epoch.
	firstSeen int64
	base      int64 // KindRate: instant 0; KindEvery: what the first interval is added to; KindOnce: the instant
	interval  int64

	repeats   int32 // KindEvery
	kind      Kind
	ambiguous uint8 // in ambiguousNames
	gap       uint8 // in gapNames
}

// options are what most schedules do without.
type options struct {
	start, end   int64    // microseconds, [start, end)
	calendar     calendar // nil: none
	calendarName string
	jitter       time.Duration
}

var noOptions = options{start: minInstant * micros, end: maxInstant * micros}

var (
	ambiguousNames = []string{"", AmbiguousAuto, AmbiguousFirst, AmbiguousBoth}
	gapNames       = []string{"", GapSkip, GapNext}
)

// Instants outside these seconds do not exist: from year 1 to the end of MaxYear.
const (
	minInstant = -62135596800
	maxInstant = 253370764800

	micros = 1_000_000
)

// Compile binds a schedule to its environment. It fails if the schedule is not valid, or
// if its zone or calendar does not exist. A date that exists in no year is no error here:
// the timeline is empty then, and Validate reports it.
func (s Schedule) Compile(env Env) (*Timeline, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t := &Timeline{
		key:       env.Key,
		zone:      utcZone,
		interval:  s.Interval.Microseconds(),
		repeats:   int32(s.Count),
		kind:      s.Kind,
		ambiguous: uint8(slices.Index(ambiguousNames, s.Ambiguous)),
		gap:       uint8(slices.Index(gapNames, s.Gap)),
	}
	if s.TimeZone != "" {
		var err error
		if t.zone, err = loadZone(s.TimeZone); err != nil {
			return nil, err
		}
	}
	var err error
	if t.options, err = s.options(env.Calendars, t.zone); err != nil {
		return nil, err
	}
	if !env.FirstSeen.IsZero() {
		var ok bool
		if t.firstSeen, ok = toMicros(env.FirstSeen); !ok {
			t.firstSeen = t.options.end
		}
	}
	switch s.Kind {
	case KindManual:
	case KindCron:
		if t.cron, err = newCronTimes(s, env.Key, t.zone); err != nil {
			return nil, err
		}
	case KindRate:
		// Without a start, n counts from 1.
		t.base = t.firstSeen + t.interval
		if !s.Start.IsZero() {
			t.base = t.options.start
		}
	case KindEvery:
		t.base = t.firstSeen
		if !s.Start.IsZero() {
			t.base = t.options.start
		}
	case KindOnce:
		t.base = s.At.UnixMicro()
	}
	return t, nil
}

// options returns what few schedules have, shared by those that have none of it.
func (s Schedule) options(calendars map[string]CalendarSpec, z *zone) (*options, error) {
	o := noOptions
	if !s.Start.IsZero() {
		o.start = s.Start.UnixMicro()
	}
	if !s.End.IsZero() {
		o.end = s.End.UnixMicro()
	}
	o.jitter = s.Jitter
	if s.Calendar != "" {
		c, err := compileCalendar(s.Calendar, calendars, z)
		if err != nil {
			return nil, err
		}
		o.calendar, o.calendarName = c, s.Calendar
	}
	if o == noOptions {
		return &noOptions, nil
	}
	return &o, nil
}

// Schedule returns what the timeline was compiled from, its times in UTC.
func (t *Timeline) Schedule() Schedule {
	s := Schedule{
		Kind:      t.kind,
		Interval:  time.Duration(t.interval) * time.Microsecond,
		Count:     int(t.repeats),
		Calendar:  t.options.calendarName,
		Ambiguous: ambiguousNames[t.ambiguous],
		Gap:       gapNames[t.gap],
		Jitter:    t.options.jitter,
	}
	if t.zone != utcZone { // which is the one of schedules without a zone; UTC by name is another
		s.TimeZone = t.zone.location.String()
	}
	if t.options.start != noOptions.start {
		s.Start = time.UnixMicro(t.options.start).UTC()
	}
	if t.options.end != noOptions.end {
		s.End = time.UnixMicro(t.options.end).UTC()
	}
	switch t.kind {
	case KindCron:
		s.Cron = t.cron.text
	case KindOnce:
		s.At = time.UnixMicro(t.base).UTC()
	case KindManual, KindRate, KindEvery:
	}
	return s
}

// Location returns the zone that the schedule is computed in.
func (t *Timeline) Location() *time.Location { return t.zone.location }

// First returns the first instant of a fixed delay: one interval after start, or after it
// was first seen if that is later than what start gives. For other kinds it is the first
// instant after it was first seen.
func (t *Timeline) First() (time.Time, bool) {
	if t.kind != KindEvery {
		return toTime(t.next(t.firstSeen - 1))
	}
	first := t.base + t.interval
	if first < t.firstSeen {
		first = t.firstSeen + t.interval
	}
	return toTime(t.allowed(first))
}

// Next returns the first instant strictly after the given one; ok is false if there is
// none, for a cron expression none within five years. For KindEvery, whose instants depend
// on how long runs take, it is the first allowed instant that is at least one interval
// after the given end of the previous occurrence. The repeat count of KindEvery is not
// applied, since it counts what has fired.
func (t *Timeline) Next(after time.Time) (next time.Time, ok bool) {
	us, ok := toMicros(after)
	if !ok {
		return time.Time{}, false
	}
	return toTime(t.next(us))
}

// Prev returns the last instant strictly before the given one, for a cron expression
// within five years. KindEvery has none.
func (t *Timeline) Prev(before time.Time) (prev time.Time, ok bool) {
	if before.Year() < 1 {
		return time.Time{}, false
	}
	return toTime(t.prev(ceilMicros(before)))
}

// Count returns how many instants lie in [from, to), without walking through them: whole
// months at once, and whole spans between what a calendar excludes. Where a calendar changes
// more than a million times in between, the rest is counted as if it excluded nothing.
// KindEvery has no instants that are known ahead.
func (t *Timeline) Count(from, to time.Time) int {
	return int(t.count(ceilMicros(from), ceilMicros(to)))
}

// Between walks through the instants in [from, to), which are those that Count counts as
// long as there are never more than five years between two.
func (t *Timeline) Between(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if t.kind == KindEvery {
			return
		}
		for at, end := ceilMicros(from)-1, ceilMicros(to); ; {
			next, ok := t.next(at)
			if !ok || next >= end || !yield(time.UnixMicro(next).UTC()) {
				return
			}
			at = next
		}
	}
}

// Jitter returns the delay of one occurrence's sending, from 0 to below the schedule's
// jitter. It depends on the occurrence and the trigger alone, so that whoever sends it
// waits equally long.
func (t *Timeline) Jitter(occurrenceID string) time.Duration {
	if t.options.jitter <= 0 {
		return 0
	}
	// Whole microseconds, as all instants are.
	return time.Duration(hash64(t.key, occurrenceID) % uint64(t.options.jitter)).Truncate(time.Microsecond)
}

// toMicros returns the whole microseconds of an instant; ok is false beyond the years that
// have instants. Earlier ones count as right before the first.
func toMicros(t time.Time) (us int64, ok bool) {
	switch y := t.Year(); {
	case y < 1:
		return minInstant*micros - 1, true
	case y > MaxYear+1:
		return 0, false
	}
	return t.UnixMicro(), true
}

// ceilMicros rounds up, for the ends of half-open ranges.
func ceilMicros(t time.Time) int64 {
	us, ok := toMicros(t)
	if !ok {
		return maxInstant * micros
	}
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return us
}

func toTime(us int64, ok bool) (time.Time, bool) {
	if !ok {
		return time.Time{}, false
	}
	return time.UnixMicro(us).UTC(), true
}
