package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

const statusAccepted = 202

// labour is what the app of a pod does with a run that it has accepted, until it has said how it ended.
// It lives as long as its pod does, whatever becomes of the sidecar.
type labour struct {
	world *world
	place string
	who   string // of the dice
	job   config.Job
	run   run.Run
	does  answer
	work  time.Duration
	heeds bool // it stops when it is told that the run is over
}

// accept has the app take a run on: it works beside its answer, and may be the quicker of the two.
func (i *invoker) accept(ctx context.Context, a run.Attempt, job config.Job, does answer, work time.Duration) run.Outcome {
	w := i.node.world
	who := "labour of " + a.Run.Occurrence + " " + strconv.Itoa(a.Run.Attempt)
	r := w.dice.of(who)
	l := &labour{world: w, place: i.node.place, who: who, job: job, run: a.Run, does: does, work: work, heeds: chance(r, 0.5)}
	if !w.isQuiet() && chance(r, 0.5) {
		l.work = between(r, 2*time.Second, 30*time.Second)
	}
	w.tasks.Go(l.do)
	timer := time.NewTimer(pick(r, between(r, time.Millisecond, 50*time.Millisecond), between(r, time.Millisecond, 2*time.Second)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended(context.Cause(ctx), true)
	case <-i.node.dead:
		return ended(errDead, true)
	case <-timer.C:
	}
	w.tally("accepted")
	return run.Outcome{State: run.StateSucceeded, Status: statusAccepted, Message: "accepted"}
}

// do works, says now and then that it does, and says how it ended until somebody has heard it.
func (l *labour) do() {
	w := l.world
	r := w.dice.of(l.who, "work")
	every := time.Hour
	if limit := l.job.HeartbeatTimeout; limit > 0 {
		every = limit / 3
	} else if chance(r, 0.3) {
		every = time.Second
	}
	if l.does == answerNever {
		l.work = time.Hour
	}
	for left := l.work; ; left -= every {
		if !l.rest(min(left, every) + between(r, 0, time.Millisecond)) {
			return
		}
		if left <= every {
			break
		}
		percent := int(100 * (l.work - left) / l.work)
		over := false
		l.ask(l.beside(), func(ctx context.Context, n *node) {
			_, err := n.engine.Heartbeat(ctx, l.run.ID, &percent, "")
			over = isCode(err, run.CodeRunOver)
		})
		if over && l.heeds {
			w.logf("", "the app of %s stops working on %s: it is over", l.place, l.run.ID[14:])
			return
		}
		if l.does == answerNever && chance(r, 0.02) {
			every = time.Hour // it hangs
		}
	}
	result, outcome := engine.Result{Message: w.words("done")}, run.Outcome{State: run.StateSucceeded}
	switch l.does {
	case answerError:
		result = engine.Result{Failed: true, Message: "failed"}
		outcome = run.Outcome{State: run.StateFailed, Retryable: true}
	case answerNo:
		result = engine.Result{Failed: true, Message: "failed for good", Final: true}
		outcome = run.Outcome{State: run.StateFailed}
	case answerOK, answerNever, answerLost, answerRefused:
	}
	w.check.told(l.run, outcome)
	w.logf("", "the app of %s has worked on %s: %s", l.place, l.run.ID[14:], outcome.State)
	for {
		n := l.beside()
		if chance(r, 0.15) { // any replica will do
			if all := w.alive(); len(all) > 0 {
				n = all[r.IntN(len(all))]
			}
		}
		heard := false
		l.ask(n, func(ctx context.Context, n *node) { heard = l.tell(ctx, n, result, outcome.State) })
		if heard && chance(r, 0.8) { // else it did not get the answer, and says the same again
			return
		}
		if !l.rest(between(r, 300*time.Millisecond, 3*time.Second)) {
			return
		}
	}
}

// tell says how the run ended and reports whether that was heard.
func (l *labour) tell(ctx context.Context, n *node, result engine.Result, as run.State) bool {
	w := l.world
	r, err := n.engine.Complete(ctx, l.run.ID, result)
	if !n.alive() {
		return false // nobody got the answer
	}
	w.logf(n.name, "was told that %s is %s: %s %v", l.run.ID[14:], as, r.State, err)
	switch {
	case err == nil:
		w.tally("told: recorded")
		w.check.promised(l.run, as, r)
		return true
	case isCode(err, run.CodeRunOver):
		w.tally("told: over")
		w.check.over(l.run)
		return true
	case isCode(err, run.CodeRunNotFound) && w.tight():
		w.tally("told: its record had to go")
		return true
	case isCode(err, run.CodeRunNotFound), isCode(err, run.CodeRunNotAwaited):
		w.check.fail("%s answers %v to the app that has worked on run %s of %s", n.name, err, l.run.ID, l.run.Key)
		return true
	}
	return false
}

func isCode(err error, code run.Code) bool {
	coded, ok := errors.AsType[*run.Error](err)
	return ok && coded.Code == code
}

// rest waits, and reports whether the app lives on.
func (l *labour) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.world.over:
		return false
	}
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return !l.world.gone[l.place]
}

// beside is the sidecar in the app's own pod; nil while none runs.
func (l *labour) beside() *node {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	n := l.world.pods[l.place]
	if n == nil || !n.alive() {
		return nil
	}
	return n
}

// ask sends a request to a sidecar, and waits no longer for the answer than an app would.
func (l *labour) ask(n *node, do func(context.Context, *node)) {
	if n == nil || n.gate(l.who) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(askedBy(l.who), 10*time.Second)
	defer cancel()
	do(ctx, n)
}

// told is told how the app sees a run that it has accepted, before anybody else is.
func (c *checker) told(r run.Run, o run.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[answered{run: r.ID}] = o
}

// promised checks a result that the app was told to be recorded.
func (c *checker) promised(r run.Run, as run.State, answer run.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is := c.ends[r.ID]; is != as || answer.State != as {
		c.failLocked("the app was told that run %s of %s is recorded as %s, it is %q", r.ID, r.Key, as, is)
	}
}

// over checks a run that the app was told to be over.
func (c *checker) over(r run.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is := c.ends[r.ID]; !is.Ended() {
		c.failLocked("the app was told that run %s of %s is over, it is %q", r.ID, r.Key, is)
	}
}

// definition is the version of a job that a run was decided by.
func (c *checker) definition(r run.Run) config.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jobs[version{r.Key.Job, r.Version}]
}

// heir reports whether a node is the successor in its pod of the one that has an accepted run.
func heir(n *node, r *run.Run) bool { return r.Async && n.place == r.Place && n.name != r.Node }
