package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/leasecron/leasecron/engine/state"
)

// doubt is a swap of a term to which nobody has answered. It may have claimed runs for this node, or
// may yet: nobody else may send those, and this node surely has not. Reading the version that it was
// sent from proves nothing; only a later write from there, by whomever, settles it (DESIGN 5.2).
type doubt struct {
	term  int64     // whose; 0: there is none
	looks int       // since the term ended
	next  time.Time // when to look again, by the monotonic clock
}

// looksInDoubt is how often a node without a term looks whether a successor has settled its doubt, which
// costs nobody a write, before it writes itself: after an outage of the API server the sidecars of
// thousands of apps may be in doubt, each with one write at most. The first look is at once, the others
// follow at growing intervals, a second at first.
const looksInDoubt = 4

// raiseDoubt notes that a swap of a term got no answer. Only the loop's goroutine calls it, as all of these.
func (e *Engine) raiseDoubt(term int64) {
	e.doubt = doubt{term: term}
	e.doubtful.Store(true)
}

// dispelDoubt notes that a write of this node is stored, which is later than all before it.
func (e *Engine) dispelDoubt() {
	e.doubt = doubt{}
	e.doubtful.Store(false)
}

// settleDoubt follows a term that ended in doubt for as long as it takes. What turns out to be claimed is
// taken up, to be handed back. A process on its way out has no time to wait for a successor's write.
func (e *Engine) settleDoubt(ctx context.Context) error {
	d := &e.doubt
	if d.term == 0 || !e.draining.Load() && time.Now().Before(d.next) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, swapTimeout)
	defer cancel()
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		return err
	}
	d.looks++
	wait := time.Second << min(d.looks-1, looksInDoubt)
	d.next = time.Now().Add(wait/2 + e.o.Jitter(wait/2+1))
	moved := func(l *state.Ledger) bool { return l.Term != d.term }
	switch e.adopt(ledger); {
	case moved(ledger):
		e.dispelDoubt()
		return nil
	case d.looks < looksInDoubt && !e.draining.Load():
		return nil
	case len(e.reports(nil)) > 0:
		return nil // the write that follows is one from this version, or a later one
	}
	ledger, err = e.o.Ledger.Swap(ctx, func(l *state.Ledger) error {
		if moved(l) {
			return ErrNoChange
		}
		return nil // as it is, under a new write ID
	})
	if err != nil {
		d.next = time.Time{} // the loop spaces out what fails
		return fmt.Errorf("settle what an unanswered write has left open: %w", err)
	}
	e.dispelDoubt()
	e.adopt(ledger)
	return nil
}
