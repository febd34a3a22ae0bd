package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Why an attempt was ended by this program rather than by the app.
var (
	errGivenUp  = errors.New("the run was given up before it was sent")
	errCanceled = errors.New("the run was canceled")
	errLost     = errors.New("the sidecar stops waiting for the run")
	errTold     = errors.New("the app has said how the run ended")
)

// stage is how far this node has come with a run that it holds.
type stage int

const (
	stageWaiting stage = iota // claimed in the ledger, not sent
	stageSent                 // may have been sent
	stageOpen                 // accepted by the app, which says later how it ended
	stageEnded                // its outcome is known and not in the ledger yet
	stageGivenUp              // will never be sent by this node: to be handed back
)

// held is a run that the ledger shows as this node's. It is guarded by Engine.mu.
type held struct {
	run     run.Run
	job     config.Job
	lease   Lease // of the term that claimed it
	stage   stage
	sending bool            // an attempt's goroutine exists
	turn    <-chan struct{} // closed when the attempt may begin; nil: at once
	next    <-chan struct{} // closed when the one after it may
	begun   func()          // says that it has, or never will
	lost    bool            // the ledger does not count on it any more
	cancel  context.CancelCauseFunc
	outcome run.Outcome
	open    open          // of a run that was sent
	done    chan struct{} // closed when this node has forgotten the run
	final   *run.Run      // set before that, where this node's report has ended it
}

// report is what the next swap says of a held run.
type report struct {
	id      string
	stage   stage
	run     run.Run
	job     config.Job
	outcome run.Outcome
	beat    bool          // say that this node still works on it
	accept  bool          // say that the app has accepted it
	abandon bool          // the grace is over
	said    *run.Progress // what the app says of it
}

// reports gathers what there is to say. Without a term, a heartbeat is due every third of the
// node timeout; a leader's swaps and renewals serve as its own.
func (e *Engine) reports(t *term) []report {
	e.mu.Lock()
	defer e.mu.Unlock()
	due := time.Since(e.lastBeat) >= e.o.NodeTimeout/3
	var out []report
	for id, h := range e.held {
		if h.stage == stageWaiting && !h.sending && (t == nil || h.lease != t.lease) {
			h.stage = stageGivenUp // taken up when its term was over already
		}
		r := report{id: id, stage: h.stage, run: h.run, job: h.job, outcome: h.outcome}
		r.abandon = e.abandon != nil && (h.stage == stageWaiting || h.stage == stageSent) || h.stage == stageOpen && e.forsakes()
		r.accept, r.said = h.stage == stageOpen && !h.open.recorded, h.open.said
		r.beat = due && h.inFlight() && !h.lost && (t == nil || h.open.news)
		if h.stage == stageEnded || h.stage == stageGivenUp || r.beat || r.accept || r.abandon {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b report) int { return cmp.Or(a.run.DueAt.Compare(b.run.DueAt), cmp.Compare(a.id, b.id)) })
	return out
}

// applyReport writes one report into the ledger.
func (e *Engine) applyReport(l *state.Ledger, r report, now time.Time, out *committed) {
	current := l.Run(r.id)
	if current == nil || current.Node != e.o.Node {
		// The verdict that came first stands. The app may still be at work: its answer is worth a note.
		if r.stage == stageSent && !r.abandon { // of one that was accepted the app says it where it is asked
			out.lost = append(out.lost, r.id)
			return
		}
		out.gone = append(out.gone, r.id)
		if current == nil && r.stage == stageEnded && !r.outcome.NotSent {
			if !slices.ContainsFunc(l.Finished, func(ended run.Run) bool { return ended.ID == r.id }) {
				out.late = append(out.late, lateResult{r.run, r.outcome})
			}
			canceled, noted := plan.Late(l, r.run, r.outcome)
			out.changed = out.changed || noted
			e.noteSettled(out, canceled)
		}
		return
	}
	switch {
	case r.stage == stageEnded:
		if r.said != nil {
			current.Progress = r.said
		}
		if s, ok := plan.Settle(l, r.id, plan.Report{Outcome: r.outcome, NewID: e.o.NewID}, r.job); ok {
			e.noteSettled(out, []plan.Settled{s})
		}
		out.gone = append(out.gone, r.id)
	case r.stage == stageGivenUp:
		out.changed = plan.HandBack(l, r.id, e.o.Node) || out.changed
		out.gone = append(out.gone, r.id)
	case r.abandon:
		e.noteSettled(out, plan.Lose(l, func(x run.Run) bool { return x.ID == r.id },
			func(run.Run) config.Job { return r.job }, now, e.o.NewID))
		out.abandoned++
		out.gone = append(out.gone, r.id)
	case (r.beat || r.accept) && current.State.Claimed(): // a verdict that came first stands
		current.Beat++
		current.Silent = 0
		current.State = run.StateRunning
		if current.FiredAt.IsZero() {
			current.FiredAt = r.run.FiredAt
		}
		current.Async = current.Async || r.stage == stageOpen
		if r.said != nil {
			current.Progress = r.said
		}
		out.changed = true
	}
}

