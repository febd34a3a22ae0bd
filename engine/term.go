package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// handBackTimeout bounds how long leaving waits until unsent runs are handed back.
const handBackTimeout = 2 * time.Second

// term is one leadership of this node.
type term struct {
	ctx   context.Context //nolint:containedctx // the term is this context's life
	lease Lease
	done  chan struct{} // closed once the loop has handed back what was not sent

	// Of the loop's goroutine alone:
	number      int64     // 0 until the ledger has accepted the takeover
	began       time.Time // when it did
	noted       bool      // the catalog was told of it
	catalog     *state.Catalog
	definitions *plan.Definitions
	index       *plan.Index
	silence     silence
	sequence    int                          // of the desired jobs that are in the catalog
	failing     time.Time                    // since when swaps fail; zero: they do not
	split       split                        // what the next plan may do at most
	tooLarge    plan.Result                  // the plan of the swap that failed last
	fullSince   time.Time                    // since when something that is due finds no room; zero: all does
	filled      map[string]time.Time         // when the log told of jobs that fill their share of the ledger
	past        chan map[string]state.Latest // what the history told late; nil: in time
	announce    bool                         // the jobs in force changed and nobody was told yet
	unread      refusal                      // the catalog cannot be read anew
	unwritten   refusal                      // the catalog does not take the desired jobs
	refused     int                          // the sequence of those
	// unraised is the revision of a catalog with versions that were to take effect before the watermark, and
	// have to be raised to it before a ledger swap names that; 0: there is none.
	unraised int64
	// uncut says that times in the ledger lay ahead of this clock, so that those in the catalog may as well.
	uncut bool
}

// Lead plans for as long as ctx lasts and the lease is valid. It returns when this node starts
// nothing any more and has handed back the runs that it had committed and not sent, or could not
// within two seconds. The elector calls it for each term that it won.
func (e *Engine) Lead(ctx context.Context, lease Lease) error {
	t := &term{ctx: ctx, lease: lease, done: make(chan struct{})}
	e.mu.Lock()
	e.term = t
	e.mu.Unlock()
	e.poke()
	<-ctx.Done()
	e.giveUp() // in memory first, for good
	e.poke()
	timeout := time.NewTimer(handBackTimeout)
	defer timeout.Stop()
	select {
	case <-t.done:
	case <-timeout.C:
		e.log.Warn("handing back unsent runs took too long, they will be handed back later")
	}
	return context.Cause(ctx)
}

