package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// lateResult is what became of a run that was ended without it, and whose record has left the ledger
// for the history.
type lateResult struct {
	ended   run.Run
	outcome run.Outcome
}

// noteFor is how long a late result is tried to be noted in a history that cannot be written: it is
// worth a note and no memory for ever.
const noteFor = 10 * time.Minute

// noteInHistory notes late results on the records that the history still has.
func (e *Engine) noteInHistory(ctx context.Context, late ...lateResult) error {
	anybody := func(string) bool { return false } // who has left is for the leader to know
	err := e.swapHistory(ctx, anybody, func(h *state.History) error {
		noted := false
		for _, r := range late {
			j := h.Jobs[r.ended.Key.Job]
			if j == nil {
				continue
			}
			for i := range j.Runs {
				if j.Runs[i].ID == r.ended.ID && plan.Overdue(j.Runs[i], r.outcome) {
					noted = plan.NoteLate(&j.Runs[i], r.outcome) || noted
				}
			}
		}
		if !noted {
			return ErrNoChange
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note the late result: %w", err)
	}
	return nil
}

// noteLate is noteInHistory beside the loop, tried again until it succeeds, or the loop ends.
func (e *Engine) noteLate(late []lateResult, a *attempts) {
	if len(late) == 0 {
		return
	}
	e.noting.Add(1)
	a.group.Go(func() {
		defer e.noting.Add(-1)
		var again backoff
		for began := time.Now(); ; {
			ctx, cancel := context.WithTimeout(a.ctx, swapTimeout)
			err := e.noteInHistory(ctx, late...)
			cancel()
			switch {
			case err == nil || a.ctx.Err() != nil:
				return
			case time.Since(began) > noteFor:
				e.log.Warn("late results could not be noted in the history", logkey.Err(err))
				return
			}
			select {
			case <-time.After(time.Until(again.fail(e.o.Jitter))):
			case <-a.ctx.Done():
				return
			}
		}
	})
}
