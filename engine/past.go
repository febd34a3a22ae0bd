package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

const (
	// pastWait bounds how long a takeover waits for the history. It only tells when jobs last ran, so it
	// may be late, but no run may be for that.
	pastWait = 500 * time.Millisecond
	// pastAgain is how long after that it is asked for again, at most.
	pastAgain = time.Minute
)

// past asks the history when jobs last ran. It is read after the ledger: what has left that for the
// history meanwhile would be in neither otherwise.
func (e *Engine) past(ctx context.Context, within time.Duration) (map[string]state.Latest, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	history, err := e.o.History.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return latestOf(history), nil
}

// recall asks for the history, which did not answer when the term began or cannot be read, until the
// term is over. The loop takes the answer by [Engine.recalled].
func (e *Engine) recall(t *term, a *attempts, err error) {
	e.log.Warn("the history cannot be read, trying again: until then it is not known when jobs ran before this", logkey.Err(err))
	t.past = make(chan map[string]state.Latest, 1)
	a.group.Go(func() {
		for wait := pastWait; ; wait = min(2*wait, pastAgain) {
			timer := time.NewTimer(wait)
			select {
			case <-t.ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			if past, err := e.past(t.ctx, swapTimeout); err == nil {
				t.past <- past
				e.poke()
				return
			}
		}
	})
}

// recalled takes what the history told late.
func (e *Engine) recalled(t *term) {
	select {
	case past := <-t.past:
		e.publish(func(v *view) { v.remember(past) })
		e.log.Info("the history can be read again", slog.Int(logkey.Count, len(past)))
	default:
	}
}

// remember adds what the history tells to what is known already.
func (v *view) remember(past map[string]state.Latest) {
	latest := maps.Clone(past)
	if latest == nil {
		latest = make(map[string]state.Latest)
	}
	for job, known := range v.latest {
		latest[job] = known.Merge(latest[job])
	}
	v.latest = latest
}
