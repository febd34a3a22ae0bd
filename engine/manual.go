package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Enqueue asks for one run of a job, now, without waiting for it; any replica may be asked. Data,
// a JSON object or nil, is laid over the job's own. The run waits for the running one under
// serial; under skip it is refused with [ErrAlreadyRunning]. It does not shift the schedule. Where there is
// no room for it, by [plan.Admit], the error is [run.CodeLedgerFull].
func (e *Engine) Enqueue(ctx context.Context, job string, data json.RawMessage) (run.Run, error) {
	catalog, err := e.o.Catalog.Read(ctx)
	if err != nil {
		return run.Run{}, fmt.Errorf("read catalog: %w", err)
	}
	current, ok := plan.Compile(&state.Catalog{Jobs: map[string]*state.Job{job: catalog.Jobs[job]}}).Jobs[job].Current()
	if !ok && e.wants(job) {
		return run.Run{}, errUnnoted(job)
	}
	if !ok {
		return run.Run{}, fmt.Errorf("%w: %q", ErrJobNotFound, job)
	}
	if e.o.Instance && e.draining.Load() { // nobody else could run it
		return run.Run{}, ErrDraining
	}
	if string(bytes.TrimSpace(data)) == "null" {
		data = nil
	}
	if _, err := config.MergeData(current.Config(job).Data, nil, data); err != nil {
		return run.Run{}, run.Errorf(run.CodeInvalidDefinition, "%v", err)
	}
	if len(data) > maxRunData {
		return run.Run{}, run.Errorf(run.CodeInvalidDefinition, "data of %d bytes is more than a run may carry (%d)", len(data), maxRunData)
	}
	id, now := e.o.NewID(), e.wall()
	key := run.Key{Job: job}
	r := run.Run{
		ID: id, Key: key, Occurrence: run.OccurrenceID(e.o.Namespace, e.o.App, key, now, id), Request: id,
		Version: current.Number, Cause: run.CauseManual, State: run.StateQueued, Priority: manualPriority,
		ScheduledAt: now, DueAt: now, Attempt: 1, DecidedAt: now, Data: data,
	}
	_, err = e.o.Ledger.SwapOnce(ctx, func(l *state.Ledger) error {
		ended := slices.ContainsFunc(l.Finished, func(r run.Run) bool { return r.ID == id })
		if l.Run(id) != nil || ended { // an earlier try of this swap has landed
			return ErrNoChange
		}
		if current.Overlap == config.OverlapSkip && l.Unfinished(job) > 0 {
			return fmt.Errorf("%w: %q", ErrAlreadyRunning, job)
		}
		if err := plan.Admit(l, r, e.o.MaxLedgerBytes); err != nil {
			return err
		}
		l.Runs = append(l.Runs, r)
		return nil
	})
	if errors.Is(err, ErrUnknown) && e.kept(ctx, id) {
		err = nil
	}
	if errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrUnknown) {
		return run.Run{}, run.Errorf(run.CodeLedgerFull, "the ledger has no room for another run: try again when some have ended")
	}
	if err != nil {
		return run.Run{}, err
	}
	e.emit(ManualPlanned{Run: r})
	e.watch.changed()
	return r, nil
}

// kept reports whether ledger or history have a run: one that was written down without an answer may
// have run and left the ledger since, and must not be written down again.
func (e *Engine) kept(ctx context.Context, id string) bool {
	_, _, err := e.find(ctx, id)
	return err == nil
}

// wants reports whether this node's definitions have a job, whether or not a leader knows it.
func (e *Engine) wants(job string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.desired.jobs, func(j config.Job) bool { return j.Name == job })
}

// errUnnoted says that a job is defined and not in the catalog.
func errUnnoted(job string) error {
	return run.Errorf(run.CodeNoScheduler, "job %q is defined, but no leader has taken note of it yet", job)
}

// Resolve ends a run that needs review as a person says that it ended: Succeeded, Failed or
// Canceled. Any replica may be asked. A run that does not need review is a conflict.
func (e *Engine) Resolve(ctx context.Context, id string, as run.State, note string) (run.Run, error) {
	var settled plan.Settled
	_, err := e.o.Ledger.Swap(ctx, func(l *state.Ledger) error {
		if l.Run(id) == nil {
			return run.Errorf(run.CodeRunNotFound, "there is no open run %q", id)
		}
		var ok bool
		if settled, ok = plan.Resolve(l, id, as, note, e.wall()); !ok {
			return run.Errorf(run.CodeAlreadyRunning, "run %q does not need review", id)
		}
		return nil
	})
	if err != nil {
		return run.Run{}, err
	}
	e.emit(RunEnded{Run: settled.Run, Final: true})
	e.watch.changed()
	return settled.Run, nil
}

// maxRunData bounds the data of one run, in bytes.
const maxRunData = 256 << 10

// manualPriority is that of a trigger which names none.
const manualPriority = 5

// Runs returns the newest runs, in flight and ended, newest instant first, at most limit; of one
// job where job is not empty.
func (e *Engine) Runs(ctx context.Context, job string, limit int) ([]run.Run, error) {
	// The ledger before the history: what moves from one to the other meanwhile is in both.
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	history, err := e.o.History.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	seen := make(map[string]bool)
	var out []run.Run
	add := func(runs []run.Run) {
		for _, r := range runs {
			if (job == "" || r.Key.Job == job) && !seen[r.ID] {
				seen[r.ID] = true
				out = append(out, r)
			}
		}
	}
	add(ledger.Finished)
	for _, j := range history.Jobs {
		if j != nil {
			add(j.Runs)
		}
	}
	add(ledger.Runs) // last: one that the history has too has ended since
	slices.SortFunc(out, state.NewestFirst)
	out = out[:min(limit, len(out))]
	e.asHeld(out)
	return out, nil
}