// release forgets the runs that are settled, now that this is in the ledger.
func (e *Engine) release(out committed, reports []report) {
	e.abandoned.Add(out.abandoned)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range out.gone {
		if h := e.held[id]; h != nil {
			for i := range out.settled {
				if out.settled[i].Run.ID == id {
					h.final = &out.settled[i].Run
				}
			}
			e.forget(h)
		}
	}
	for _, id := range out.lost {
		if h := e.held[id]; h != nil {
			h.lost = true
		}
	}
	for _, r := range reports {
		if r.beat {
			e.lastBeat = time.Now()
		}
		if h := e.held[r.id]; h != nil && (r.beat || r.accept) {
			h.open.recorded = h.open.recorded || r.accept
			h.open.news = h.open.news && h.open.said != r.said
		}
	}
}

// forget lets go of a run of which nothing is left to say. The caller holds Engine.mu.
func (e *Engine) forget(h *held) {
	h.hangUp()
	delete(e.held, h.run.ID)
	close(h.done)
}

// hangUp ends the attempt of a run that nobody waits for any more. The caller holds Engine.mu.
func (h *held) hangUp() {
	switch cancel := h.cancel; {
	case cancel == nil:
	case h.outcome.Told: // the app may be about to answer: it gets the time to do so
		time.AfterFunc(answerTime, func() { cancel(errTold) })
	default:
		cancel(errLost)
	}
}

// inFlight reports whether the app works on the run. The caller holds Engine.mu.
func (h *held) inFlight() bool { return h.stage == stageSent || h.stage == stageOpen }

// adopt takes up the runs that the ledger shows as this node's and that it does not hold: a swap
// whose answer was lost has claimed them, so they were surely not sent. It also ends the attempts
// that the ledger asks to cancel.
func (e *Engine) adopt(l *state.Ledger) {
	e.mu.Lock()
	defer e.mu.Unlock()
	unwanted := false
	for _, r := range l.Runs {
		if r.Node != e.o.Node || !r.State.Claimed() {
			continue
		}
		h := e.held[r.ID]
		if h == nil && r.State == run.StateRunning {
			if r.Async {
				e.takeUp(r) // of the process before this one
			}
			continue // it has been worked on: it is not to be sent again, whatever became of it
		}
		if h == nil {
			h = &held{run: r, done: make(chan struct{})}
			if t := e.term; t != nil && t.ctx.Err() == nil && t.number == r.Term {
				h.job, h.lease = t.jobOf(r), t.lease
			} else {
				h.stage, unwanted = stageGivenUp, true
			}
			e.held[r.ID] = h
		}
		switch {
		case !r.Cancel:
		case h.stage == stageOpen:
			e.endOpen(h, canceledOpen(e.wall()))
		case h.cancel != nil && h.stage != stageEnded:
			h.cancel(errCanceled)
		case h.stage == stageWaiting && !h.sending: // asked for before this node knew that it has the run
			h.outcome, h.stage = notSent(errCanceled, e.wall()), stageEnded
			e.nudge()
		}
	}
	e.dropOpen(l)
	if unwanted {
		e.poke() // it is handed back in a turn of its own, soon
	}
}

