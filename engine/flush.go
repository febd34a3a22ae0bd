package engine

import (
	"context"
	"log/slog"
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
	// maxUnflushed is how many bytes of them wait for a history that takes nothing: about what a ledger
	// has in normal use.
	maxUnflushed = 256 << 10
	// retryAt is how many of them make a history that takes nothing be asked sooner again.
	retryAt = 500
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

	refused refusal
	because string // why the history is refused, once that was told
	dropped int    // records that no history will have, since then
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
	if f.busy || len(f.stored) > 0 || now.Before(f.failed.until) {
		return
	}
	if (now.Before(f.refused.until) && waiting < retryAt && !f.urgent) || (waiting < flushAt && !f.urgent && now.Sub(f.since) < flushEvery) {
		return
	}
	urgent := f.urgent
	f.busy, f.urgent = true, false
	runs, skips, definitions := slices.Clone(l.Finished), slices.Clone(l.Skipped), t.definitions
	a.group.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), swapTimeout)
		defer cancel()
		err := e.writeHistory(ctx, runs, skips, definitions)
		e.flushed(runs, skips, urgent, err)
		e.nudge()
	})
}

// flushed notes how a flush ended. Where the history takes nothing, and that lasts, the oldest of what
// waits is given up as soon as the ledger needs its room: it must not keep jobs from running.
func (e *Engine) flushed(runs []run.Run, skips []run.Skip, urgent bool, err error) {
	f := &e.flush
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = false
	f.since = time.Now()
	if err == nil {
		if f.failed.wait > 0 {
			e.log.Info("history written again", slog.Int("dropped", f.dropped))
		}
		f.failed.succeed()
		f.refused.succeed()
		f.because, f.dropped = "", 0
		f.mark(runs, skips)
		return
	}
	f.failed.fail(e.o.Jitter)
	if f.refused.since.IsZero() {
		e.log.Info("history not written, trying again", logkey.Err(err)) // whether it is worth more will show
	}
	if f.refused.fail(err, e.o.LeaseDuration, e.o.Jitter) {
		e.log.Error("the history takes nothing: what ended waits in the ledger, the oldest of it is dropped when that needs the room", logkey.Err(err))
		e.emit(HistoryRefused{Err: err})
	}
	if !f.refused.told {
		return
	}
	f.because = err.Error()
	if !urgent && state.SizeOf(runs, skips) <= maxUnflushed {
		return
	}
	runs, skips = runs[:(len(runs)+1)/2], skips[:(len(skips)+1)/2]
	f.mark(runs, skips)
	if f.dropped == 0 {
		e.log.Error("records of what ended are dropped: the history takes none and the ledger needs the room", slog.Int(logkey.Count, len(f.stored)))
	}
	f.dropped += len(f.stored)
	e.emit(RecordsDropped{Count: len(f.stored)})
}

// mark names what the ledger may drop.
func (f *flush) mark(runs []run.Run, skips []run.Skip) {
	f.stored = make(map[string]string, len(runs)+len(skips))
	for _, r := range runs {
		f.stored[r.ID] = r.Message
	}
	for _, s := range skips {
		f.stored[skipID(s)] = ""
	}
}

// refusedBecause says why the history takes nothing; empty: it does, or that is not sure yet.
func (f *flush) refusedBecause() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.because
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
	if f.busy || f.since.IsZero() {
		return time.Time{}
	}
	if f.urgent {
		return lastOf(f.since, f.failed.until)
	}
	return lastOf(f.since.Add(flushEvery), f.failed.until, f.refused.until)
}

func lastOf(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// skipID names a skipped range; its occurrence may also have a record of another reason.
func skipID(s run.Skip) string { return s.Occurrence + "/" + string(s.Reason) }
