package plan

import (
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// tick is the resolution of instants.
const tick = time.Microsecond

// Track is the line of instants of one trigger through the versions of its job: instants
// before a version's effectiveAt are decided by the version before it, later ones by it.
type Track struct {
	Key      run.Key
	segments []segment // by time, without overlaps
}

// segment is the part of a track that one version decides: [from, until).
type segment struct {
	version  int
	outdated bool  // of a version that is not kept much longer
	broken   error // why the instants are not known, although there may be some
	from     time.Time
	until    time.Time // zero: open
	timeline *schedule.Timeline
	rules    rules
}

// cut returns the earlier of t and the segment's end.
func (s *segment) cut(t time.Time) time.Time {
	if !s.until.IsZero() && s.until.Before(t) {
		return s.until
	}
	return t
}

// next returns the segment's first instant at or after from. What the ledger remembers of the
// trigger tells where a fixed delay stands and whether a limited trigger is used up.
func (s *segment) next(from time.Time, remembered state.Trigger) (time.Time, bool) {
	if from.Before(s.from) {
		from = s.from
	}
	if s.broken != nil {
		return from, s.until.IsZero() || from.Before(s.until)
	}
	if s.rules.usedUp(remembered) {
		return time.Time{}, false
	}
	var at time.Time
	var ok bool
	if s.rules.kind == schedule.KindEvery {
		at, ok = s.nextDelayed(from, remembered)
	} else {
		at, ok = s.timeline.Next(from.Add(-time.Nanosecond))
	}
	if !ok || (!s.until.IsZero() && !at.Before(s.until)) {
		return time.Time{}, false
	}
	return at, true
}

// nextDelayed is next for a fixed delay: one interval after the end of the previous occurrence.
func (s *segment) nextDelayed(from time.Time, remembered state.Trigger) (time.Time, bool) {
	if remembered.AwaitsEnd {
		return time.Time{}, false
	}
	at, ok := s.timeline.First()
	if !remembered.LastEnd.IsZero() {
		at, ok = s.timeline.Next(remembered.LastEnd)
	}
	if ok && at.Before(s.from) {
		// A shorter interval would lie in the past at once, and an edit never starts a run by itself.
		at, ok = s.timeline.Next(s.from)
	}
	if ok && at.Before(from) {
		// An instant that could not be decided before: it is due, not gone. Nor is one decided again
		// that was decided before the clock went back.
		// It waits for the end of what is excluded meanwhile, and there is none after the schedule's end.
		at, ok = s.timeline.Next(from.Add(tick - time.Nanosecond).Truncate(tick).Add(-s.rules.interval))
	}
	return at, ok
}

// coveredUntil returns the first instant of this version after the covered ones, which end
// before end; zero where there is none.
func (s *segment) coveredUntil(end time.Time) time.Time {
	if s.broken != nil {
		return s.cut(end)
	}
	switch s.rules.kind {
	case schedule.KindEvery, schedule.KindOnce, schedule.KindManual:
		return time.Time{}
	case schedule.KindCron, schedule.KindRate:
	}
	next, ok := s.timeline.Next(end.Add(-time.Nanosecond))
	if !ok {
		return time.Time{}
	}
	return s.cut(next)
}

// count returns how many instants lie in [from, to), 1 where that is not known.
func (s *segment) count(from, to time.Time) int {
	if s.broken != nil || s.rules.kind == schedule.KindEvery {
		return 1
	}
	return s.timeline.Count(from, to)
}

// first returns the first undecided instant at or after from, and the segment that decides it.
func (t *Track) first(from time.Time, remembered state.Trigger) (time.Time, *segment, bool) {
	for i := range t.segments {
		s := &t.segments[i]
		if !s.until.IsZero() && !from.Before(s.until) {
			continue
		}
		if at, ok := s.next(from, remembered); ok {
			return at, s, true
		}
	}
	return time.Time{}, nil, false
}

// Undecided returns the first instant of the trigger that the ledger says is not decided.
func (t *Track) Undecided(l *state.Ledger) (time.Time, bool) {
	remembered := l.Triggers[t.Key]
	at, _, ok := t.first(from(remembered, l.Watermark), remembered)
	return at, ok
}

// Next returns the first undecided instant strictly after now: the one to show, which is never
// in the past. For a fixed delay that waits for its run to end there is none.
func (t *Track) Next(l *state.Ledger, now time.Time) (time.Time, bool) {
	remembered := l.Triggers[t.Key]
	start := from(remembered, l.Watermark)
	if after := now.Add(tick); start.Before(after) {
		start = after
	}
	at, s, ok := t.first(start, remembered)
	return at, ok && s.broken == nil
}

// After returns the n-th instant after a time, or after the trigger was last let go on if that is
// later, by the version in force and whatever is decided already: for a fixed delay, n intervals
// later. There is none where the schedule, or a limit, ends before.
func (d *Definitions) After(t *Track, l *state.Ledger, after time.Time, n int) (time.Time, bool) {
	if len(t.segments) == 0 {
		return time.Time{}, false
	}
	s, remembered := &t.segments[len(t.segments)-1], l.Triggers[t.Key]
	if s.broken != nil || !s.until.IsZero() || s.rules.usedUp(remembered) {
		return time.Time{}, false
	}
	for _, at := range []time.Time{s.from, d.resumed(t.Key)} {
		if at.After(after) {
			after = at
		}
	}
	ok := true
	for ; n > 0 && ok; n-- {
		after, ok = s.timeline.Next(after)
	}
	return after, ok
}

// from is where the undecided instants of a trigger begin.
func from(remembered state.Trigger, watermark time.Time) time.Time {
	if remembered.Lags() {
		return remembered.Cursor
	}
	return watermark
}