// send starts the attempts of the runs that were taken up. Those that are due at once begin one
// after the other, in the order in which they got their slots.
func (e *Engine) send(t *term, attempts *attempts) {
	if t == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var ready []*held
	for _, h := range e.held {
		if h.stage == stageWaiting && !h.sending && h.lease == t.lease {
			h.sending = true
			ready = append(ready, h)
		}
	}
	slices.SortFunc(ready, func(a, b *held) int {
		return cmp.Or(a.run.DueAt.Compare(b.run.DueAt), plan.SlotOrder(&a.run, &b.run))
	})
	for _, h := range ready {
		attempts.start(h)
	}
}

// giveUp makes sure that nothing starts any more that has not started: in memory first, for good.
func (e *Engine) giveUp() { e.giveUpThose(func(run.Run) bool { return true }) }

// giveUpFuture gives up what waits for a time that the clock, which was ahead and came back, has made far
// away: it would hold up its job until then.
func (e *Engine) giveUpFuture() {
	possible := e.possible(e.wall())
	e.giveUpThose(func(r run.Run) bool { return r.DueAt.After(possible) })
}

func (e *Engine) giveUpThose(which func(run.Run) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.held {
		if h.stage == stageWaiting && which(h.run) {
			h.stage = stageGivenUp
			if h.cancel != nil {
				h.cancel(errGivenUp)
			}
		}
	}
}

// mayStart is the last word before a request is written: it is answered under the lock under
// which runs are given up, so that a run is either sent or given up, never both.
func (e *Engine) mayStart(h *held, expires time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.stage == stageGivenUp {
		return errGivenUp
	}
	if e.wall().Before(h.run.DueAt) {
		return errors.New("the instant has not come: the clock was set back")
	}
	if err := h.lease.Check(); err != nil {
		return err
	}
	h.stage, h.open.expires = stageSent, expires
	return nil
}

// noteStarted records when the first byte left.
func (e *Engine) noteStarted(h *held, at time.Time) {
	at = at.Round(0).UTC().Truncate(time.Microsecond)
	e.mu.Lock()
	h.run.FiredAt = at
	r := h.run
	e.mu.Unlock()
	e.emit(RunStarted{Run: r, Lateness: at.Sub(r.DueAt)})
}

// end takes an attempt's outcome.
func (e *Engine) end(h *held, o run.Outcome) {
	o.EndedAt = o.EndedAt.Round(0).UTC().Truncate(time.Microsecond)
	if !o.StartedAt.IsZero() {
		o.StartedAt = o.StartedAt.Round(0).UTC().Truncate(time.Microsecond)
	}
	e.mu.Lock()
	h.cancel = nil
	if h.outcome.Told { // the app has been quicker with its word than with its answer
		e.mu.Unlock()
		return
	}
	if accepted(h, o) {
		h.stage, h.open.heard = stageOpen, time.Now()
		e.mu.Unlock()
		e.nudge()
		return
	}
	h.outcome = o
	switch {
	case o.Refused && o.NotSent:
		h.stage = stageGivenUp
	case h.stage == stageGivenUp:
	default:
		h.stage = stageEnded
	}
	given := h.stage == stageGivenUp
	e.mu.Unlock()
	if given {
		e.poke()
	} else {
		e.nudge()
	}
}

// nextReport is when there is something to say of a held run, or a claim to be looked for that may
// be stored late; zero: nothing is.
func (e *Engine) nextReport() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	var next time.Time
	if e.term == nil && e.doubt.term != 0 {
		next = e.wallAt(e.doubt.next)
	}
	for _, h := range e.held {
		if h.inFlight() && !h.lost && (e.term == nil || h.open.news) {
			next = earliest(next, e.wallAt(e.lastBeat.Add(e.o.NodeTimeout/3)))
		}
		if h.stage == stageOpen {
			at, _ := h.expiry()
			next = earliest(next, e.wallAt(at))
		}
	}
	return next
}
