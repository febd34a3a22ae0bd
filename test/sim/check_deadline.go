package sim

import (
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// firstStart is when the first attempt of an occurrence was sent of which the ledger has heard, by
// the clock of who sent it. What was lost without a word may never have been sent.
func (c *checker) firstStart(r *run.Run) (time.Time, bool) {
	for k := 1; k < r.Attempt; k++ {
		at, sent := c.model.sent[attempt{r.Occurrence, k}]
		if id := c.attempts[attempt{r.Occurrence, k}]; sent && c.model.heard[id] {
			return at, true
		}
	}
	return time.Time{}, false
}

// inTime checks that an attempt starts, and gets no more time than, what the deadline of all
// attempts of the occurrence leaves. Clocks that do not agree move it. The caller holds c.mu.
func (c *checker) inTime(n *node, a run.Attempt, sent time.Time) {
	r := &a.Run
	key := attempt{r.Occurrence, r.Attempt}
	c.model.sent[key], c.model.begun[key] = sent, r.FiredAt
	c.punctual(n, r, sent)
	job := c.jobs[version{r.Key.Job, r.Version}]
	if job.Deadline == 0 || !c.model.clocks {
		return
	}
	if a.Timeout > job.Deadline {
		c.failLocked("%s gives attempt %d of %s %s, its deadline is %s", n.name, r.Attempt, r.Key, a.Timeout, job.Deadline)
	}
	first, ok := c.firstStart(r)
	if !ok {
		return
	}
	c.world.tally("attempts with a deadline")
	if over := r.FiredAt.Add(a.Timeout).Sub(first) - job.Deadline; over > time.Millisecond {
		c.failLocked("%s lets attempt %d of %s run %s past the deadline of %s", n.name, r.Attempt, r.Key, over, job.Deadline)
	}
}

// again checks what follows a failed attempt: that a deadline ends an occurrence only where it
// leaves no time, and when a retry is due. The caller holds c.mu.
func (c *checker) again(n *node, prev, next *state.Ledger) {
	for i := range prev.Runs {
		if r := &prev.Runs[i]; !r.FiredAt.IsZero() {
			c.model.heard[r.ID] = true
		}
	}
	for i := range next.Finished {
		r := &next.Finished[i]
		if c.model.followed[r.ID] {
			continue
		}
		c.model.followed[r.ID] = true
		if !r.FiredAt.IsZero() {
			c.model.heard[r.ID] = true
		}
		if r.State == run.StateFailed {
			c.failed(n, next, r)
		}
	}
}

func (c *checker) failed(n *node, next *state.Ledger, r *run.Run) {
	job := c.jobs[version{r.Key.Job, r.Version}]
	least, most := retryDelay(job.Retry, r.Retries+1)
	var retry *run.Run
	for i := range next.Runs {
		if o := &next.Runs[i]; o.Occurrence == r.Occurrence && o.Attempt == r.Attempt+1 && o.Cause == run.CauseRetry {
			retry = o
		}
	}
	if retry != nil {
		// Where the clock that says when the attempt ended is ahead, the wait counts from the decision.
		if wait := retry.DueAt.Sub(retry.DecidedAt); retry.DecidedAt.After(r.EndedAt) || wait < least-time.Microsecond || wait > most+time.Microsecond {
			c.failLocked("%s repeats %s after %s for the %d. time, and should after %s to %s", n.name, r.Key, wait, retry.Retries, least, most)
		}
		return
	}
	owed := len(c.heard(r)) > 0 && c.mayRetry(r) && r.Retries < job.Retry.MaxRetries
	if !owed || job.Deadline == 0 || !c.model.clocks {
		return
	}
	// It counts from where the first attempt began, which may have stood still before it was sent.
	first, ok := c.model.begun[attempt{r.Occurrence, 1}]
	if left := first.Add(job.Deadline).Sub(r.EndedAt); ok && left > most+time.Millisecond {
		c.failLocked("%s ends run %s of %s without a retry, for which its deadline leaves %s", n.name, r.ID, r.Key, left)
	}
}

// retryDelay is how long the n-th retry waits at least and at most.
func retryDelay(r config.Retry, n int) (least, most time.Duration) {
	delay := r.Delay
	if r.Backoff == config.BackoffExponential {
		for range n - 1 {
			delay *= 2
		}
		if r.MaxDelay > 0 {
			delay = min(delay, r.MaxDelay)
		}
	}
	around := time.Duration(float64(delay) * r.Jitter)
	return delay - around, delay + around
}
