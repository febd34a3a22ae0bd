package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Result is how an app says that an asynchronous run has ended.
type Result struct {
	Failed  bool
	Message string // any length; 1 KiB is kept, on one line
	// Of a failure:
	Code       string        // the app's own; may be empty
	Final      bool          // no retry, however many the job has
	RetryAfter time.Duration // a retry comes no sooner
}

// maxResult bounds what is kept of a result's message.
const maxResult = 1 << 10

func (r Result) outcome(now time.Time) run.Outcome {
	o := run.Outcome{State: run.StateSucceeded, Message: run.OneLine(r.Message, maxResult), Told: true, EndedAt: now}
	if r.Failed {
		o.State, o.Code, o.AppCode = run.StateFailed, run.CodeFailed, r.Code
		o.Retryable, o.RetryAfter = !r.Final, r.RetryAfter
	}
	return o
}

const (
	// earlyFor is how long a word on a run is held that no node has said to be sent yet: whoever is told
	// so by the app may be quicker than the node that sent it.
	earlyFor   = 3 * time.Second
	earlyEvery = 100 * time.Millisecond
)

// Complete takes the app's word on how an asynchronous run ended, and returns the run once that is in
// the ledger. Any replica may be told. The same word again gets the same answer; a run that has ended
// otherwise is [run.CodeRunOver], which notes the result where there was none. An error that is no
// [run.Error] leaves open whether the word will be recorded: say it again.
func (e *Engine) Complete(ctx context.Context, id string, result Result) (run.Run, error) {
	o := result.outcome(e.wall())
	r, known, err := e.tellHeld(ctx, id, o)
	if known || err != nil {
		return r, err
	}
	return e.tellLedger(ctx, id, o)
}

// tellHeld gives the app's word to a run that this node holds; the loop records it with all else that
// there is to say. It reports false where the ledger has to be asked.
func (e *Engine) tellHeld(ctx context.Context, id string, o run.Outcome) (r run.Run, known bool, err error) {
	e.mu.Lock()
	h := e.held[id]
	if h == nil || h.lost {
		e.mu.Unlock()
		return run.Run{}, false, nil
	}
	switch {
	case !h.job.Async:
		err = unawaited(h.run)
	case h.stage == stageWaiting || h.stage == stageGivenUp:
		err = run.Errorf(run.CodeRunNotAwaited, "run %q has not been sent", id)
	case h.stage == stageEnded && h.outcome.Told && h.outcome.State != o.State:
		err = over(id, h.outcome.State)
	case h.stage == stageEnded:
	default:
		o.StartedAt = h.run.FiredAt
		h.outcome, h.stage = o, stageEnded
	}
	e.mu.Unlock()
	if err != nil {
		return run.Run{}, true, err
	}
	e.poke()
	select {
	case <-h.done:
	case <-ctx.Done():
		return run.Run{}, true, fmt.Errorf("the result of run %s is kept until it can be recorded: %w", id, context.Cause(ctx))
	}
	if h.final == nil || h.final.State != o.State || !h.outcome.Told {
		return run.Run{}, false, nil // another end came first: the ledger knows which
	}
	return *h.final, true, nil
}

// tellLedger records the app's word on a run that this node does not hold.
func (e *Engine) tellLedger(ctx context.Context, id string, o run.Outcome) (run.Run, error) {
	r, _, err := e.find(ctx, id)
	if err != nil {
		return run.Run{}, err
	}
	job, err := e.jobFromCatalog(ctx, r)
	if err != nil {
		return run.Run{}, err
	}
	var told plan.Told
	for deadline := time.Now().Add(earlyFor); ; {
		_, err := e.o.Ledger.Swap(ctx, func(l *state.Ledger) error {
			told = plan.Tell(l, id, plan.Report{Outcome: o, NewID: e.o.NewID}, job)
			if !told.Changed {
				return ErrNoChange
			}
			return nil
		})
		if err != nil {
			return run.Run{}, err
		}
		if told.Verdict != plan.VerdictEarly || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(earlyEvery):
		case <-ctx.Done():
			return run.Run{}, context.Cause(ctx)
		}
	}
	if told.Changed {
		var out committed
		e.noteSettled(&out, told.Settled)
		e.emit(out.events...)
		e.watch.changed()
	}
	if told.Verdict == plan.VerdictUnknown {
		return e.tellHistory(ctx, id, o, job)
	}
	return answerOf(told)
}

