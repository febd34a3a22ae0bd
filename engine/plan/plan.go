package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// maxPerTurn bounds the occurrences that one trigger gets in one turn; the rest follow in the
// next ones.
const maxPerTurn = 200

// Input is all that a turn of planning depends on besides the ledger.
type Input struct {
	Namespace, App string
	Node           string // who plans, and sends
	Place          string // the pod, by UID, in which the node runs; may be empty
	Term           int64
	// Instance: the jobs are each instance's own, and so are their occurrences.
	Instance bool
	// Now is the wall clock, in UTC; Horizon, not before Now, is how far ahead decisions are
	// committed: an instant up to it is decided now and sent when it comes.
	Now, Horizon time.Time
	// MaxRuns is how many runs this node may hold at once.
	MaxRuns int
	// MaxBytes is how large the ledger may be; 0 means [DefaultMaxBytes].
	MaxBytes int
	// MaxClaimed bounds the runs that this turn gives to the node, where a swap was refused as too large;
	// 0: as many as MaxRuns allows.
	MaxClaimed  int
	NewID       func() string
	Definitions *Definitions
	Index       *Index
}

// Result is what a turn decided, beside the changed ledger.
type Result struct {
	// Changed: the ledger differs from what it was and has to be committed.
	Changed bool
	// Claimed are the runs given to this node by this turn, to be sent at their DueAt.
	Claimed []run.Run
	// Settled are runs that ended without having been given to a node.
	Settled []Settled
	// Missed are instants that got no run of their own.
	Missed []run.Skip
	// Moves are for the index, once this is committed.
	Moves []Move
	// Next is the earliest moment at which something will be due; zero: nothing known.
	Next time.Time
	// Decided counts what was decided: runs and skipped ranges. Bytes is about how large the ledger is
	// with it, where anything was.
	Decided, Bytes int
	// Full: something that is due found no room, whoever it belongs to. Filled are the jobs that have
	// to wait because they fill their share of the ledger.
	Full   bool
	Filled []string
}

// Plan decides everything that is due up to in.Horizon and changes l, which must be a private
// copy, accordingly. The caller commits l, then acts on the result; if the commit fails the
// result is void.
func Plan(in Input, l *state.Ledger) Result {
	p := planner{in: in, l: l, spoiled: l.Spoiled()}
	if l.CatalogRevision != in.Definitions.Revision {
		l.CatalogRevision = in.Definitions.Revision
		p.res.Changed = true
	}
	p.endCanceled(func(run.Run) bool { return true }) // before their instants' followers are judged
	keys, next := in.Index.until(in.Horizon)
	p.res.Next = next
	for key := range l.Triggers {
		keys = append(keys, key)
	}
	for key := range in.Index.lags {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, run.Key.Compare)
	p.decideAll(slices.Compact(keys))
	p.moveCursors()
	p.forgetGone()
	p.assign()
	if p.taken != nil {
		p.res.Bytes = p.taken.all.bytes
	}
	return p.res
}

// planner is one turn.
type planner struct {
	in     Input
	l      *state.Ledger
	res    Result
	looked []standing
	taken  *room // what the ledger holds; nil: to be counted
	// spoiled are the jobs of which the ledger has a record that cannot be read.
	spoiled map[string]bool
}

// standing is where a trigger stands after a turn has looked at it.
type standing struct {
	key        run.Key
	remembered state.Trigger
	// at is the trigger's first undecided instant, zero where there is none; lags says that it is
	// due already or that the watermark has passed it, advanced that the turn has decided some
	// before it.
	at             time.Time
	lags, advanced bool
}

// mostAhead is how far ahead of the planner's clock a remembered time may lie: those of sidecars
// whose clocks may be trusted do not differ by more.
const mostAhead = time.Minute

// possible cuts what is remembered to what is possible: a time in the far future, written by a
// sidecar whose clock was off, must not make a trigger stand still until then.
func possible(t state.Trigger, now time.Time) state.Trigger {
	if t.LastEnd.After(now.Add(mostAhead)) {
		t.LastEnd = now
	}
	if t.NextCatchUp.After(now.Add(mostAhead)) {
		t.NextCatchUp = time.Time{}
	}
	return t
}

