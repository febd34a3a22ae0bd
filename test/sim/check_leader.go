package sim

import (
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// settled is how long after the faults everything has its usual course again: what was blocked, lost
// or held by a person is over.
const settled = 100 * time.Second

// onTime is how late something may be then. Calls take up to 40 ms, and a turn may have to wait for
// another one.
const onTime = 500 * time.Millisecond

// awaitLeader checks that somebody leads soon after the faults have ended, and from then on without
// a break, until the cluster ends.
func (w *world) awaitLeader(end time.Time) {
	began := time.Now()
	limit := w.succession()
	var owed time.Duration
	led := false
	for ; time.Now().Before(end); time.Sleep(time.Second) {
		since := time.Since(began)
		if since < 5*time.Second { // who resigns now has failed before
			owed = max(owed, w.owed(began))
		}
		n := w.leader()
		if n != nil && !led {
			led = true
			w.logf(n.name, "leads in the calm, term %d, after %s", n.engine.Status().Term, since.Round(time.Second))
		}
		if n == nil && since > limit+owed && (!led || !w.anarchy) {
			w.check.fail("nobody leads %s after the faults have ended, in which a lease, calls that hang and a pause of %s have passed", since, owed)
			return
		}
	}
}

// succession is within what time somebody leads when the faults have ended: the lease of a holder that
// is gone has to run out, of which the last renewal is seen late, a call to the Lease may still hang, and
// the winner has to write the ledger, for which a call may still hang and the next try be waited for.
func (w *world) succession() time.Duration {
	if w.anarchy {
		return 6*w.lease + 10*time.Second // what an election without order takes says nothing
	}
	return w.lease + w.lease/3 + 3*w.lease/9 + 10*time.Second
}

// owed is how long after then every sidecar has to pause, since it gave up a term.
func (w *world) owed(then time.Time) time.Duration {
	least := time.Duration(-1)
	for _, n := range w.alive() {
		c, ok := n.elector.(*candidate)
		if !ok {
			return 0
		}
		c.mu.Lock()
		pause := c.owes - n.mono() + time.Since(then)
		c.mu.Unlock()
		if pause = max(pause, 0); least < 0 || pause < least {
			least = pause
		}
	}
	return max(least, 0)
}

func (w *world) leader() *node {
	for _, n := range w.alive() {
		if n.engine.Status().Leading {
			return n
		}
	}
	return nil
}

// idle notes since when a job has nothing open. The caller holds c.mu.
func (c *checker) idle(n *node, prev, next *state.Ledger) {
	open := make(map[string]bool, len(next.Runs))
	for i := range next.Runs {
		open[next.Runs[i].Key.Job] = true
	}
	for i := range prev.Runs {
		if job := prev.Runs[i].Key.Job; !open[job] {
			c.model.idle[job] = ending{time.Now(), n.name}
		}
	}
}

// prompt checks, when everything has its usual course, that an instant is decided at its time, or as
// soon as what was open of its job is over. The caller holds c.mu.
func (c *checker) prompt(n *node, prev *state.Ledger, v verdict) {
	if time.Since(c.world.start) < c.world.trouble+settled {
		return
	}
	c.world.tally("judged: in the calm")
	late := v.at.Sub(v.decision.at)
	if v.line.job.Overlap != config.OverlapParallel || v.line.job.MaxParallel > 0 || v.line.trigger.Schedule.Kind == schedule.KindEvery {
		for i := range prev.Runs {
			if prev.Runs[i].Key.Job == v.key.Job {
				return
			}
		}
		over := c.model.idle[v.key.Job]
		since := time.Since(over.at)
		if over.by != n.name {
			since -= c.world.lag // an app may tell any sidecar; the leader hears of it by its watch
		}
		late = min(late, since)
	}
	catchesUp := v.line.trigger.Misfire.Policy == config.MisfireCatchUp && v.at.Sub(v.decision.at) > v.line.trigger.Misfire.Grace
	if late > onTime && !catchesUp {
		c.failLocked("%s decides the instant %s of %s %s late, when all was calm", n.name, v.decision.at, v.key, late)
	}
}

// punctual is prompt for the start of an attempt.
func (c *checker) punctual(n *node, r *run.Run, sent time.Time) {
	if time.Since(c.world.start) < c.world.trouble+settled {
		return
	}
	if late := min(sent.Sub(r.DueAt), time.Since(c.model.claimed[r.ID])); late > onTime {
		c.failLocked("%s sends run %s of %s %s late, when all was calm", n.name, r.ID, r.Key, late)
	}
}
