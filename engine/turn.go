package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// turn is one round of the loop: gather, decide, commit, act. It returns when the next one is
// due, zero where only an event can make it so.
func (e *Engine) turn(ctx context.Context, attempts *attempts) time.Time {
	t := e.currentTerm()
	if t != nil && t.ctx.Err() != nil {
		e.giveUp()
		err := e.settleDoubt(ctx)
		if err == nil {
			_, err = e.report(ctx, attempts)
		}
		if err != nil {
			e.log.Warn("unsent runs could not be handed back yet", logkey.Err(err))
			e.unreported = cmp.Or(e.unreported, time.Now())
		}
		e.endTerm(t)
		t = nil
	}
	e.lookAtFormats(attempts)
	e.giveUpFuture()
	e.expire()
	if err := e.inherit(ctx); err != nil {
		return e.failed(t, err)
	}
	next, err := e.lead(ctx, t, attempts)
	if err != nil {
		return e.failed(t, err)
	}
	e.backoff.succeed()
	if full, was := e.full(t), e.view.Load().failing; was != full {
		if was == "" {
			e.log.Warn("the ledger is full", logkey.Err(errors.New(full)))
		}
		e.publish(func(v *view) { v.failing = full })
	}
	if !e.unreported.IsZero() {
		e.log.Info("what could not be reported is reported", slog.Duration("after", time.Since(e.unreported)))
		e.unreported = time.Time{}
	}
	if t != nil {
		t.failing = time.Time{}
	}
	return next
}

