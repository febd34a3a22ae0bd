package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// deaf is how much later than it should the loop may find a run silent. If it is later still, the
// process stood still or waited for the ledger, and may not have heard what the app said.
const deaf = time.Second

// answerTime is how long an app that has said how a run ended may take to answer the callback.
const answerTime = 5 * time.Second

// open is what a node knows of a run that was sent: while the request is under way, and after the
// app has accepted it with 202. It is guarded by Engine.mu.
type open struct {
	expires  time.Time     // when the attempt's timeout ends it, by the monotonic clock
	heard    time.Time     // when the app last said that it works on it, by the same
	recorded bool          // the ledger shows that it was accepted
	said     *run.Progress // what the app said last; replaced, never changed
	news     bool          // that is not in the ledger yet
	forgiven bool          // its silence was counted anew, since this process was the one that did not listen
}

// accepted reports whether an outcome only says that the app has taken the run on.
func accepted(h *held, o run.Outcome) bool {
	const statusAccepted = 202
	return h.job.Async && h.stage == stageSent && o.State == run.StateSucceeded && o.Status == statusAccepted
}

// expiry is when an accepted run ends if the app says nothing, and whether its silence is why.
func (h *held) expiry() (at time.Time, silent bool) {
	if limit := h.job.HeartbeatTimeout; limit > 0 {
		if at := h.open.heard.Add(limit); at.Before(h.open.expires) {
			return at, true
		}
	}
	return h.open.expires, false
}

// expire ends the accepted runs whose time is up.
func (e *Engine) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, h := range e.held {
		if h.stage != stageOpen {
			continue
		}
		at, silent := h.expiry()
		if now.Before(at) {
			continue
		}
		if silent && !h.open.forgiven && now.Sub(at) > deaf {
			h.open.heard, h.open.forgiven = now, true
			continue
		}
		o := run.Outcome{
			State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Retryable: true, EndedAt: e.wall(),
			Message: "the app has accepted the run and not completed it within the timeout",
		}
		if silent {
			o.Message = fmt.Sprintf("the app has accepted the run and then sent no heartbeat for %s", h.job.HeartbeatTimeout)
		}
		e.endOpen(h, o)
	}
}

// endOpen gives an accepted run its outcome. The caller holds Engine.mu.
func (e *Engine) endOpen(h *held, o run.Outcome) {
	o.StartedAt = h.run.FiredAt
	h.outcome, h.stage = o, stageEnded
	e.poke()
}

func canceledOpen(at time.Time) run.Outcome {
	return run.Outcome{
		State: run.StateCanceled, Code: run.CodeCanceled, Unknown: true, EndedAt: at,
		Message: errCanceled.Error() + " after the app had accepted it; the app learns it from its next heartbeat",
	}
}

// dropOpen forgets the accepted runs that have ended elsewhere: another replica was told how, or they
// were declared lost. The caller holds Engine.mu.
func (e *Engine) dropOpen(l *state.Ledger) {
	for id, h := range e.held {
		if h.stage != stageOpen || !h.open.recorded {
			continue
		}
		if r := l.Run(id); r == nil || r.Node != e.o.Node {
			e.forget(h)
		}
	}
}

// takeUp holds a run that the app had accepted from the process before this one. What is left of its
// timeout is known by the wall clock only; its silence counts anew. The caller holds Engine.mu.
func (e *Engine) takeUp(r run.Run) {
	if e.heirloom == nil {
		return
	}
	job := e.inheritedJob(r)
	timeout, _ := timeoutOf(job, r, r.FiredAt)
	left := min(r.FiredAt.Add(timeout).Sub(e.wall()), timeout)
	now := time.Now()
	e.held[r.ID] = &held{
		run: r, job: job, stage: stageOpen, done: make(chan struct{}),
		open: open{expires: now.Add(left), heard: now, recorded: true, said: r.Progress},
	}
	e.poke()
}

// inherit settles, once in the life of a process, what the one before it in the same place has left:
// the runs that the app had accepted are this one's from now on, of the others nobody gets the answer
// any more. It does not take a leader.
func (e *Engine) inherit(ctx context.Context) error {
	if e.inherited || e.o.Place == "" && !e.o.Exclusive {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, swapTimeout)
	defer cancel()
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		return fmt.Errorf("look for runs of the process before this one: %w", err)
	}
	theirs := false
	for _, r := range ledger.Runs {
		theirs = theirs || r.State.Claimed() && (e.succeeds(r) || r.Async && r.Node == e.o.Node)
	}
	if !theirs {
		e.inherited = true
		return nil
	}
	catalog, err := e.o.Catalog.Read(ctx)
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	e.heirloom = plan.Compile(catalog)
	var out committed
	adopted := 0
	ledger, err = e.o.Ledger.Swap(ctx, func(l *state.Ledger) error {
		out = committed{}
		adopted = plan.Adopt(l, e.o.Node, e.orphaned)
		if e.o.ClockCheck() == nil { // else a leader finds them
			e.noteSettled(&out, plan.Lose(l, func(r run.Run) bool { return e.succeeds(r) }, e.inheritedJob, e.wall(), e.o.NewID))
		}
		if adopted == 0 && !out.changed {
			return ErrNoChange
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("take over the runs of the process before this one: %w", err)
	}
	e.inherited = true
	e.publish(func(v *view) { v.setLedger(ledger) })
	e.adopt(ledger)
	e.emit(out.events...)
	e.log.Info("took over from the process before this one in its place", slog.Int("adopted", adopted), slog.Int("lost", len(out.settled)), slog.String(logkey.Node, e.o.Node))
	return nil
}

// orphaned reports whether a run belonged to the process before this one, and its app lives on.
func (e *Engine) orphaned(r run.Run) bool {
	return r.Async && r.Node != e.o.Node && r.Place == e.o.Place && (e.o.Place != "" || e.o.Exclusive)
}

// succeeds reports whether this process took the place of the one that had the run.
func (e *Engine) succeeds(r run.Run) bool {
	return r.Node != e.o.Node && (e.o.Exclusive || e.o.Place != "" && r.Place == e.o.Place)
}

func (e *Engine) inheritedJob(r run.Run) config.Job { return jobOf(e.heirloom, r) }
