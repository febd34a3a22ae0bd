package engine

import (
	"time"

	"github.com/leasecron/leasecron/engine/state"
)

// Status returns what this node knows now, without asking anybody: the jobs the leader alone. See
// [Engine.Jobs].
func (e *Engine) Status() Status {
	v := e.view.Load()
	s := Status{
		Node: e.o.Node, Leading: v.leading, Term: v.term,
		LastTurn: time.Unix(0, e.lastTurn.Load()), LedgerBytes: e.o.Ledger.Size(), LedgerError: v.failing,
	}
	s.Unreadable = e.unreadable.count()
	s.Abandoned = int(e.abandoned.Load())
	e.mu.Lock()
	s.Held = len(e.held)
	started := make(map[string]state.Latest) // by job: what the ledger is told only when a run ends
	unsent := e.unsentLocked()
	for _, h := range e.held {
		if v.leading {
			latest := started[h.run.Key.Job]
			latest.Note(h.run)
			started[h.run.Key.Job] = latest
		}
		if h.inFlight() {
			s.InFlight++
		}
	}
	e.mu.Unlock()
	if !v.leading {
		return s
	}
	s.CatalogError, s.HistoryError = v.refused, e.flush.refusedBecause()
	now := e.wall()
	s.Everything = v.everything(now)
	s.Jobs = v.jobs(now, unsent)
	for i := range s.Jobs {
		s.Jobs[i].Latest = s.Jobs[i].Merge(started[s.Jobs[i].Job.Name])
	}
	return s
}

// unsent are the runs that this node has and of which no request has begun.
func (e *Engine) unsent() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unsentLocked()
}

func (e *Engine) unsentLocked() map[string]bool {
	ids := make(map[string]bool)
	for id, h := range e.held {
		if h.run.FiredAt.IsZero() {
			ids[id] = true
		}
	}
	return ids
}

// expectedWithin is how many instants of a trigger may pass without a success of its job before that
// is overdue: one may fail or be skipped, and the next make up for it.
const expectedWithin = 2

// job describes one job at now.
func (v *view) job(name string, now time.Time) JobStatus {
	j := v.definitions.Jobs[name]
	current, _ := j.Current()
	s := JobStatus{
		Job: current.Config(name), FirstSeen: j.FirstSeen,
		InFlight: v.ledger.Unfinished(name), NeedsReview: v.ledger.NeedReview(name), Latest: v.latest[name],
	}
	s.PausedBy = v.definitions.Holds(name, triggerNames(s.Job), now)
	if v.ledger.Spoiled()[name] {
		s.Error = "a record of this job in the ledger cannot be read: repair or remove it under \"unreadable\""
	}
	if err := v.definitions.Broken(name, v.ledger); err != nil {
		s.Error = err.Error()
	}
	tracks := v.definitions.TracksOf(name)
	s.Paused = s.paused(v.done(name, tracks))
	for _, track := range tracks {
		t := TriggerStatus{Name: track.Key.Trigger}
		paused, _ := v.definitions.Paused(track.Key, now)
		if at, ok := track.Undecided(v.ledger); ok && at.Before(now) {
			t.DueSince = at
			s.DueSince = earliest(s.DueSince, at)
			if !paused {
				s.Overdue = earliest(s.Overdue, at)
			}
		}
		if at, ok := v.definitions.After(track, v.ledger, s.LastSuccess, expectedWithin); ok && !paused {
			s.SuccessDue = earliest(s.SuccessDue, at)
		}
		if at, ok := track.Next(v.ledger, now); ok {
			t.Next = at
			s.Next = earliest(s.Next, at)
		}
		s.Triggers = append(s.Triggers, t)
	}
	return s
}
