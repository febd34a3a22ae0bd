package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/internal/logkey"
)

// split bounds what the next swaps add, after one was refused as too large, so that no crowd and no large
// body stops the others.
type split struct {
	bytes   int       // up to where the ledger is filled by decisions; 0: as far as the planner does
	claimed int       // how many runs one swap claims; 0: as many as there are slots
	since   time.Time // when bytes was changed last
	said    time.Time // when the log last told
}

// less follows a refused swap with that plan: the next one decides and claims less. It reports false where
// less would be nothing: what is refused then is not what was planned.
func (s *split) less(refused plan.Result, now time.Time) bool {
	claimed, decided := len(refused.Claimed), false
	if refused.Decided > 0 { // it was thought to fit: leave room below what did not
		if below := min(refused.Bytes*7/8, cmp.Or(s.bytes, refused.Bytes)*3/4); below >= leastBytes {
			s.bytes, s.since, decided = below, now, true
		}
	}
	if claimed > 1 {
		s.claimed = claimed / 2
	}
	return decided || claimed > 1
}

// leastBytes is what any store takes.
const leastBytes = 4 << 10

// fits follows a swap that was written: carefully more.
func (s *split) fits(most int, now time.Time) {
	if s.claimed *= 2; s.claimed > plan.MaxOpenRuns {
		s.claimed = 0
	}
	if s.bytes > 0 && now.Sub(s.since) >= time.Minute {
		if s.bytes, s.since = s.bytes*2, now; s.bytes >= most {
			s.bytes = 0
		}
	}
}

// commitLess follows a swap that was refused as too large: what ended is reported by itself, which
// makes room, and the next plan does less. Where neither is possible the ledger cannot be written, and
// cause is the error.
func (e *Engine) commitLess(ctx context.Context, t *term, attempts *attempts, cause error) (time.Time, error) {
	e.flush.hurry()
	wrote, err := e.reportParts(ctx, attempts)
	if err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	less := t.split.less(t.tooLarge, now)
	if t.split.said.IsZero() || now.Sub(t.split.said) > tellAgain {
		t.split.said = now
		e.log.Warn("the ledger would outgrow its object: writing less at a time", slog.Int("open", len(e.view.Load().ledger.Runs)), logkey.Err(cause))
	}
	switch {
	case less:
		return e.wall(), nil
	case wrote:
		return e.wall().Add(firstBackoff), nil
	}
	return time.Time{}, cause
}

// report says what this node's runs did, a few at a time where there is little room.
func (e *Engine) report(ctx context.Context, attempts *attempts) (time.Time, error) {
	next, cause := e.commit(ctx, nil, attempts)
	if !errors.Is(cause, ErrTooLarge) {
		return next, cause
	}
	switch wrote, err := e.reportParts(ctx, attempts); {
	case err != nil:
		return time.Time{}, err
	case !wrote:
		return time.Time{}, cause
	}
	return e.wall().Add(firstBackoff), nil
}

// fewReports are written at a time where there is little room.
const fewReports = 4

// reportParts writes the reports that there are in parts. It reports whether any of it made room or has
// settled a run; what does not fit is left for later.
func (e *Engine) reportParts(ctx context.Context, attempts *attempts) (wrote bool, err error) {
	// First by itself what the history has: that makes room for what ended.
	reports := e.reports(e.currentTerm())
	before := e.settled
	for done := 0; ; done += fewReports {
		part := reports[min(max(done-fewReports, 0), len(reports)):min(done, len(reports))]
		_, err := e.commitReports(ctx, nil, part, attempts)
		if errors.Is(err, ErrTooLarge) {
			for i := range part {
				if _, err = e.commitReports(ctx, nil, part[i:i+1], attempts); err != nil && !errors.Is(err, ErrTooLarge) {
					return false, err
				}
			}
		} else if err != nil {
			return false, err
		}
		if done >= len(reports) {
			return e.settled > before, nil
		}
	}
}

// tellAgain is how long the log keeps silent about what goes on.
const tellAgain = 10 * time.Minute

// planned follows a plan that is in force.
func (e *Engine) planned(t *term, res plan.Result) {
	t.index.Apply(res.Moves)
	now := time.Now()
	for _, job := range res.Filled {
		if said, ok := t.filled[job]; ok && now.Sub(said) < tellAgain {
			continue
		}
		if t.filled == nil {
			t.filled = make(map[string]time.Time)
		}
		t.filled[job] = now
		e.log.Warn("a job fills its share of the ledger: what is due waits until some of its runs have ended, or are resolved",
			slog.String(logkey.Job, job), slog.Int("open", e.view.Load().ledger.Unfinished(job)))
	}
	switch {
	case !res.Full:
		t.fullSince = time.Time{}
		return
	case t.fullSince.IsZero():
		t.fullSince = now
	}
	if len(e.view.Load().ledger.Runs) < plan.MaxOpenRuns { // by its size, of which what ended may be a part
		e.flush.hurry()
	}
}

// full says what is wrong where what is due has found no room for longer than a crowd needs; empty:
// nothing.
func (e *Engine) full(t *term) string {
	if t == nil || t.fullSince.IsZero() || time.Since(t.fullSince) <= e.o.LeaseDuration {
		return ""
	}
	return fmt.Sprintf("the ledger is full with %d open runs and %d KiB: what is due waits until some have ended", len(e.view.Load().ledger.Runs), e.o.Ledger.Size()>>10)
}
