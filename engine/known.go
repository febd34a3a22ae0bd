package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// greatest is the greatest term that this process has seen, wherever that was. It outlives the objects
// that terms are kept in: whoever has led, or has seen a leader, never takes an empty ledger for a
// first installation, nor a term that was used before.
type greatest struct{ term atomic.Int64 }

func (g *greatest) note(term int64) {
	for {
		known := g.term.Load()
		if term <= known || g.term.CompareAndSwap(known, term) {
			return
		}
	}
}

func (g *greatest) get() int64 { return g.term.Load() }

// watched is a document of which each value that is or was stored is shown to seen, and how each call
// ended to answered.
type watched[T any] struct {
	Document[T]
	seen     func(*T)
	answered func(error)
}

// Read implements [Document].
func (w watched[T]) Read(ctx context.Context) (*T, error) {
	return w.show(w.Document.Read(ctx))
}

// Swap implements [Document].
func (w watched[T]) Swap(ctx context.Context, change func(*T) error) (*T, error) {
	return w.show(w.Document.Swap(ctx, w.before(change)))
}

// SwapOnce implements [Document].
func (w watched[T]) SwapOnce(ctx context.Context, change func(*T) error) (*T, error) {
	return w.show(w.Document.SwapOnce(ctx, w.before(change)))
}

func (w watched[T]) before(change func(*T) error) func(*T) error {
	return func(v *T) error {
		w.seen(v)
		return change(v)
	}
}

func (w watched[T]) show(v *T, err error) (*T, error) {
	if err == nil {
		w.seen(v)
	}
	w.answered(err)
	return v, err
}

// watchDocuments makes the engine take note of what its documents tell, whoever reads them for what.
func (e *Engine) watchDocuments() {
	answered := func(document string) func(error) {
		return func(err error) { e.answered(document, err) }
	}
	e.o.Ledger = watched[state.Ledger]{e.o.Ledger, func(l *state.Ledger) {
		e.greatest.note(l.Term)
		e.noteUnreadable("ledger", l.Odd())
	}, answered("ledger")}
	e.o.Catalog = watched[state.Catalog]{e.o.Catalog, func(c *state.Catalog) {
		e.greatest.note(c.Term)
		e.noteUnreadable("catalog", c.Odd())
	}, answered("catalog")}
	e.o.History = watched[state.History]{e.o.History, func(h *state.History) { e.noteUnreadable("history", h.Odd()) }, answered("history")}
}

// termSettled is how old a term is when the catalog is told of it, so that nothing is late for that, and
// leaders that change quickly write it once.
const termSettled = 10 * time.Second

// noteTerm has the catalog know the term, beside the loop: should ledger and Lease be gone together, and
// every process that has seen them, the token still does not fall.
func (e *Engine) noteTerm(t *term, a *attempts) {
	if t.noted || e.o.Instance || time.Since(t.began) < termSettled {
		return
	}
	t.noted = true
	number := t.number
	a.group.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, swapTimeout)
		defer cancel()
		if _, err := e.o.Catalog.Swap(ctx, func(c *state.Catalog) error {
			if c.Term >= number {
				return ErrNoChange
			}
			c.Term = number
			return nil
		}); err != nil {
			e.log.Debug("the catalog does not know this term, it learns it with the next change of definitions", logkey.Err(err))
		}
	})
}

// longestSeen bounds how far back the first jobs of an app may count from.
const longestSeen = 10 * time.Minute

// seen is since when this node knows what it shall run, by the wall clock that shows now; at most ten
// minutes ago, since nobody waits that long for an app to start, while a cluster of which all the
// objects were deleted has decided those instants.
func (d desired) seen(now time.Time) time.Time {
	if d.sequence == 0 {
		return now
	}
	return now.Add(-min(time.Since(d.since), longestSeen)).Truncate(time.Microsecond)
}
