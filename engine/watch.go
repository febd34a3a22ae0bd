package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

// ledgerWatch tells the loop that other nodes have changed the ledger. It runs only while that
// matters to this node.
type ledgerWatch struct {
	engine *Engine
	parent context.Context //nolint:containedctx // what each watch is derived from
	cancel context.CancelFunc
	group  sync.WaitGroup
	stale  atomic.Bool
}

// begin binds the watch to the loop's life.
func (w *ledgerWatch) begin(ctx context.Context) { w.parent = ctx }

// want starts or stops the watch. Only the loop's goroutine calls it.
func (w *ledgerWatch) want(on bool) {
	if on == (w.cancel != nil) || w.engine.o.Exclusive {
		return
	}
	if !on {
		w.stop()
		return
	}
	ctx, cancel := context.WithCancel(w.parent)
	w.cancel = cancel
	w.group.Go(func() {
		for ctx.Err() == nil {
			err := w.engine.o.Ledger.Watch(ctx, func() {
				w.changed()
			})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				w.engine.log.Warn("watching the ledger failed, trying again", logkey.Err(err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(maxBackoff):
			}
		}
	})
}

// changed makes the loop read the ledger anew: this process changed it outside the loop.
func (w *ledgerWatch) changed() {
	w.stale.Store(true)
	w.engine.poke()
}

func (w *ledgerWatch) stop() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	w.group.Wait()
}
