package sim

import (
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// mostAhead is how long before its instant something may be decided.
const mostAhead = 500 * time.Millisecond

// verdict is a decision with what it was decided by.
type verdict struct {
	decision
	reason run.Reason // empty: it got a run
	at     time.Time  // when it was decided, by the clock of whoever did
	line   *line
	last   time.Time // the last instant that it covers
	next   time.Time // the first instant of the version after those; zero: there is none
}

// judge asks of all that a write decides whether it had to be decided so. The caller holds c.mu.
func (c *checker) judge(n *node, prev, next *state.Ledger) {
	decided := func(runs []run.Run) {
		for i := range runs {
			r := &runs[i]
			if r.Cause != run.CauseSchedule || c.model.judged[r.ID] {
				continue
			}
			c.model.judged[r.ID] = true
			c.judgeOne(n, prev, next, verdict{
				decision: decision{key: r.Key, version: r.Version, at: r.ScheduledAt, until: r.CoveredUntil, count: max(r.Coalesced, 1)},
				at:       r.DecidedAt,
			})
		}
	}
	for i := range next.Finished { // first what was open before
		if r := &next.Finished[i]; c.model.judged[r.ID] || r.Cause != run.CauseSchedule {
			c.occurrenceEnded(r)
		}
	}
	decided(next.Runs)
	decided(next.Finished)
	for i := range next.Finished {
		c.occurrenceEnded(&next.Finished[i])
	}
	for i := range next.Skipped {
		s := &next.Skipped[i]
		id := s.Occurrence + string(s.Reason) + s.ScheduledAt.String()
		if c.model.judged[id] {
			continue
		}
		c.model.judged[id] = true
		c.judgeOne(n, prev, next, verdict{
			decision: decision{key: s.Key, version: s.Version, at: s.ScheduledAt, until: s.CoveredUntil, count: s.Count},
			reason:   s.Reason, at: s.DecidedAt,
		})
	}
}

func (c *checker) judgeOne(n *node, prev, next *state.Ledger, v verdict) {
	v.line = c.model.line(v.key, v.version)
	if v.line == nil {
		c.failLocked("%s decides %s by version %d, which does not define it", n.name, v.key, v.version)
		return
	}
	v.last = v.decision.at
	if v.line.trigger.Schedule.Kind != schedule.KindEvery {
		for range v.count - 1 {
			v.last, _ = v.line.Next(v.last)
		}
		end := c.model.until(next.CatalogRevision, v.key.Job, v.version)
		if after, ok := v.line.Next(v.last); ok && (end.IsZero() || after.Before(end)) {
			v.next = after
		}
	} else {
		c.delayed(n, v)
	}
	c.counted(n, v)
	c.possibleVerdict(n, v)
	c.prompt(n, prev, v)
	if by := c.paused(next.CatalogRevision, v.key, v.at); by != "" {
		c.failLocked("%s decides the instant %s of %s, which %s keeps from it", n.name, v.decision.at, v.key, by)
	}
	c.world.tally("judged: " + v.name())
	if why := c.wrong(prev, next, v); why != "" {
		c.failLocked("%s decides %d instants of %s from %s to %s at %s: %s, which is wrong, since %s (%s, grace %s, window %s)",
			n.name, v.count, v.key, v.decision.at, v.last, v.at, v.name(), why,
			v.line.trigger.Misfire.Policy, v.line.trigger.Misfire.Grace, v.line.trigger.Misfire.Window)
	}
}

func (v verdict) name() string {
	switch {
	case v.reason != "":
		return "skipped, " + string(v.reason)
	case v.count > 1:
		return "coalesced"
	}
	return "fired"
}

// wrong says why a decision should have been another one; empty: it should not.
func (c *checker) wrong(prev, next *state.Ledger, v verdict) string {
	misfire := v.line.trigger.Misfire
	first, last := v.at.Sub(v.decision.at), v.at.Sub(v.last) // how late
	late := func(limit time.Duration) bool { return !v.next.IsZero() && v.at.Sub(v.next) > limit }
	if v.reason != "" && last < 0 && (v.reason != run.ReasonResumeSkip || -last > mostAhead+time.Microsecond) {
		return "the last of them was not due yet" // what a resume waives is certain ahead of time
	}
	switch v.reason {
	case run.ReasonWindow:
		switch {
		case misfire.Window == 0 || last <= misfire.Window:
			return "the last of them is not older than the window"
		case late(misfire.Window):
			return "the one after them is older than the window as well"
		}
	case run.ReasonMisfire:
		switch {
		case misfire.Policy != config.MisfireSkip:
			return "the policy is another one"
		case last <= misfire.Grace:
			return "the last of them is within the grace"
		case late(misfire.Grace):
			return "the one after them is a misfire as well"
		}
	case run.ReasonOverlap:
		switch {
		case v.line.job.Overlap != config.OverlapSkip:
			return "the overlap is " + string(v.line.job.Overlap)
		case !busy(prev, next, v.key.Job):
			return "the job has nothing open"
		case late(0):
			return "the one after them is due as well"
		}
	case run.ReasonResumeSkip:
		if !v.last.Before(c.waived(v.key)) {
			return "no resume has waived them"
		}
	case run.ReasonLost:
		return "only a run is lost"
	default:
		return wrongRun(v, misfire, first, late)
	}
	return ""
}

// wrongRun is wrong for instants that got a run.
func wrongRun(v verdict, misfire config.Misfire, first time.Duration, late func(time.Duration) bool) string {
	switch {
	case -first > mostAhead+time.Microsecond:
		return "it is far ahead of time"
	case misfire.Window > 0 && first > misfire.Window:
		return "the first of them is older than the window"
	case first <= misfire.Grace && v.count > 1:
		return "the first of them is within the grace"
	case first <= misfire.Grace:
		return ""
	case misfire.Policy == config.MisfireSkip:
		return "it is a misfire"
	case misfire.Policy == config.MisfireRunOnce && late(0):
		return "the one after them is due as well"
	case misfire.Policy != config.MisfireRunOnce && v.count > 1:
		return "the policy coalesces nothing"
	}
	return ""
}

// busy reports whether a job has something unfinished while a write is planned: what that leaves
// open, and what it ends because something newer replaces it.
func busy(prev, next *state.Ledger, job string) bool {
	for i := range next.Runs {
		if next.Runs[i].Key.Job == job {
			return true
		}
	}
	for i := range next.Finished {
		r := &next.Finished[i]
		before := func(other run.Run) bool { return other.ID == r.ID }
		if r.Key.Job == job && r.State == run.StateCanceled && !slices.ContainsFunc(prev.Finished, before) {
			return true
		}
	}
	return false
}

// waived is up to when a resume has ever waived the instants of a trigger.
func (c *checker) waived(key run.Key) (latest time.Time) {
	for _, catalog := range c.model.catalogs {
		for _, name := range pauseNames(key) {
			if at := catalog.Skips[name]; at.After(latest) {
				latest = at
			}
		}
	}
	return latest
}

// delayed checks that a fixed delay was kept: an interval from the end of the occurrence before it,
// or from where the trigger counts from. Clocks that do not agree make it shorter.
func (c *checker) delayed(n *node, v verdict) {
	from := v.line.base
	if start := v.line.trigger.Schedule.Start; start.After(from) {
		from = start
	}
	if end := c.model.ends[v.key]; !end.IsZero() {
		from = end
	}
	if gap := v.decision.at.Sub(from); c.model.clocks && gap < v.line.trigger.Schedule.Interval-time.Microsecond {
		c.failLocked("%s decides %s at %s, %s after the end of what was before it; the delay is %s",
			n.name, v.key, v.decision.at, gap, v.line.trigger.Schedule.Interval)
	}
	if v.reason != "" {
		c.model.ends[v.key] = v.at // the delay starts again
	}
}

// counted checks that a limited trigger has not fired more often than its schedule says, whatever
// else was edited meanwhile.
func (c *checker) counted(n *node, v verdict) {
	limit := v.line.trigger.Schedule.Count
	if limit == 0 || v.reason != "" {
		return
	}
	f := c.model.firedBy(v.key, v.line.trigger.Schedule)
	f.times++
	c.model.fired[v.key] = f
	if f.times > limit {
		c.failLocked("%s fires %s for the %d. time, by a schedule that says %d times", n.name, v.key, f.times, limit)
	}
}

// occurrenceEnded notes from when a fixed delay counts.
func (c *checker) occurrenceEnded(r *run.Run) {
	if c.model.closed[r.ID] {
		return
	}
	c.model.closed[r.ID] = true
	l := c.model.line(r.Key, r.Version)
	if l != nil && l.trigger.Schedule.Kind == schedule.KindEvery && !r.Again && r.State != run.StateNeedsReview {
		c.model.ends[r.Key] = r.EndedAt
	}
}