// lead takes over if need be, brings new definitions into force, and commits.
func (e *Engine) lead(ctx context.Context, t *term, attempts *attempts) (time.Time, error) {
	if t == nil {
		if err := e.settleDoubt(ctx); err != nil {
			return time.Time{}, err
		}
		return e.report(ctx, attempts)
	}
	// What is decided ends with the term, reports do not: they are sent again in a later turn.
	ctx, cancel := context.WithTimeout(ctx, swapTimeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	if t.number == 0 {
		if err := e.takeOver(ctx, t, attempts); err != nil {
			return time.Time{}, err
		}
	}
	e.recalled(t)
	if err := e.followDefinitions(ctx, t); err != nil {
		return time.Time{}, err
	}
	if err := e.listen(ctx, t); err != nil {
		return time.Time{}, err
	}
	next, err := e.commit(ctx, t, attempts)
	e.startFlush(attempts, t)
	e.noteTerm(t, attempts)
	if errors.Is(err, ErrTooLarge) {
		return e.commitLess(ctx, t, attempts, err)
	}
	if err != nil {
		return time.Time{}, err
	}
	return next, nil
}

// failed says when to try again after an error, and steps down where that is the answer.
func (e *Engine) failed(t *term, err error) time.Time {
	e.publish(func(v *view) { v.failing = err.Error() })
	if t == nil {
		if e.unreported.IsZero() { // once in an outage, however long it is
			e.unreported = time.Now()
			e.log.Warn("runs could not be reported yet, trying again", logkey.Err(err))
		}
		return e.wallAt(e.backoff.fail(e.o.Jitter))
	}
	if t.ctx.Err() != nil { // the term ended meanwhile: the next turn deals with that
		return e.wall()
	}
	switch reason := resigned(err); {
	case reason != nil:
		t.lease.Resign(reason)
		return e.wallAt(e.backoff.fail(e.o.Jitter))
	case t.failing.IsZero():
		t.failing = time.Now()
		e.log.Warn("ledger not written, trying again", logkey.Err(err))
	case time.Since(t.failing) > e.o.LeaseDuration:
		e.log.Error("stepping down: the ledger cannot be written although the lease can be renewed", logkey.Err(err))
		t.lease.Resign(ErrLedgerFailing)
	}
	return e.wallAt(e.backoff.fail(e.o.Jitter))
}

// committed gathers what one swap did, to be acted on when it has succeeded.
type committed struct {
	plan     plan.Result
	settled  []plan.Settled
	gone     []string     // held runs of which nothing is left to say
	lost     []string     // held runs that the ledger does not show as ours any more
	late     []lateResult // of runs that only the history knows
	events   []Event
	termOver bool
	unraised bool // the definitions have to be raised before anything is decided by them
	changed  bool
	// cut is what lay in the future, and index what the planner goes by where that was something.
	cut     plan.Cut
	index   *plan.Index
	flushed bool // what the history has was removed
	// abandoned counts the runs that are lost because the grace was over.
	abandoned int64
}

// commit reports what this node's runs did and, in a term, decides what is due: in one swap.
func (e *Engine) commit(ctx context.Context, t *term, attempts *attempts) (time.Time, error) {
	return e.commitReports(ctx, t, e.reports(t), attempts)
}

func (e *Engine) commitReports(ctx context.Context, t *term, reports []report, attempts *attempts) (time.Time, error) {
	var out committed
	change := func(l *state.Ledger) error {
		out = e.change(l, t, reports)
		if !out.changed {
			return ErrNoChange
		}
		return nil
	}
	v := e.view.Load()
	if len(reports) == 0 {
		if t == nil && !e.flush.written() {
			return e.nextReport(), nil
		}
		// Most turns have nothing to write; a copy tells without asking the ledger.
		if err := change(plan.Clone(v.ledger)); errors.Is(err, ErrNoChange) {
			if out.termOver {
				return time.Time{}, ErrTermOver
			}
			if t == nil {
				return e.nextReport(), nil
			}
			if out.unraised {
				return e.raiseFirst(t), nil
			}
			e.planned(t, out.plan)
			e.send(t, attempts) // what reading the ledger has shown of a claim that got no answer
			e.announce(t)
			return e.nextTurn(t, out.plan.Next), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, swapTimeout)
	defer cancel()
	began := time.Now()
	ledger, err := e.o.Ledger.Swap(ctx, change)
	took := time.Since(began)
	e.emit(Committed{Took: took, Bytes: e.o.Ledger.Size(), Err: err})
	if err != nil {
		if t != nil {
			t.tooLarge = out.plan
		}
		if t != nil && errors.Is(err, ErrUnknown) {
			e.raiseDoubt(t.number)
		}
		return time.Time{}, err
	}
	if out.changed { // from a later version than the ones before, which can be stored no more
		e.dispelDoubt()
	}
	e.latency = (3*e.latency + took) / 4
	if out.changed {
		e.wrote = time.Now()
	}
	e.publish(func(v *view) { v.setLedger(ledger) })
	if t != nil {
		if out.index != nil {
			t.index = out.index
			t.uncut = true
			e.tellCut(out.cut)
		}
		e.planned(t, out.plan)
		t.split.fits(e.o.MaxLedgerBytes, began)
		t.silence.read(time.Now(), e.o.NodeTimeout)
	}
	if e.settled += int64(len(out.gone)); out.flushed {
		e.settled++
	}
	e.flush.forget(ledger)
	e.noteLate(out.late, attempts)
	e.release(out, reports)
	e.adopt(ledger)
	e.send(t, attempts)
	e.emit(out.events...)
	if t == nil {
		return e.nextReport(), nil
	}
	e.announce(t)
	if out.termOver {
		return time.Time{}, ErrTermOver
	}
	if out.unraised {
		return e.raiseFirst(t), nil
	}
	return e.nextTurn(t, out.plan.Next), nil
}

// announce tells once which jobs are in force.
func (e *Engine) announce(t *term) {
	if t.announce {
		t.announce = false
		e.emit(JobsChanged{Jobs: currentJobs(t.definitions)})
	}
}

// change is the swap's function: it depends on the ledger that it is given and on what was
// gathered before, and on nothing that an earlier call of it did.
func (e *Engine) change(l *state.Ledger, t *term, reports []report) committed {
	var out committed
	now := e.wall()
	for _, r := range reports {
		e.applyReport(l, r, now, &out)
	}
	if e.flush.remove(l) {
		out.changed, out.flushed = true, true
	}
	if t == nil {
		return out
	}
	if l.Term != t.number {
		out.termOver = true
		return out
	}
	if t.lease.Check() != nil || e.o.ClockCheck() != nil {
		return out // reports only: what is decided now might be decided by somebody else
	}
	index := t.index
	if out.cut = plan.CutFuture(l, now, e.possible(now)); !out.cut.None() {
		index = plan.NewIndex(t.definitions, l)
		out.index, out.changed = index, true
	}
	if t.catalog.Revision > l.CatalogRevision && len(unnamedBehind(t.catalog, l.CatalogRevision, l.Watermark)) > 0 {
		// A swap of this term that was given up has been stored since, and has decided by the versions before; or
		// the watermark was ahead and is cut to now, which these versions did not know.
		out.unraised = true
		return out
	}
	t.silence.observe(l, e.o.Node, time.Now(), e.o.NodeTimeout)
	lost := plan.Lose(l, func(r run.Run) bool {
		return r.Node != e.o.Node && (e.succeeds(r) && !e.orphaned(r) || t.silence.of(r, time.Now()) >= e.o.NodeTimeout)
	}, t.jobOf, now, e.o.NewID)
	e.noteSettled(&out, lost)
	t.silence.carry(l, time.Now())
	out.plan = plan.Plan(plan.Input{
		Namespace: e.o.Namespace, App: e.o.App, Node: e.o.Node, Place: e.o.Place, Term: t.number, Instance: e.o.Instance,
		Now: now, Horizon: now.Add(e.ahead()), MaxRuns: e.o.MaxRuns,
		MaxBytes: cmp.Or(t.split.bytes, e.o.MaxLedgerBytes), MaxClaimed: t.split.claimed,
		NewID: e.o.NewID, Definitions: t.definitions, Index: index,
	}, l)
	e.noteSettled(&out, out.plan.Settled)
	for _, m := range out.plan.Missed {
		out.events = append(out.events, Missed{
			Key: m.Key, Reason: m.Reason, Count: m.Count, ScheduledAt: m.ScheduledAt, CoveredUntil: m.CoveredUntil,
		})
	}
	out.changed = out.changed || out.plan.Changed
	return out
}

// noteSettled turns runs that ended into events.
func (e *Engine) noteSettled(out *committed, settled []plan.Settled) {
	for _, s := range settled {
		out.changed = true
		out.settled = append(out.settled, s)
		out.events = append(out.events, RunEnded{Run: s.Run, Final: s.Final()})
		if s.Run.State == run.StateNeedsReview {
			continue
		}
		if s.Run.State == run.StateLost && s.Run.Cause == run.CauseSchedule {
			out.events = append(out.events, Missed{
				Key: s.Run.Key, Reason: run.ReasonLost, Count: 1,
				ScheduledAt: s.Run.ScheduledAt, CoveredUntil: s.Run.CoveredUntil,
			})
		}
		if !s.Final() {
			out.events = append(out.events, RetryPlanned{Run: s.Retry, After: s.Run})
		}
	}
}

// ahead is how long before their instant decisions are committed: a little more than a commit
// lately took, so that the callback leaves at the instant itself.
func (e *Engine) ahead() time.Duration {
	return min(max(e.latency*3/2+20*time.Millisecond, 50*time.Millisecond), maxAhead)
}

// maxAhead bounds how long before their instant decisions are committed.
const maxAhead = 500 * time.Millisecond

// nextTurn is when the leader has to look again, given the next instant.
func (e *Engine) nextTurn(t *term, instant time.Time) time.Time {
	next := e.nextReport()
	if !instant.IsZero() {
		next = earliest(next, instant.Add(-e.ahead()))
	}
	if at := t.silence.next(time.Now(), e.o.NodeTimeout); !at.IsZero() {
		next = earliest(next, e.wallAt(at))
	}
	for _, at := range [...]time.Time{e.flush.next(), t.catalogNext()} {
		if !at.IsZero() {
			next = earliest(next, e.wallAt(at))
		}
	}
	return next
}

// listen reads the ledger anew when somebody else has changed it, and while other nodes have
// runs: their silence only counts while this node's own reads succeed.
func (e *Engine) listen(ctx context.Context, t *term) error {
	silenceDue := !e.o.Exclusive && t.silence.due(time.Now(), e.o.NodeTimeout)
	if !e.watch.stale.Swap(false) && !silenceDue {
		return nil
	}
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		e.watch.stale.Store(true)
		return err
	}
	e.adopt(ledger)
	t.silence.read(time.Now(), e.o.NodeTimeout)
	e.publish(func(v *view) { v.setLedger(ledger) })
	return nil
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
