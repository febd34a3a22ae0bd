package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/logkey"
)

// defaultTimeout bounds an attempt of a job that is not defined any more.
const defaultTimeout = 30 * time.Second

// attempts owns the goroutines of the attempts under way.
type attempts struct {
	engine *Engine
	ctx    context.Context //nolint:containedctx // the loop's life
	group  sync.WaitGroup
	last   *held // that was started last; guarded by Engine.mu
}

// stop ends what is still under way, and waits for it: the loop has ended, so nobody would report it.
func (a *attempts) stop() {
	a.engine.mu.Lock()
	for _, h := range a.engine.held {
		h.hangUp()
	}
	a.engine.mu.Unlock()
	a.group.Wait()
}

// start sends a held run at its time, once its turn has come: when the one started before it has
// begun, or never will, unless that is due later. The caller holds Engine.mu.
func (a *attempts) start(h *held) {
	ctx, cancel := context.WithCancelCause(context.Background())
	h.cancel = cancel
	next := make(chan struct{})
	h.next, h.begun = next, sync.OnceFunc(func() { close(next) })
	if a.last != nil && !a.last.run.DueAt.After(h.run.DueAt) {
		h.turn = a.last.next
	}
	a.last = h
	a.group.Go(func() {
		defer cancel(nil)
		defer h.begun()
		a.engine.end(h, a.engine.guarded(ctx, h))
	})
}

// guarded is attempt, of which even a bug of this program ends that attempt alone: no other run
// may suffer, and the job may not stay blocked (R146).
func (e *Engine) guarded(ctx context.Context, h *held) (o run.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("an attempt failed inside the sidecar: this is a bug", slog.Any(logkey.Error, p), slog.String("stack", string(debug.Stack())))
			o = run.Outcome{
				State: run.StateFailed, Code: run.CodeFailed, Unknown: true, EndedAt: e.o.Now(),
				Message: "the sidecar failed while it called the app; its log says more",
			}
		}
	}()
	return e.attempt(ctx, h)
}

// attempt waits for the run's due time and delivers it.
func (e *Engine) attempt(ctx context.Context, h *held) run.Outcome {
	if err := e.waitUntil(ctx, h.run.DueAt); err != nil {
		return notSent(err, e.wall())
	}
	if h.job.Name == "" {
		return run.Outcome{
			State: run.StateFailed, Code: run.CodeJobNotFound, NotSent: true, EndedAt: e.wall(),
			Message: "the job's definition is gone",
		}
	}
	data, err := mergedData(h.job, h.run)
	if err != nil {
		return run.Outcome{
			State: run.StateFailed, Code: run.CodeInvalidDefinition, NotSent: true, EndedAt: e.wall(),
			Message: err.Error(),
		}
	}
	timeout, ok := timeoutOf(h.job, h.run, e.wall())
	if !ok {
		return run.Outcome{
			State: run.StateFailed, Code: run.CodeTimeout, NotSent: true, EndedAt: e.wall(),
			Message: "the deadline of " + h.job.Deadline.String() + " has passed",
		}
	}
	if h.turn != nil {
		select {
		case <-h.turn: // of a run that was due no later than this one, so it is not waited for long
		case <-ctx.Done():
			return notSent(context.Cause(ctx), e.wall())
		}
	}
	r := h.run
	r.FiredAt = e.wall()
	expires := time.Now().Add(timeout)
	h.begun()
	o := e.o.Invoker.Invoke(ctx, run.Attempt{
		Namespace: e.o.Namespace, App: e.o.App, Run: r, Description: h.job.Description,
		URL: cmp.Or(h.job.Target, e.o.Target) + h.job.Path, Method: h.job.Method, Headers: h.job.Headers, BearerFile: h.job.BearerFile,
		Data: data, Timeout: timeout, FencingTerm: e.fencingTerm(r),
		MayStart: func() error { return e.mayStart(h, expires) },
		Started:  func(at time.Time) { e.noteStarted(h, at) },
	})
	o.BegunAt = r.FiredAt
	return o
}

// timeoutOf is how long an attempt that starts then may take; it reports false where the deadline of
// all attempts together has passed.
func timeoutOf(job config.Job, r run.Run, starts time.Time) (time.Duration, bool) {
	timeout := job.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	if job.Deadline <= 0 {
		return timeout, true
	}
	timeout = min(timeout, job.Deadline) // for the first one that is all of it
	if !r.FirstStartedAt.IsZero() {
		timeout = min(timeout, r.FirstStartedAt.Add(job.Deadline).Sub(starts))
	}
	return timeout, timeout > 0
}

// fencingTerm is the token that the app is told; runs of an instance's own have none.
func (e *Engine) fencingTerm(r run.Run) int64 {
	if e.o.Instance {
		return 0
	}
	return r.Term
}

// mergedData lays the trigger's and the request's data over the job's.
func mergedData(job config.Job, r run.Run) (json.RawMessage, error) {
	var ofTrigger json.RawMessage
	for i := range job.Triggers {
		if job.Triggers[i].Name == r.Key.Trigger {
			ofTrigger = job.Triggers[i].Data
		}
	}
	return config.MergeData(job.Data, ofTrigger, r.Data)
}

// notSent is the outcome of an attempt that ended before it was sent.
func notSent(cause error, at time.Time) run.Outcome {
	o := run.Outcome{State: run.StateCanceled, Code: run.CodeCanceled, NotSent: true, EndedAt: at, Message: cause.Error()}
	o.Refused = errors.Is(cause, errGivenUp)
	return o
}

// waitUntil returns at the wall clock's time due, never before it, or when ctx ends. The clock is
// looked at again every few seconds, since it may be stepped.
func (e *Engine) waitUntil(ctx context.Context, due time.Time) error {
	for {
		left := due.Sub(e.o.Now().Round(0))
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(left, maxSleep))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
