package schedule

import (
	"errors"
	"iter"
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
// in UTC. It is immutable and safe for concurrent use.
type Timeline struct {
	schedule Schedule
	key      string
	cron     *cronTimes // KindCron
	calendar calendar   // nil: none
	zone     *zone

	// Microseconds since the Unix epoch.
	start, end int64 // [start, end)
	base       int64 // KindRate: instant 0; KindEvery: what the first interval is added to
	firstSeen  int64
	interval   int64
	at         int64 // KindOnce
}

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
	t := &Timeline{schedule: s, key: env.Key, start: minInstant * micros, end: maxInstant * micros}
	if err := t.bindZone(); err != nil {
		return nil, err
	}
	if s.Calendar != "" {
		c, err := compileCalendar(s.Calendar, env.Calendars, t.zone)
		if err != nil {
			return nil, err
		}
		t.calendar = c
	}
	if !s.Start.IsZero() {
		t.start = s.Start.UnixMicro()
	}
	if !s.End.IsZero() {
		t.end = s.End.UnixMicro()
	}
	if !env.FirstSeen.IsZero() {
		var ok bool
		if t.firstSeen, ok = toMicros(env.FirstSeen); !ok {
			t.firstSeen = t.end
		}
	}
	t.interval = s.Interval.Microseconds()
	switch s.Kind {
	case KindManual:
	case KindCron:
		if err := t.bindCron(); err != nil {
			return nil, err
		}
	case KindRate:
		// Without a start, n counts from 1.
		t.base = t.firstSeen + t.interval
		if !s.Start.IsZero() {
			t.base = t.start
		}
		t.start = max(t.start, t.base)
	case KindEvery:
		t.base = t.firstSeen
		if !s.Start.IsZero() {
			t.base = t.start
		}
	case KindOnce:
		t.at = s.At.UnixMicro()
	}
	return t, nil
}

func (t *Timeline) bindZone() (err error) {
	if t.schedule.TimeZone == "" {
		t.zone = utcZone
		return nil
	}
	t.zone, err = loadZone(t.schedule.TimeZone)
	return err
}

func (t *Timeline) bindCron() error {
	text, err := parseCron(t.schedule.Cron)
	if err != nil {
		return err
	}
	if t.key == "" && text.usesHash() {
		return errors.New("the value of H depends on the trigger: its key job/trigger is needed")
	}
	table, err := newCronTable(text, t.key)
	if err != nil {
		return err
	}
	t.cron = &cronTimes{
		table:    table,
		zone:     t.zone,
		both:     t.schedule.Ambiguous == AmbiguousBoth || t.schedule.Ambiguous != AmbiguousFirst && text.followsClock(),
		atGapEnd: t.schedule.Gap == GapNext,
	}
	return nil
}

// Schedule returns what the timeline was compiled from.
func (t *Timeline) Schedule() Schedule { return t.schedule }

// Location returns the zone that the schedule is computed in.
func (t *Timeline) Location() *time.Location { return t.zone.location }

// First returns the first instant of a fixed delay: one interval after start, or after it
// was first seen if that is later than what start gives. For other kinds it is the first
// instant after it was first seen.
func (t *Timeline) First() (time.Time, bool) {
	if t.schedule.Kind != KindEvery {
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
		if t.schedule.Kind == KindEvery {
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
	if t.schedule.Jitter <= 0 {
		return 0
	}
	return time.Duration(hash64(t.key, occurrenceID) % uint64(t.schedule.Jitter))
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
