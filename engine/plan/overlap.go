package plan

import (
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// overlapAnswer is what the overlap policy says about an instant that is due.
type overlapAnswer int

const (
	overlapFree    overlapAnswer = iota // it may be decided
	overlapBlocked                      // it stays due until the occurrence before it has ended
	overlapSkipped                      // it is passed over, and not caught up later
)

// overlap judges an instant by what the job has unfinished: an occurrence counts until its last
// attempt has ended, the waiting time before retries included, and manual runs count as well.
func (p *planner) overlap(key run.Key, s *segment, at time.Time) overlapAnswer {
	unfinished := p.l.Unfinished(key.Job)
	if unfinished == 0 {
		return overlapFree
	}
	switch s.rules.overlap {
	case config.OverlapSerial:
		return overlapBlocked
	case config.OverlapSkip:
		if at.After(p.in.Now) { // not ahead of time: the run may end before the instant
			p.res.Next = earlier(p.res.Next, at)
			return overlapBlocked
		}
		return overlapSkipped
	case config.OverlapParallel:
		if s.rules.maxParallel > 0 && unfinished >= s.rules.maxParallel {
			return overlapBlocked
		}
		return overlapFree
	case config.OverlapReplace:
		// Not ahead of time: the running one keeps its time until the instant itself.
		if at.After(p.in.Now) {
			p.res.Next = earlier(p.res.Next, at)
			return overlapBlocked
		}
		if p.cancel(key.Job); p.l.Unfinished(key.Job) > 0 {
			return overlapBlocked
		}
		return overlapFree // what it replaces had not been sent
	}
	return overlapBlocked
}

// cancel asks for the end of a job's scheduled runs in flight, and ends those that wait for a
// slot at once. One-shots (retries, recoveries, manual runs) are never replaced.
func (p *planner) cancel(job string) {
	for i := range p.l.Runs {
		r := &p.l.Runs[i]
		if r.Key.Job == job && !r.Cancel && r.Cause == run.CauseSchedule && (r.State.Claimed() || r.State == run.StateQueued) {
			r.Cancel = true
			p.res.Changed = true
		}
	}
	p.endCanceled(func(r run.Run) bool { return r.Key.Job == job })
}

// endCanceled ends the runs that are to be canceled and that nobody has been given, or that were
// handed back unsent.
func (p *planner) endCanceled(which func(run.Run) bool) {
	var canceled []string
	for i := range p.l.Runs {
		if r := &p.l.Runs[i]; r.Cancel && r.State == run.StateQueued && which(*r) {
			canceled = append(canceled, r.ID)
		}
	}
	for _, id := range canceled {
		p.taken = nil // it makes room
		s, ok := Settle(p.l, id, Report{Outcome: run.Outcome{
			State: run.StateCanceled, Code: run.CodeCanceled, NotSent: true,
			Message: "replaced by a newer occurrence before it started", EndedAt: p.in.Now,
		}}, config.Job{})
		if ok {
			p.res.Settled = append(p.res.Settled, s)
			p.res.Changed = true
		}
	}
}