// takeOver makes this node the leader in the ledger: the swap that gives it a term, which fences
// every leader before it.
func (e *Engine) takeOver(ctx context.Context, t *term, a *attempts) error {
	catalog, err := e.o.Catalog.Read(ctx)
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	// What a follower remembers of the ledger is old: a swap from that would only be refused first.
	if _, err := e.o.Ledger.Read(ctx); err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	e.mu.Lock()
	want := e.desired
	e.mu.Unlock()
	e.greatest.note(t.lease.AnnotatedTerm())
	var before time.Time
	var cut plan.Cut
	var number int64
	known := false // somebody has led before
	ledger, err := e.o.Ledger.Swap(ctx, func(l *state.Ledger) error {
		if err := cmp.Or(t.lease.Check(), e.o.ClockCheck()); err != nil {
			return err
		}
		now := e.wall() // of this call: one of before a pause would cut what others decided meanwhile
		before, cut = l.Watermark, plan.Cut{}
		known = e.greatest.get() > 0
		last := max(l.Term, e.greatest.get(), e.o.TermFloor-1)
		if last == math.MaxInt64 {
			return errors.New("the term in the ledger, the catalog or the Lease is the greatest that there is, which nobody has counted up to: " +
				"restore what it was, with no sidecar running")
		}
		l.Term = last + 1
		l.Holder, number = e.o.Node, l.Term
		switch {
		case before.IsZero() && known:
			l.Watermark = now
		case before.IsZero():
			l.Watermark = want.seen(now)
		default:
			cut = plan.CutFuture(l, now, e.possible(now))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("take over in the ledger: %w", err)
	}
	if ledger.Term != number || ledger.Holder != e.o.Node {
		// The swap is stored, but its answer was lost, and another leader has taken over since.
		return fmt.Errorf("take over in the ledger: %w", ErrTermOver)
	}
	e.dispelDoubt() // what an earlier term has claimed is here, or never will be
	// From here on the term is this node's, whatever else goes wrong.
	t.number, t.catalog, t.silence, t.began = number, catalog, newSilence(), time.Now()
	t.lease.SetTerm(t.number)
	if before.IsZero() && known {
		e.log.Error("the ledger was empty although a leader has written it before: planning starts now, what was in flight is unknown")
		e.emit(LedgerGone{Term: number})
	}
	e.tellCut(cut)
	past, pastErr := e.past(ctx, pastWait)
	e.publish(func(v *view) {
		v.leading, v.term = true, t.number
		v.remember(past)
		v.setLedger(ledger)
	})
	if pastErr != nil {
		e.recall(t, a, pastErr)
	}
	e.define(t, catalog, ledger)
	if len(unnamedBehind(catalog, ledger.CatalogRevision, ledger.Watermark)) > 0 {
		t.unraised = catalog.Revision
	}
	e.adopt(ledger)
	e.log.Log(ctx, e.termLevel(), "took over", slog.Int64(logkey.Term, t.number), slog.Time("watermark", ledger.Watermark))
	e.emit(TermBegan{Term: t.number})
	e.tellAllUnreadable()
	return nil
}

// possible is how far ahead of now, by this node's clock, a time may lie that another has stored: each of
// the two clocks may be off by the allowed skew, and decisions are committed a little ahead.
func (e *Engine) possible(now time.Time) time.Time {
	return now.Add(2*e.o.MaxClockSkew + maxAhead)
}

// tellCut says what was found in the future.
func (e *Engine) tellCut(cut plan.Cut) {
	if cut.None() {
		return
	}
	e.log.Error("the ledger had decided into the future: cut to now, and instants since then are decided again",
		slog.Time("watermark", cut.Watermark), slog.Any("triggers", cut.Triggers[:min(len(cut.Triggers), 10)]), slog.Int(logkey.Count, len(cut.Triggers)), slog.Int("runs", cut.Runs))
	e.emit(TimesCut{Watermark: cut.Watermark, Triggers: cut.Triggers, Runs: cut.Runs})
}

// endTerm hands back what was committed and not sent, and ends the term for the loop. It reports
// false where the hand-back failed and has to be tried again.
func (e *Engine) endTerm(t *term) {
	e.mu.Lock()
	if e.term == t {
		e.term = nil
	}
	e.mu.Unlock()
	e.publish(func(v *view) { v.leading = false })
	if t.number > 0 {
		var reason error
		if cause := context.Cause(t.ctx); !errors.Is(cause, context.Canceled) {
			reason = cause
		}
		e.log.Log(context.Background(), e.termLevel(), "stopped planning", slog.Int64(logkey.Term, t.number), slog.Any(logkey.Reason, context.Cause(t.ctx)))
		e.emit(TermEnded{Term: t.number, Err: reason})
	}
	close(t.done)
}

// closeTerm ends the term when the loop ends.
func (e *Engine) closeTerm(cause error) {
	if t := e.currentTerm(); t != nil {
		t.lease.Resign(cause)
		e.endTerm(t)
	}
}

// publish replaces the view by a changed copy. Only the loop's goroutine calls it.
func (e *Engine) publish(change func(*view)) {
	v := *e.view.Load()
	change(&v)
	e.view.Store(&v)
}

// termLevel is how loud terms are told: those of an instance's own jobs concern nobody.
func (e *Engine) termLevel() slog.Level {
	if e.o.Instance {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
