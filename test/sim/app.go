package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// app is what the callbacks reach, in every pod.
type app struct{ world *world }

// invoker delivers the attempts of one node.
type invoker struct{ node *node }

var _ engine.Invoker = (*invoker)(nil)

// answer is what the app does with one attempt.
type answer int

const (
	answerOK      answer = iota
	answerError          // 500: may be repeated
	answerNo             // 400: final
	answerNever          // works for longer than anybody waits
	answerLost           // the connection breaks while it works
	answerRefused        // the connection is refused for a while
)

var errTimeout = errors.New("the attempt's timeout has passed")

// Invoke implements [engine.Invoker] as package invoker does: the last question before the first
// byte is whether it may start; a refused connection is tried again, and asked for again; the
// outcome of what was sent is unknown unless an answer arrives.
func (i *invoker) Invoke(ctx context.Context, a run.Attempt) run.Outcome {
	// Attempts of the same instant do not end at the same instant.
	some := between(i.node.world.dice.of("timeout", a.Run.Occurrence, a.Run.Attempt), 0, time.Millisecond)
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout+some, errTimeout)
	defer cancel()
	out := i.deliver(ctx, a)
	out.EndedAt = i.node.wall()
	if out.Status != statusAccepted { // else the app says it when it has done the work
		i.node.world.check.outcome(i.node, a, out)
	}
	return out
}

func (i *invoker) deliver(ctx context.Context, a run.Attempt) run.Outcome {
	n, w := i.node, i.node.world
	r := w.dice.of("attempt", a.Run.Occurrence, a.Run.Attempt)
	quiet, longest := w.isQuiet(), w.work
	if quiet {
		longest = min(longest, 100*time.Millisecond)
	}
	does, work := answerOK, between(r, time.Millisecond, longest)
	if !quiet && chance(r, w.flaky) {
		does = pick(r, answerError, answerError, answerNo, answerNever, answerLost, answerRefused)
	}
	who := a.Run.Occurrence + strconv.Itoa(a.Run.Attempt)
	tries := 0
	if does == answerRefused {
		tries = 1 + r.IntN(6)
	}
	for {
		sleep(ctx, between(r, 10*time.Microsecond, 3*time.Millisecond)) // connecting
		if err := n.gate("start of " + who); err != nil {
			return ended(err, false)
		}
		if ctx.Err() != nil {
			return ended(context.Cause(ctx), false)
		}
		if err := a.MayStart(); err != nil {
			return run.Outcome{
				State: run.StateCanceled, Code: run.CodeCanceled, NotSent: true, Refused: true, Message: err.Error(),
			}
		}
		if tries == 0 {
			break
		}
		if tries--; tries == 0 && chance(r, 0.5) {
			return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, NotSent: true, Retryable: true, Message: "connection refused"}
		}
		sleep(ctx, 500*time.Millisecond)
	}
	asked := w.check.maySend(n, a)
	if !quiet && chance(r, 0.02) {
		n.pause(between(r, time.Second, 30*time.Second), false) // between the question and the byte
	}
	if err := n.gate("send of " + who); err != nil {
		return ended(err, false)
	}
	sent := n.wall()
	w.check.started(n, a, asked)
	a.Started(sent)
	w.logf(n.name, "SENDS %s attempt %d of %s, term %d, run %s", a.Run.Key, a.Run.Attempt, clock(a.Run.ScheduledAt), a.FencingTerm, a.Run.ID[14:])

	job := w.check.definition(a.Run)
	async := job.Async && does != answerLost
	var out run.Outcome
	if async {
		out = i.accept(ctx, a, job, does, work)
	} else {
		out = i.work(ctx, does, work)
	}
	if err := n.gate("end of " + who); err != nil {
		out = ended(err, true)
	}
	out.StartedAt = sent
	w.logf(n.name, "%s attempt %d of %s: %s %s", a.Run.Key, a.Run.Attempt, clock(a.Run.ScheduledAt), out.State, out.Message)
	return out
}

func (i *invoker) work(ctx context.Context, does answer, work time.Duration) run.Outcome {
	if does == answerNever {
		work = time.Hour
	}
	timer := time.NewTimer(work)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended(context.Cause(ctx), true)
	case <-i.node.dead:
		return ended(errDead, true)
	case <-timer.C:
	}
	switch does {
	case answerError:
		return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 500, Retryable: true, Message: i.node.world.words("500")}
	case answerNo:
		return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 400, Message: i.node.world.words("400")}
	case answerLost:
		return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Unknown: true, Retryable: true, Message: "connection lost"}
	case answerOK, answerNever, answerRefused:
	}
	return run.Outcome{State: run.StateSucceeded, Status: 200, Message: i.node.world.words("")}
}

// ended is the outcome of an attempt whose context has ended.
func ended(cause error, sent bool) run.Outcome {
	out := run.Outcome{State: run.StateCanceled, Code: run.CodeCanceled, NotSent: !sent, Unknown: sent, Message: cause.Error()}
	if errors.Is(cause, errTimeout) {
		out.State, out.Code, out.Retryable = run.StateFailed, run.CodeTimeout, true
	}
	return out
}