// tellHistory judges the app's word on a run of which only the history has a record.
func (e *Engine) tellHistory(ctx context.Context, id string, o run.Outcome, job config.Job) (run.Run, error) {
	ended, open, err := e.find(ctx, id)
	if err != nil {
		return run.Run{}, err
	}
	if open {
		return run.Run{}, errors.New("the run moved while it was looked at") // by a clock-work of moves: ask again
	}
	told := plan.Afterwards(ended, o, job)
	if told.Verdict != plan.VerdictOver || !plan.Overdue(ended, o) {
		return answerOf(told)
	}
	if err := e.noteInHistory(ctx, lateResult{ended, o}); err != nil {
		return run.Run{}, err
	}
	var canceled []plan.Settled
	if _, err := e.o.Ledger.Swap(ctx, func(l *state.Ledger) (err error) {
		var changed bool
		if canceled, changed = plan.Late(l, ended, o); !changed {
			return ErrNoChange
		}
		return nil
	}); err != nil {
		return run.Run{}, err
	}
	if len(canceled) > 0 {
		var out committed
		e.noteSettled(&out, canceled)
		e.emit(out.events...)
		e.watch.changed()
	}
	return answerOf(told)
}

func answerOf(told plan.Told) (run.Run, error) {
	switch told.Verdict {
	case plan.VerdictRecorded, plan.VerdictSame:
		return told.Run, nil
	case plan.VerdictOver:
		return run.Run{}, over(told.Run.ID, told.Run.State)
	case plan.VerdictEarly:
		return run.Run{}, run.Errorf(run.CodeNoScheduler, "run %q is with %s, which has not written yet that it was sent: ask again, or the sidecar beside the app", told.Run.ID, told.Run.Node)
	case plan.VerdictUnawaited, plan.VerdictUnknown:
	}
	if told.Run.State == run.StateQueued {
		return run.Run{}, run.Errorf(run.CodeRunNotAwaited, "run %q has not been sent", told.Run.ID)
	}
	return run.Run{}, unawaited(told.Run)
}

func over(id string, as run.State) error {
	return run.Errorf(run.CodeRunOver, "run %q is over: it is %s, and stays it", id, as)
}

func unawaited(r run.Run) error {
	return run.Errorf(run.CodeRunNotAwaited, "job %q is not async: the answer to the callback says how run %q ended", r.Key.Job, r.ID)
}

// find looks a run up, the open ones first. It reports whether the run has not ended.
func (e *Engine) find(ctx context.Context, id string) (r run.Run, open bool, err error) {
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		return run.Run{}, false, fmt.Errorf("read ledger: %w", err)
	}
	if r := ledger.Run(id); r != nil {
		return *r, true, nil
	}
	is := func(r run.Run) bool { return r.ID == id }
	if i := slices.IndexFunc(ledger.Finished, is); i >= 0 {
		return ledger.Finished[i], false, nil
	}
	history, err := e.o.History.Read(ctx)
	if err != nil {
		return run.Run{}, false, fmt.Errorf("read history: %w", err)
	}
	for _, j := range history.Jobs {
		if j == nil {
			continue
		}
		if i := slices.IndexFunc(j.Runs, is); i >= 0 {
			return j.Runs[i], false, nil
		}
	}
	return run.Run{}, false, run.Errorf(run.CodeRunNotFound, "there is no run %q, or its record is not kept any more", id)
}

// jobFromCatalog returns the definition that a run was decided by, as the catalog has it. Where it has it no
// more, the app that reports knows better than any other version whether that is expected of it.
func (e *Engine) jobFromCatalog(ctx context.Context, r run.Run) (config.Job, error) {
	catalog, err := e.o.Catalog.Read(ctx)
	if err != nil {
		return config.Job{}, fmt.Errorf("read catalog: %w", err)
	}
	name := r.Key.Job
	record := catalog.Jobs[name]
	if record == nil {
		return config.Job{Async: true}, nil
	}
	job := jobOf(plan.Compile(&state.Catalog{Jobs: map[string]*state.Job{name: record}}), r)
	kept := slices.ContainsFunc(record.Versions, func(v state.Version) bool { return v.Number == r.Version })
	job.Async = job.Async || !kept
	return job, nil
}