// step decides the first undecided instant of a segment, alone or with those behind it, and
// returns up to where instants are decided now; or says that it has to stay due.
func (p *planner) step(key run.Key, s *segment, at time.Time, remembered *state.Trigger) (decided time.Time, blocked bool) {
	if s.outdated {
		// Whatever stands in the way: the version is dropped, and nothing may vanish with it.
		return p.skip(key, s, at, s.cut(p.in.Now.Add(tick)), run.ReasonWindow, remembered), false
	}
	if p.spoiled[key.Job] {
		return time.Time{}, true
	}
	if paused, until := p.in.Definitions.Paused(key, p.in.Now); paused {
		p.res.Next = earlier(p.res.Next, until)
		return time.Time{}, true
	}
	if !p.fits(key.Job) {
		return time.Time{}, true
	}
	if waived := p.in.Definitions.waived(key); at.Before(waived) {
		// Not ahead of time: where the resume was asked, the clock may have been ahead of this one.
		return p.skip(key, s, at, s.cut(earlier(waived, p.in.Now.Add(tick))), run.ReasonResumeSkip, remembered), false
	}
	if s.broken != nil {
		return time.Time{}, true
	}
	// Everything due by now may be passed over or coalesced; what is only due by the horizon
	// is decided instant by instant.
	end := s.cut(p.in.Now.Add(tick))
	misfire := s.rules.misfire
	if misfire.Window > 0 && p.in.Now.Sub(at) > misfire.Window {
		return p.skip(key, s, at, s.cut(p.in.Now.Add(-misfire.Window)), run.ReasonWindow, remembered), false
	}
	late := p.in.Now.Sub(at) > misfire.Grace
	if late && misfire.Policy == config.MisfireCatchUp && remembered.NextCatchUp.After(p.in.Now) {
		// Asked before the overlap, which would have it replace its predecessor before its own turn.
		p.res.Next = earlier(p.res.Next, remembered.NextCatchUp)
		return time.Time{}, true
	}
	switch p.overlap(key, s, at) {
	case overlapBlocked:
		return time.Time{}, true
	case overlapSkipped:
		return p.skip(key, s, at, end, run.ReasonOverlap, remembered), false
	case overlapFree:
	}
	if late {
		switch misfire.Policy {
		case config.MisfireRunOnce:
			return p.fire(key, s, at, end, remembered), false
		case config.MisfireSkip:
			return p.skip(key, s, at, s.cut(p.in.Now.Add(-misfire.Grace)), run.ReasonMisfire, remembered), false
		case config.MisfireCatchUp:
			remembered.NextCatchUp = p.in.Now.Add(time.Second / time.Duration(max(misfire.Limit, 1)))
		}
	}
	return p.fire(key, s, at, at.Add(tick), remembered), false
}

// fits reports whether a decision about a job finds room in the ledger.
func (p *planner) fits(job string) bool {
	if p.taken == nil {
		p.taken = roomOf(p.l)
	}
	switch p.taken.decide(job, p.in.MaxBytes) {
	case wantFull:
		p.res.Full = true
		return false
	case wantOverShare:
		if !slices.Contains(p.res.Filled, job) {
			p.res.Filled = append(p.res.Filled, job)
		}
		return false
	case wantGranted:
	}
	return true
}

// fire enqueues one run for the instants in [at, end) and returns end, or the end of a fixed delay.
func (p *planner) fire(key run.Key, s *segment, at, end time.Time, remembered *state.Trigger) time.Time {
	n := s.count(at, end)
	id := p.occurrence(key, at)
	r := run.Run{
		ID: p.in.NewID(), Occurrence: id, Key: key, Version: s.version, Cause: run.CauseSchedule,
		State: run.StateQueued, Priority: s.rules.priority,
		ScheduledAt: at, CoveredUntil: s.coveredUntil(end), DueAt: at.Add(s.timeline.Jitter(id)).Truncate(tick),
		Attempt: 1, DecidedAt: p.in.Now,
	}
	if n > 1 {
		r.Coalesced = n
		p.res.Missed = append(p.res.Missed, run.Skip{
			Occurrence: id, Key: key, Version: s.version, Reason: run.ReasonMisfire,
			ScheduledAt: at, CoveredUntil: r.CoveredUntil, Count: n - 1, DecidedAt: p.in.Now,
		})
	}
	p.l.Runs = append(p.l.Runs, r)
	if p.res.Decided++; p.taken != nil {
		p.taken.add(&r)
	}
	s.rules.count(remembered)
	if s.rules.kind == schedule.KindEvery {
		remembered.AwaitsEnd = true
	}
	p.res.Changed = true
	return end
}

// skip records that the instants in [at, end) get no run, and returns end. The range holds at
// least the instant at.
func (p *planner) skip(key run.Key, s *segment, at, end time.Time, reason run.Reason, remembered *state.Trigger) time.Time {
	if !end.After(at) {
		end = at.Add(tick)
	}
	skip := run.Skip{
		Occurrence: p.occurrence(key, at),
		Key:        key, Version: s.version, Reason: reason,
		ScheduledAt: at, CoveredUntil: s.coveredUntil(end), Count: s.count(at, end), DecidedAt: p.in.Now,
	}
	p.l.Skipped = append(p.l.Skipped, skip)
	p.res.Missed = append(p.res.Missed, skip)
	if p.res.Decided++; p.taken != nil {
		p.taken.all.bytes += skipWeight + len(key.Job) + len(key.Trigger)
	}
	if s.rules.kind == schedule.KindEvery {
		remembered.LastEnd = p.in.Now // the delay starts again
	}
	p.res.Changed = true
	return end
}

// occurrence names what is decided about an instant. Among instances it includes the node: each of
// them has an occurrence of its own.
func (p *planner) occurrence(key run.Key, at time.Time) string {
	request := ""
	if p.in.Instance {
		request = "instance " + p.in.Node
	}
	return run.OccurrenceID(p.in.Namespace, p.in.App, key, at, request)
}

// unfinished reports whether an occurrence of this very trigger has not ended.
func (p *planner) unfinished(key run.Key) bool {
	return slices.ContainsFunc(p.l.Runs, func(r run.Run) bool { return r.Key == key })
}

// left reports whether the job is not defined any more at now.
func (d *Definitions) left(job string, now time.Time) bool {
	j := d.Jobs[job]
	if j == nil {
		return true
	}
	v, ok := j.Current()
	return !ok && !now.Before(v.From)
}

// Clone returns a copy of the ledger that shares nothing that planning changes.
func Clone(l *state.Ledger) *state.Ledger {
	c := *l
	c.Triggers = maps.Clone(l.Triggers)
	c.Runs = slices.Clone(l.Runs)
	c.Finished = slices.Clone(l.Finished)
	c.Skipped = slices.Clone(l.Skipped)
	return &c
}
