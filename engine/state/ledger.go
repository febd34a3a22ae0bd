package state

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// Ledger is the hot document: it follows what is in flight, not how many jobs are defined.
type Ledger struct {
	// Term numbers the current leadership and only grows; Holder is the node that leads.
	Term   int64  `json:"term"`
	Holder string `json:"holder,omitempty"`
	// CatalogRevision is the revision of the catalog that decisions are made by.
	CatalogRevision int64 `json:"catalogRevision,omitempty"`
	// Watermark: every instant before it is decided, except those of the triggers in Triggers.
	Watermark time.Time `json:"watermark,omitzero"`
	// Triggers are the exceptions: a trigger that is not listed follows the watermark.
	Triggers map[run.Key]Trigger `json:"triggers,omitempty"`
	// Of the lists, an empty one is written and a missing one is not: so the store tells one that was emptied
	// from one that this program does not know.

	// Runs are those that have not ended, in the order in which they were decided.
	Runs []run.Run `json:"runs,omitzero"`
	// Finished and Skipped wait to be written to the history.
	Finished []run.Run  `json:"finished,omitzero"`
	Skipped  []run.Skip `json:"skipped,omitzero"`
	// Unreadable are records that this program cannot make sense of, kept as they are.
	Unreadable []json.RawMessage `json:"unreadable,omitzero"`
	// UnreadableEnded are those of what has ended, which concern nothing that is yet to be decided.
	UnreadableEnded []json.RawMessage `json:"unreadableEnded,omitzero"`
	// OddTriggers are the names of entries of Triggers that cannot be read. They are not lost: what
	// stores the ledger leaves members that it does not know where they are.
	OddTriggers []string `json:"-"`
}

// Trigger is what the ledger has to remember of one trigger beyond the watermark.
type Trigger struct {
	// Cursor: the instants before it are decided. Zero: the watermark tells.
	Cursor time.Time `json:"cursor,omitzero"`
	// AwaitsEnd: a fixed-delay trigger has fired and its next instant counts from the end.
	AwaitsEnd bool `json:"awaitsEnd,omitempty"`
	// LastEnd is when the latest occurrence of a fixed-delay trigger ended.
	LastEnd time.Time `json:"lastEnd,omitzero"`
	// Fired counts the occurrences of a limited trigger. The count belongs to an interval, a start and
	// a limit, which FiredOf names, whatever else an edit changes.
	Fired   int    `json:"fired,omitempty"`
	FiredOf string `json:"firedOf,omitempty"`
	// Gone is since when the trigger is not defined any more: its count is kept for [KeepRemoved].
	Gone time.Time `json:"gone,omitzero"`
	// NextCatchUp is when the catch-up rate allows the next run.
	NextCatchUp time.Time `json:"nextCatchUp,omitzero"`
}

// Lags reports whether instants of the trigger before the watermark may be undecided.
func (t Trigger) Lags() bool { return !t.Cursor.IsZero() }

// Idle reports whether nothing needs to be remembered.
func (t Trigger) Idle() bool { return t == Trigger{} }

// Run returns the open run with this ID, or nil. The pointer is into l.Runs.
func (l *Ledger) Run(id string) *run.Run {
	if i := slices.IndexFunc(l.Runs, func(r run.Run) bool { return r.ID == id }); i >= 0 {
		return &l.Runs[i]
	}
	return nil
}

// Remove takes the open run with this ID out of the ledger.
func (l *Ledger) Remove(id string) {
	l.Runs = slices.DeleteFunc(l.Runs, func(r run.Run) bool { return r.ID == id })
}

// Unfinished counts the occurrences of a job that have not ended: runs in flight and those
// that wait, retries included.
func (l *Ledger) Unfinished(job string) int {
	n := 0
	for i := range l.Runs {
		if l.Runs[i].Key.Job == job {
			n++
		}
	}
	return n
}

// Sent returns when the newest claimed run of a job was due, if that is not after now; zero: there is
// none. It may have been sent since, although its node has told nothing of it yet. Those that are known
// not to have been, by ID, do not count.
func (l *Ledger) Sent(job string, now time.Time, unsent map[string]bool) time.Time {
	var at time.Time
	for i := range l.Runs {
		if r := &l.Runs[i]; r.Key.Job == job && r.State.Claimed() && !r.DueAt.After(now) && !unsent[r.ID] {
			at = later(at, r.DueAt)
		}
	}
	return at
}

// NeedReview counts the runs of a job that wait for a person to say how they ended.
func (l *Ledger) NeedReview(job string) int {
	n := 0
	for i := range l.Runs {
		if l.Runs[i].Key.Job == job && l.Runs[i].State == run.StateNeedsReview {
			n++
		}
	}
	return n
}

// Claimed counts the runs that were given to a node.
func (l *Ledger) Claimed(node string) int {
	n := 0
	for i := range l.Runs {
		if l.Runs[i].Node == node && l.Runs[i].State.Claimed() {
			n++
		}
	}
	return n
}

// SetTrigger stores what has to be remembered of a trigger, or forgets it where that is nothing.
func (l *Ledger) SetTrigger(key run.Key, t Trigger) {
	if t.Idle() {
		delete(l.Triggers, key)
		return
	}
	if l.Triggers == nil {
		l.Triggers = make(map[run.Key]Trigger)
	}
	l.Triggers[key] = t
}
