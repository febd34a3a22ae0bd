package state

import (
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// Latest says when a job's runs last started, succeeded and failed for good; zero: never. The history
// keeps it for longer than the runs' own records.
type Latest struct {
	// LastStart is when the newest request was begun; of a run whose node was gone before it told, when
	// it was due.
	LastStart time.Time `json:"lastStart,omitzero"`
	// LastSuccess is when the newest successful run ended.
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	// LastFailure is when the newest run ended that failed or was lost, and that no further
	// attempt followed.
	LastFailure time.Time `json:"lastFailure,omitzero"`
}

// Note takes over what one run tells. No time ever goes back, in whatever order runs are noted.
func (l *Latest) Note(r run.Run) {
	l.LastStart = later(l.LastStart, r.FiredAt)
	if r.FiredAt.IsZero() && (r.State == run.StateLost || r.State == run.StateNeedsReview) {
		l.LastStart = later(l.LastStart, r.DueAt)
	}
	switch r.State {
	case run.StateSucceeded:
		l.LastSuccess = later(l.LastSuccess, r.EndedAt)
	case run.StateFailed, run.StateLost:
		if !r.Again {
			l.LastFailure = later(l.LastFailure, r.EndedAt)
		}
	case run.StateQueued, run.StatePending, run.StateRunning, run.StateNeedsReview, run.StateCanceled:
	}
}

// Merge returns the later of each time of two.
func (l Latest) Merge(other Latest) Latest {
	return Latest{
		LastStart: later(l.LastStart, other.LastStart), LastSuccess: later(l.LastSuccess, other.LastSuccess),
		LastFailure: later(l.LastFailure, other.LastFailure),
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
