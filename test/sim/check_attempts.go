package sim

import (
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// answered is who was told how an attempt ended: the node that had sent it, or, with no node, anybody, by
// an app that had accepted the run.
type answered struct{ run, node string }

// permitted checks the start of an attempt at the moment in which the engine allows it, by the clock of
// the node that is to send it.
func (c *checker) permitted(n *node, r *run.Run, now time.Time) {
	if now.Before(r.DueAt) {
		c.failLocked("%s was allowed to send %s %s before it is due", n.name, r.Key, r.DueAt.Sub(now))
	}
	if r.Cause == run.CauseSchedule && now.Before(r.ScheduledAt) {
		c.failLocked("%s was allowed to send %s %s before its instant", n.name, r.Key, r.ScheduledAt.Sub(now))
	}
	if c.world.anarchy {
		return // whoever is told that it leads may send what another has found to be lost
	}
	if is, over := c.ends[r.ID]; over {
		c.failLocked("%s was allowed to send run %s of %s, which has ended as %s", n.name, r.ID, r.Key, is)
	} else if stored := c.ledger.Run(r.ID); stored == nil || !stored.State.Claimed() || stored.Node != n.name {
		c.failLocked("%s was allowed to send run %s of %s, which is not its own in the ledger", n.name, r.ID, r.Key)
	}
}

// firstDue checks when a run that is new in the ledger may be sent.
func (c *checker) firstDue(n *node, r *run.Run) {
	earliest, latest := r.DecidedAt, r.DecidedAt
	job := c.jobs[version{r.Key.Job, r.Version}]
	switch r.Cause {
	case run.CauseSchedule:
		earliest = r.ScheduledAt
		latest = earliest.Add(jitterOf(job, r.Key.Trigger))
	case run.CauseRetry:
		least, most := retryDelay(job.Retry, c.tries[r.Occurrence].retried+1)
		// Times are kept to the microsecond.
		earliest, latest = earliest.Add(least-time.Microsecond), latest.Add(most+time.Microsecond)
	case run.CauseManual, run.CauseRecovery, run.CauseBackfill, run.CauseRerun:
	}
	if r.DueAt.Before(earliest) || r.DueAt.After(latest) {
		c.failLocked("%s makes attempt %d of %s at %s, by %s, due at %s, not from %s to %s",
			n.name, r.Attempt, r.Key, r.ScheduledAt, r.Cause, r.DueAt, earliest, latest)
	}
}

func jitterOf(job config.Job, trigger string) time.Duration {
	for i := range job.Triggers {
		if t := &job.Triggers[i]; t.Name == trigger && t.Schedule.Kind != schedule.KindManual {
			return t.Schedule.Jitter
		}
	}
	return 0
}

// sameDue checks that a run that is open stays due when it was. A one-shot counts from a clock that may have
// been ahead, and is moved together with it; an instant is one, whatever clock has decided it.
func (c *checker) sameDue(n *node, was, is *run.Run) {
	if moved := was.DueAt.Sub(is.DueAt); moved != 0 && (is.Cause == run.CauseSchedule || moved < 0 || moved != was.DecidedAt.Sub(is.DecidedAt)) {
		c.failLocked("%s moves attempt %d of %s at %s, by %s, from when it is due by %s", n.name, is.Attempt, is.Key, is.ScheduledAt, is.Cause, -moved)
	}
}

// further checks an attempt that is new in the ledger against the one before it: that this one ends in the
// same write, and calls for it.
func (c *checker) further(n *node, l *state.Ledger, r *run.Run) {
	if r.Cause != run.CauseRetry && r.Cause != run.CauseRecovery {
		if r.Attempt != 1 {
			c.failLocked("%s makes attempt %d of %s at %s by %s", n.name, r.Attempt, r.Key, r.ScheduledAt, r.Cause)
		}
		return
	}
	i := slices.IndexFunc(l.Finished, func(f run.Run) bool { return f.Occurrence == r.Occurrence && f.Attempt == r.Attempt-1 })
	if i < 0 {
		c.failLocked("%s makes attempt %d of %s at %s without the end of the one before it", n.name, r.Attempt, r.Key, r.ScheduledAt)
		return
	}
	before := &l.Finished[i]
	if _, over := c.ends[before.ID]; over {
		c.failLocked("%s makes attempt %d of %s at %s after the one before it had ended without it", n.name, r.Attempt, r.Key, r.ScheduledAt)
	}
	job := c.jobs[version{r.Key.Job, r.Version}]
	had := c.tries[r.Occurrence]
	if r.Cause == run.CauseRecovery {
		switch had.recovered = had.recovered + 1; {
		case before.State != run.StateLost || job.Recovery != config.RecoveryRerun:
			c.failLocked("%s recovers run %s of %s, which is %s, with recovery %s", n.name, before.ID, r.Key, before.State, job.Recovery)
		case had.recovered > 1:
			c.failLocked("%s recovers the occurrence of %s at %s for the %d. time", n.name, r.Key, r.ScheduledAt, had.recovered)
		}
	} else {
		switch had.retried = had.retried + 1; {
		case before.State != run.StateFailed || !c.mayRetry(before):
			c.failLocked("%s repeats run %s of %s, which is %s (%s) for good", n.name, before.ID, r.Key, before.State, before.Message)
		case had.retried > job.Retry.MaxRetries:
			c.failLocked("%s repeats the occurrence of %s at %s for the %d. time of %d", n.name, r.Key, r.ScheduledAt, had.retried, job.Retry.MaxRetries)
		}
	}
	c.tries[r.Occurrence] = had
}

// tries is how often an occurrence was tried again.
type tries struct{ retried, recovered int }

// mayRetry reports whether a failure is of a kind that is repeated.
func (c *checker) mayRetry(failed *run.Run) bool {
	for _, o := range c.heard(failed) {
		if o.State == run.StateFailed && o.Retryable {
			return true
		}
	}
	return c.gaveUp(failed)
}

// mustRetry reports whether all that was told of a failure is repeated: an app may say that it is for good
// after its node has given up waiting.
func (c *checker) mustRetry(failed *run.Run) bool {
	heard := c.heard(failed)
	return len(heard) > 0 && c.mayRetry(failed) &&
		!slices.ContainsFunc(heard, func(o run.Outcome) bool { return o.State == run.StateFailed && !o.Retryable })
}

// gaveUp reports whether a run has failed because the app, which had accepted it, said nothing more.
func (c *checker) gaveUp(r *run.Run) bool {
	return c.jobs[version{r.Key.Job, r.Version}].Async && c.wasSent(r) && r.Code == run.CodeTimeout
}

// heard lists how a run ended as far as anybody was told by the app: the node that had it last, or any
// node of one that was accepted.
func (c *checker) heard(r *run.Run) []run.Outcome {
	var all []run.Outcome
	for _, node := range []string{"", r.Node} {
		if o, ok := c.outcomes[answered{r.ID, node}]; ok {
			all = append(all, o)
		}
	}
	return all
}

// asHeard checks that a run ends as the app said, or for want of a word from it.
func (c *checker) asHeard(n *node, was, is *run.Run) {
	if was.State == run.StateNeedsReview && is.State == run.StateSucceeded {
		return // a person says so
	}
	heard := c.heard(is)
	for _, o := range heard {
		if o.State == is.State && o.NotSent == !c.wasSent(is) {
			if is.State == run.StateCanceled && !was.Cancel && !is.Cancel {
				break
			}
			return
		}
	}
	switch is.State {
	case run.StateFailed:
		if c.gaveUp(is) || !c.wasSent(is) && is.Code == run.CodeTimeout {
			return
		}
	case run.StateCanceled:
		if is.Cancel || was.State == run.StateQueued && c.superfluous(is) {
			return
		}
		c.failLocked("%s ends run %s of %s, which was %s, as canceled (%s), which nobody has asked for", n.name, is.ID, is.Key, was.State, is.Message)
		return
	case run.StateLost:
		return // is judged by the silence of its node
	case run.StateSucceeded, run.StateQueued, run.StatePending, run.StateRunning, run.StateNeedsReview:
	}
	said := "nothing"
	if len(heard) > 0 {
		said = string(heard[0].State)
	}
	c.failLocked("%s says that run %s of %s is %s (%s), the app said %s", n.name, is.ID, is.Key, is.State, is.Message, said)
}

func (c *checker) wasSent(r *run.Run) bool {
	_, sent := c.starts[attempt{r.Occurrence, r.Attempt}]
	return sent
}

// superfluous reports whether an attempt before this one has succeeded after all.
func (c *checker) superfluous(r *run.Run) bool {
	for number := 1; number < r.Attempt; number++ {
		id := c.attempts[attempt{r.Occurrence, number}]
		for who, o := range c.outcomes {
			if who.run == id && o.State == run.StateSucceeded {
				return true
			}
		}
	}
	return false
}
