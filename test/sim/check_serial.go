package sim

import (
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// alone checks that no occurrence of a job starts while another one is open, unless the version that
// decided it allows that. An occurrence is open from its first attempt until its last one has ended:
// while it waits for a retry, and while it waits for a person. The caller holds c.mu.
func (c *checker) alone(n *node, prev, next *state.Ledger) {
	var fresh []*run.Run // claimed by this write
	taken := make(map[string]bool)
	before := make(map[string]*run.Run, len(prev.Runs))
	for i := range prev.Runs {
		before[prev.Runs[i].ID] = &prev.Runs[i]
	}
	for i := range next.Runs {
		r := &next.Runs[i]
		was := before[r.ID]
		if r.State == run.StatePending && (was == nil || !was.State.Claimed() || was.Node != r.Node || was.Term != r.Term) {
			fresh, taken[r.ID] = append(fresh, r), true
			c.model.claimed[r.ID] = time.Now()
		}
	}
	for _, r := range fresh {
		job := c.jobs[version{r.Key.Job, r.Version}]
		flying, same := 0, 0
		for i := range next.Runs {
			o := &next.Runs[i]
			switch {
			case o.Key.Job != r.Key.Job || o.ID == r.ID:
			case taken[o.ID]:
				// In the same write another version may have let it start beside this one.
				if c.jobs[version{o.Key.Job, o.Version}].Overlap != config.OverlapParallel {
					flying++
				} else if o.Version == r.Version {
					same++
				}
			case o.State.Claimed(), o.State == run.StateNeedsReview:
				flying++
			case job.Overlap != config.OverlapParallel && r.Attempt == 1 && o.Attempt > 1 && o.Occurrence != r.Occurrence:
				c.failLocked("%s starts %s at %s, whose occurrence at %s waits for its attempt %d", n.name, r.Key, r.ScheduledAt, o.ScheduledAt, o.Attempt)
			}
		}
		switch limit := job.MaxParallel; {
		case job.Overlap != config.OverlapParallel && flying > 0:
			c.failLocked("%s starts run %s of %s, which is %s, beside %d others", n.name, r.ID, r.Key, job.Overlap, flying)
		case job.Overlap == config.OverlapParallel && limit > 0 && flying+same+1 > limit:
			c.failLocked("%s starts run %s of %s beside %d others, of which %d may run at once", n.name, r.ID, r.Key, flying+same, limit)
		}
	}
}
