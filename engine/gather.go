package engine

import (
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// However many runs end, there are few writes: what ended waits for more of its kind until so long after
// the last write. The first of a quiet time waits for nothing, nor do instants, hand-backs, drains and an
// app's word; whatever is written takes along what waits.
const (
	// gatherFor is for what nobody waits for.
	gatherFor = 200 * time.Millisecond
	// refillAfter is where something due waits for just that: a slot, when half of them can be given
	// anew, or the end of its job's run before it.
	refillAfter = 50 * time.Millisecond
)

// nudge makes the loop take a turn when there is enough to report.
func (e *Engine) nudge() {
	select {
	case e.ended <- struct{}{}:
	default:
	}
}

// gather is how long what ended waits from now on. Only the loop's goroutine calls it.
func (e *Engine) gather() time.Duration {
	since, wait := time.Since(e.wrote), gatherFor
	switch {
	case e.draining.Load():
		wait = 0
	case since < gatherFor && e.awaited():
		wait = refillAfter
	}
	return max(wait-since, time.Until(e.backoff.until), 0)
}

// awaited reports whether something due waits for what is to be reported.
func (e *Engine) awaited() bool {
	e.mu.Lock()
	jobs, free := make(map[string]bool), 0
	for _, h := range e.held {
		switch {
		case h.stage == stageEnded:
			jobs[h.run.Key.Job] = true
			free++
		case h.stage == stageOpen && !h.open.recorded: // a crash would lose it
			e.mu.Unlock()
			return true
		}
	}
	e.mu.Unlock()
	l, now, queued := e.view.Load().ledger, e.wall(), 0
	for i := range l.Runs {
		r := &l.Runs[i]
		if r.State != run.StateQueued || r.DueAt.After(now) {
			continue
		}
		if queued++; jobs[r.Key.Job] {
			return true
		}
	}
	if queued > 0 && free >= min(queued, (e.o.MaxRuns+1)/2) {
		return true
	}
	for key, t := range l.Triggers {
		if jobs[key.Job] && t.Lags() {
			return true
		}
	}
	return false
}
