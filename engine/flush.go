package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

const (
	// flushEvery is how long finished runs gather in the ledger before they go to the history.
	flushEvery = 10 * time.Second
	// flushAt is how many of them make it happen sooner.
	flushAt = 100
)

// flush moves what has ended from the ledger to the history: first it is upserted there, and
// only when that has succeeded is it removed here, so that no crash loses a record.
type flush struct {
	mu     sync.Mutex
	busy   bool
	stored map[string]string // what the history has and the ledger may drop: IDs, and messages
	since  time.Time         // when something began to wait; zero: nothing does
	urgent bool              // room is needed in the ledger
	failed backoff
}

// startFlush writes what waits to the history, if it is time, beside the loop.
func (e *Engine) startFlush(a *attempts, t *term) {
	l := e.view.Load().ledger
	waiting := len(l.Finished) + len(l.Skipped)
	f := &e.flush
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch {
	case waiting == 0:
		f.since = time.Time{}
		return
	case f.since.IsZero():
		f.since = now
	}
	if f.busy || len(f.stored) > 0 || now.Before(f.failed.until) || (waiting < flushAt && !f.urgent && now.Sub(f.since) < flushEvery) {
		return
	}
	f.busy, f.urgent = true, false
	runs, skips, definitions := slices.Clone(l.Finished), slices.Clone(l.Skipped), t.definitions
	limit := func(job string) int {
		if c, ok := definitions.Version(job, 0); ok && c.HistoryLimit > 0 {
			return c.HistoryLimit
		}
		return defaultHistoryLimit
	}
	a.group.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), swapTimeout)
		defer cancel()
		_, err := e.o.History.Swap(ctx, func(h *state.History) error {
			h.Add(runs, skips, limit)
			return nil
		})
		first := f.done(runs, skips, err, e.o.Jitter)
		switch { // once in an outage, however long it is
		case err != nil && first:
			e.log.Warn("history not written, trying again", logkey.Err(err))
		case err == nil && !first:
			e.log.Info("history written again")
		}
		e.poke()
	})
}

// defaultHistoryLimit is kept of a job that is not defined any more.
const defaultHistoryLimit = 20

// done notes what became of a flush. It reports whether the one before it had succeeded.
func (f *flush) done(runs []run.Run, skips []run.Skip, err error, jitter func(time.Duration) time.Duration) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy, first = false, f.failed.wait == 0
	f.since = time.Now()
	if err != nil {
		f.failed.fail(jitter)
		return first
	}
	f.failed.succeed()
	f.stored = make(map[string]string, len(runs)+len(skips))
	for _, r := range runs {
		f.stored[r.ID] = r.Message
	}
	for _, s := range skips {
		f.stored[skipID(s)] = ""
	}
	return first
}

// hurry asks for a flush as soon as possible, because the ledger is full.
func (f *flush) hurry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urgent = true
}

// written reports whether the history has records that the ledger may drop.
func (f *flush) written() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stored) > 0
}

// remove drops from the ledger what the history has.
func (f *flush) remove(l *state.Ledger) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.stored) == 0 {
		return false
	}
	before := len(l.Finished) + len(l.Skipped)
	l.Finished = slices.DeleteFunc(l.Finished, f.has)
	l.Skipped = slices.DeleteFunc(l.Skipped, f.hasSkip)
	return len(l.Finished)+len(l.Skipped) != before
}

// forget ends a flush once the ledger does not hold its records any more.
func (f *flush) forget(l *state.Ledger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.stored) == 0 {
		return
	}
	if slices.ContainsFunc(l.Finished, f.has) || slices.ContainsFunc(l.Skipped, f.hasSkip) {
		return
	}
	f.stored = nil
}

// has reports whether the history has a run as it is. One that got a note since is written once more.
func (f *flush) has(r run.Run) bool {
	message, stored := f.stored[r.ID]
	return stored && message == r.Message
}

func (f *flush) hasSkip(s run.Skip) bool {
	_, stored := f.stored[skipID(s)]
	return stored
}

// next is when, by the monotonic clock, the loop has to look at the flush again; zero: not before
// something happens.
func (f *flush) next() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.busy || f.since.IsZero():
		return time.Time{}
	case f.failed.until.After(f.since.Add(flushEvery)):
		return f.failed.until
	default:
		return f.since.Add(flushEvery)
	}
}

// skipID names a skipped range; its occurrence may also have a record of another reason.
func skipID(s run.Skip) string { return s.Occurrence + "/" + string(s.Reason) }
