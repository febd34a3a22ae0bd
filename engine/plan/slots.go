package plan

import (
	"cmp"
	"slices"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// assign gives slots to what waits: larger priority first, then the earlier instant, then the
// name. What finds no slot stays Queued; waiting for a slot is no misfire.
func (p *planner) assign() {
	free := p.in.MaxRuns - p.l.Claimed(p.in.Node)
	var waiting []int
	busy := make(map[string]int)
	begun := make(map[string]bool) // jobs of which an occurrence waits for a further attempt
	for i := range p.l.Runs {
		r := &p.l.Runs[i]
		if ahead := r.DecidedAt.Sub(p.in.Now); ahead > 0 && r.Cause != run.CauseSchedule && r.State == run.StateQueued {
			// A one-shot counts from when it was asked for, or when the attempt before it ended. The clock
			// that says when was ahead of this one, by which it counts from now.
			r.DecidedAt, r.DueAt = p.in.Now, r.DueAt.Add(-ahead)
			p.res.Changed = true
		}
		if r.State == run.StateQueued && r.Attempt > 1 {
			begun[r.Key.Job] = true
		}
		switch {
		case r.State.Claimed(), r.State == run.StateNeedsReview:
			busy[r.Key.Job]++
		case r.State != run.StateQueued:
		case p.spoiled[r.Key.Job]: // what cannot be read may be in flight
		case r.DueAt.After(p.in.Horizon):
			p.res.Next = earlier(p.res.Next, r.DueAt)
		default:
			waiting = append(waiting, i)
		}
	}
	slices.SortFunc(waiting, func(a, b int) int {
		return SlotOrder(&p.l.Runs[a], &p.l.Runs[b])
	})
	for _, i := range waiting {
		r := &p.l.Runs[i]
		if free <= 0 {
			return
		}
		if p.in.MaxClaimed > 0 && len(p.res.Claimed) >= p.in.MaxClaimed {
			p.res.Next = earlier(p.res.Next, p.in.Now) // the next turn goes on
			return
		}
		if !p.mayRunBeside(r, busy[r.Key.Job], begun[r.Key.Job]) {
			continue
		}
		if v, ok := p.in.Definitions.Version(r.Key.Job, r.Version); ok && v.Number < r.Version {
			r.Version = v.Number // asked for by one that is not in force yet: it says what it goes by
		}
		r.State, r.Node, r.Place, r.Term = run.StatePending, p.in.Node, p.in.Place, p.in.Term
		busy[r.Key.Job]++
		free--
		p.res.Claimed = append(p.res.Claimed, *r)
		p.res.Changed = true
	}
}

// SlotOrder orders runs that wait for a slot: larger priority first, then the earlier instant, then
// the name.
func SlotOrder(a, b *run.Run) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.ScheduledAt.Compare(b.ScheduledAt),
		a.Key.Compare(b.Key), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.ID, b.ID))
}

// mayRunBeside reports whether a run may start while that many of its job are in flight. A due
// one-shot waits for the running run under every policy but parallel, and a first attempt also for
// the end of an occurrence that has begun and waits for a further attempt.
func (p *planner) mayRunBeside(r *run.Run, inFlight int, begun bool) bool {
	if inFlight == 0 && (r.Attempt > 1 || !begun) {
		return true
	}
	job, ok := p.in.Definitions.Version(r.Key.Job, r.Version)
	return ok && job.Overlap == config.OverlapParallel && (job.MaxParallel == 0 || inFlight < job.MaxParallel)
}
