package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// defaultHistoryLimit is kept of a job that is not defined any more.
const defaultHistoryLimit = 20

// fewerRecords are how much of the history is kept, in percent of its bytes, where more does not fit. How
// much fits is known to the store alone, which compresses: so it is tried.
var fewerRecords = []int{75, 50, 25, 10, 3}

// writeHistory adds what ended to the history, and forgets the jobs that left long ago.
func (e *Engine) writeHistory(ctx context.Context, runs []run.Run, skips []run.Skip, d *plan.Definitions) error {
	limit := func(job string) int {
		if c, ok := d.Version(job, 0); ok && c.HistoryLimit > 0 {
			return c.HistoryLimit
		}
		return defaultHistoryLimit
	}
	known := func(job string) bool { return d.Jobs[job] != nil } // for as long as the catalog remembers it
	left := func(job string) bool {
		_, defined := d.Jobs[job].Current()
		return !defined
	}
	longAgo := e.wall().Add(-state.KeepRemoved)
	return e.swapHistory(ctx, left, func(h *state.History) error {
		h.Forget(known, longAgo)
		h.Add(runs, skips, limit)
		return nil
	})
}

// swapHistory changes the history. Where it would outgrow its object, the records of jobs that left, and
// then the oldest, are dropped until it fits.
func (e *Engine) swapHistory(ctx context.Context, left func(job string) bool, change func(*state.History) error) error {
	_, err := e.o.History.Swap(ctx, change)
	for _, percent := range fewerRecords {
		if !errors.Is(err, ErrTooLarge) {
			return err
		}
		if _, err = e.o.History.Swap(ctx, func(h *state.History) error {
			if err := change(h); err != nil {
				return err
			}
			h.Shrink(percent, left)
			return nil
		}); err == nil {
			e.log.Info("old records of the history were dropped to make room", slog.Int("kept_percent", percent))
		}
	}
	if errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("not even the newest records fit into the history; is something else kept in its object? %w", err)
	}
	return err
}
