package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

// documentWatch tells the loop that other nodes have changed a document. It runs only while that
// matters to this node.
type documentWatch struct {
	engine *Engine
	name   string
	watch  func(ctx context.Context, changed func()) error
	parent context.Context //nolint:containedctx // what each watch is derived from
	cancel context.CancelFunc
	group  sync.WaitGroup
	stale  atomic.Bool
}

// begin binds the watch to the loop's life.
func (w *documentWatch) begin(ctx context.Context) { w.parent = ctx }

// want starts or stops the watch. Only the loop's goroutine calls it.
func (w *documentWatch) want(on bool) {
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
		var again backoff
		for told := false; ctx.Err() == nil; {
			began := time.Now()
			err := w.watch(ctx, func() {
				w.changed()
			})
			if ctx.Err() != nil {
				return
			}
			if time.Since(began) > maxBackoff { // it has worked: what came to its end goes on soon
				again.succeed()
			}
			if err != nil && !told {
				told = true
				w.engine.log.Warn("watching a document failed, trying again", slog.String("document", w.name), logkey.Err(err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(again.fail(w.engine.o.Jitter))):
			}
		}
	})
}

// changed makes the loop read the document anew: this process changed it outside the loop.
func (w *documentWatch) changed() {
	w.stale.Store(true)
	w.engine.poke()
}

func (w *documentWatch) stop() {
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	w.group.Wait()
}
