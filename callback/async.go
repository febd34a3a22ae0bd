package callback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

const (
	// beatEvery is the longest pause between two heartbeats: how soon work learns that its run
	// was canceled.
	beatEvery = 5 * time.Second
	// beatAgain is the pause after a heartbeat that failed.
	beatAgain = time.Second
	// beatGap is the shortest pause, however often the work reports progress.
	beatGap = 200 * time.Millisecond
	// reportTime is how long the sidecar is told how a run ended until it answers.
	reportTime = time.Hour
	// lastWords is how long runs that a shutdown cuts short have to say so.
	lastWords = 5 * time.Second
)

// AsyncHandler returns a handler for jobs with async: true. It answers 202 at once and does the
// work afterwards, while it sends heartbeats with what [ReportProgress] says last; in the end it
// tells the sidecar how it went, for up to an hour if that does not answer. Besides that, it does
// what [Receiver.Handler] does; a delivery that has to wait for another one waits after the 202.
//
// The context of the work ends with the cause [ErrRunOver] when the sidecar says that the run is
// over, because it timed out or was canceled, and with [ErrShutdown] when [Receiver.Shutdown] has
// waited long enough.
func (rc *Receiver) AsyncHandler(do Func) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run, ok := rc.admit(w, r)
		if !ok {
			return
		}
		t := rc.begin(r.Context(), run)
		if t == nil {
			rc.answer(w, "", RetryAfter(ErrShutdown, 0))
			return
		}
		claim, err := rc.claimNow(r.Context(), run)
		if err != nil || claim.State == Done {
			rc.end(t)
			rc.answerDone(w, claim, err)
			return
		}
		write(w, http.StatusAccepted, "")
		_ = http.NewResponseController(w).Flush() // the sidecar's view first, then the work
		go rc.carryOut(t, do, claim.State == Claimed)
	})
}

// task is an asynchronous run under way.
type task struct {
	run      *Run
	ctx      context.Context // of the work
	cancel   context.CancelCauseFunc
	report   context.Context // of the report, which outlives the work
	giveUp   context.CancelCauseFunc
	progress chan Progress // holds the latest one
}

type taskKey struct{}

// ReportProgress says how far the work of an asynchronous run is: percent from 0 to 100, and what
// it is doing, up to 256 bytes. The next heartbeat carries it, at once if none was sent within the
// last 200 ms. It never blocks, and does nothing for synchronous runs.
func ReportProgress(ctx context.Context, percent int, message string) {
	t, ok := ctx.Value(taskKey{}).(*task)
	if !ok {
		return
	}
	for {
		select {
		case t.progress <- Progress{percent, message}:
			return
		default:
		}
		select { // make room by dropping an older one
		case <-t.progress:
		default:
		}
	}
}

// begin registers a run; nil after Shutdown.
func (rc *Receiver) begin(ctx context.Context, run *Run) *task {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if rc.stopped {
		return nil
	}
	t := &task{run: run, progress: make(chan Progress, 1)}
	base := NewContext(context.WithoutCancel(ctx), run)
	t.ctx, t.cancel = context.WithCancelCause(context.WithValue(base, taskKey{}, t))
	t.report, t.giveUp = context.WithCancelCause(base)
	rc.tasks[t] = struct{}{}
	return t
}

func (rc *Receiver) end(t *task) {
	t.cancel(nil)
	t.giveUp(nil)
	rc.mu.Lock()
	defer rc.mu.Unlock()
	delete(rc.tasks, t)
	if rc.stopped && len(rc.tasks) == 0 {
		close(rc.idle)
	}
}

// carryOut does the work, or waits for the delivery that does it, and reports.
func (rc *Receiver) carryOut(t *task, do Func, claimed bool) {
	defer rc.end(t)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		rc.beat(t)
	}()

	var message string
	var err error
	done := false
	if !claimed {
		var claim Claim
		claim, err = rc.claim(t.ctx, t.run)
		message, done = claim.Message, err == nil && claim.State == Done
		claimed = err == nil && claim.State == Claimed
	}
	if claimed {
		message, err = rc.call(t.ctx, do, t.run)
		rc.settle(t.report, t.run, message, err)
		done = err == nil
	}
	why := context.Cause(t.ctx)
	t.cancel(nil)
	<-beating
	rc.tell(t, message, done, err, why)
}

