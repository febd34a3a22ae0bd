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

// Excluded instants are passed over, a span of them in one step. The number of steps is
// bounded, so that no combination of schedule and calendar makes a search endless.
const (
	maxSteps      = 10_000    // of Next
	maxStepsBack  = 100_000   // of Prev, which looks at a stretch of time more than once
	maxCountSteps = 1_000_000 // of Count
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
		t.firstSeen = env.FirstSeen.UnixMicro()
	}
	t.interval = s.Interval.Microseconds()
	switch s.Kind {
	case KindManual:
	case KindCron:
		return t, t.bindCron()
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
		return errors.New("H stands for a value that depends on the trigger: its key job/trigger is needed")
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

func (t *Timeline) next(after int64) (int64, bool) {
	switch t.schedule.Kind {
	case KindManual:
	case KindEvery:
		return t.allowed(after + t.interval)
	case KindOnce:
		if after < t.at {
			return t.within(t.at)
		}
	case KindRate, KindCron:
		return t.search(max(after+1, t.start))
	}
	return 0, false
}

// within returns a single instant if it lies in range and is not excluded.
func (t *Timeline) within(at int64) (int64, bool) {
	if at < t.start || at >= t.end {
		return 0, false
	}
	if t.calendar != nil {
		if excluded, _ := t.calendar.at(floorDiv(at, micros)); excluded {
			return 0, false
		}
	}
	return at, true
}

// allowed returns the first moment at or after the given one that is not excluded.
func (t *Timeline) allowed(at int64) (int64, bool) {
	at = max(at, t.start)
	if t.calendar == nil {
		return at, at < t.end
	}
	until, steps := t.excludedUntil(at, maxSteps)
	return until, until < t.end && steps > 0
}

// search returns the first instant at or after from.
func (t *Timeline) search(from int64) (int64, bool) {
	if from >= t.end {
		return 0, false
	}
	var limit int64
	if t.cron != nil {
		// The instant searched from is the last one that does not count.
		limit = t.cron.limit(floorDiv(from-1, micros), searchYears)
	}
	for steps := maxSteps; steps > 0; steps-- {
		at, ok := t.candidate(from, limit)
		if !ok || at >= t.end {
			return 0, false
		}
		if t.calendar == nil {
			return at, true
		}
		if from, steps = t.excludedUntil(at, steps); from == at {
			return at, true
		}
	}
	return 0, false
}

// candidate returns the first instant at or after from, excluded or not.
func (t *Timeline) candidate(from, limit int64) (int64, bool) {
	if t.cron != nil {
		seconds, ok := t.cron.next(-floorDiv(-from, micros), limit)
		return seconds * micros, ok
	}
	if from <= t.base {
		return t.base, true
	}
	return t.base - floorDiv(t.base-from, t.interval)*t.interval, true
}

// excludedUntil returns the end of the excluded span that holds the instant, or the instant
// itself if it is not excluded, and what is left of the steps. If they are used up, the end
// may lie within the span.
func (t *Timeline) excludedUntil(at int64, steps int) (until int64, left int) {
	end := floorDiv(at, micros)
	for ; steps > 0 && end < maxInstant; steps-- {
		excluded, next := t.calendar.at(end)
		if !excluded {
			break
		}
		end = next
	}
	return max(at, min(end, maxInstant)*micros), steps
}

func (t *Timeline) prev(before int64) (int64, bool) {
	before = min(before, t.end)
	switch t.schedule.Kind {
	case KindManual, KindEvery:
		return 0, false
	case KindOnce:
		if t.at >= before {
			return 0, false
		}
		return t.within(t.at)
	case KindRate, KindCron:
	}
	var limit int64
	if t.cron != nil {
		limit = t.cron.limit(-floorDiv(-before, micros), -searchYears)
	}
	for steps := maxStepsBack; steps > 0; steps-- {
		at, ok := t.candidateBefore(before, limit)
		if !ok || at < t.start {
			return 0, false
		}
		if t.calendar == nil {
			return at, true
		}
		seconds := floorDiv(at, micros)
		if excluded, _ := t.calendar.at(seconds); !excluded {
			return at, true
		}
		var allowed int64
		if allowed, steps = lastAllowed(t.calendar, seconds, steps); steps > 0 {
			before = allowed * micros
		}
	}
	return 0, false
}

// lastAllowed returns the end of the last span before an excluded second that is not
// excluded, and what is left of the steps: none if nothing was found. Calendars look ahead
// only, so that it begins ever further back.
func lastAllowed(c calendar, utc int64, steps int) (end int64, left int) {
	const first, furthest = 64, 2 * searchYears * 366 * secondsPerDay
	for width := int64(first); width < furthest; width *= 4 {
		found := false
		for at := utc - width; at < utc; steps-- {
			if steps == 0 {
				return 0, 0
			}
			excluded, until := c.at(at)
			if !excluded {
				end, found = min(until, utc), true
			}
			at = until
		}
		if found {
			return end, steps
		}
	}
	return 0, 0
}

func (t *Timeline) candidateBefore(before, limit int64) (int64, bool) {
	if t.cron != nil {
		seconds, ok := t.cron.prev(floorDiv(before-1, micros), limit)
		return seconds * micros, ok
	}
	if before <= t.base {
		return 0, false
	}
	return t.base + (before-1-t.base)/t.interval*t.interval, true
}

func (t *Timeline) count(from, to int64) int64 {
	from, to = max(from, t.start), min(to, t.end)
	if from >= to {
		return 0
	}
	if t.calendar == nil {
		return t.countAll(from, to)
	}
	var n int64
	for steps := maxCountSteps; from < to; steps-- {
		if steps == 0 {
			return n + t.countAll(from, to)
		}
		excluded, until := t.calendar.at(floorDiv(from, micros))
		end := min(until, maxInstant) * micros
		if !excluded {
			n += t.countAll(from, min(end, to))
		}
		from = end
	}
	return n
}

// countAll counts the instants in [from, to), excluded or not.
func (t *Timeline) countAll(from, to int64) int64 {
	switch t.schedule.Kind {
	case KindCron:
		return t.cron.count(-floorDiv(-from, micros), -floorDiv(-to, micros))
	case KindRate:
		from = max(from, t.base)
		if from >= to {
			return 0
		}
		return floorDiv(to-1-t.base, t.interval) - floorDiv(from-1-t.base, t.interval)
	case KindOnce:
		if from <= t.at && t.at < to {
			return 1
		}
	case KindManual, KindEvery:
	}
	return 0
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