// tell reports the end of a run. A success counts for something even after the run is over: the
// sidecar drops a retry that it has not sent yet.
func (rc *Receiver) tell(t *task, message string, done bool, err, why error) {
	ctx, cancel := context.WithTimeout(t.report, reportTime)
	defer cancel()
	var failed error
	switch {
	case done:
		failed = rc.o.Sidecar.Complete(ctx, t.run.ID, message)
	case errors.Is(why, ErrRunOver):
		failed = why
	default:
		if why != nil && errors.Is(err, context.Canceled) {
			err = why // says more
		}
		failed = rc.o.Sidecar.Fail(ctx, t.run.ID, err)
	}
	if failed != nil {
		rc.log.LogAttrs(ctx, slog.LevelWarn, "asynchronous run ended otherwise for the sidecar", slog.String("job", t.run.Job),
			slog.String("run_id", t.run.ID), slog.Bool("work_done", done), slog.String("error", failed.Error()))
	}
}

// beat sends heartbeats until the work has ended, and ends it when the run is over.
func (rc *Receiver) beat(t *task) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var latest *Progress
	var last time.Time
	var final *APIError
	for {
		select {
		case <-t.ctx.Done():
			return
		case p := <-t.progress:
			latest = &p
			timer.Reset(max(0, beatGap-time.Since(last)))
			continue
		case <-timer.C:
		}
		last = time.Now()
		beat, err := rc.o.Sidecar.Heartbeat(t.ctx, t.run.ID, latest)
		switch {
		case errors.Is(err, ErrRunOver):
			t.cancel(fmt.Errorf("%w: %w", ErrRunOver, err))
			return
		case errors.As(err, &final):
			// The job is not async, or what answers is no sidecar: no reason to stop the work.
			rc.log.LogAttrs(t.ctx, slog.LevelError, "heartbeat refused", slog.String("job", t.run.Job),
				slog.String("run_id", t.run.ID), slog.String("error", err.Error()))
			return
		case err != nil:
			timer.Reset(beatAgain)
		default:
			timer.Reset(untilNext(beat, last))
		}
	}
}

// untilNext is the pause before the next heartbeat: a third of the silence that is allowed, and
// no longer than until the timeout, so that work stops when that has passed. It is the sidecar
// that says so; this clock only chooses when to ask.
func untilNext(b Beat, now time.Time) time.Duration {
	wait := beatEvery
	if !b.NextBefore.IsZero() {
		wait = min(wait, b.NextBefore.Sub(now)/3)
	}
	if left := b.TimeoutAt.Sub(now); !b.TimeoutAt.IsZero() {
		wait = min(wait, left)
	}
	return max(wait, beatGap)
}

// Shutdown waits until the asynchronous runs have ended and the sidecar knows; new ones are
// answered with 503. When ctx ends, it ends the context of the work, waits five seconds at most
// for the runs to be reported as failed, and returns the cause. Call it after the server's own
// Shutdown.
func (rc *Receiver) Shutdown(ctx context.Context) error {
	rc.mu.Lock()
	if !rc.stopped {
		rc.stopped = true
		if len(rc.tasks) == 0 {
			close(rc.idle)
		}
	}
	rc.mu.Unlock()
	select {
	case <-rc.idle:
		return nil
	case <-ctx.Done():
	}
	rc.each(func(t *task) { t.cancel(ErrShutdown) })
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-rc.idle:
	case <-timer.C:
		rc.each(func(t *task) { t.giveUp(ErrShutdown) })
	}
	return context.Cause(ctx)
}

func (rc *Receiver) each(do func(*task)) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for t := range rc.tasks {
		do(t)
	}
}
