package plan

import (
	"slices"
	"strings"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Late notes the result of a run that was ended meanwhile without one. What it was called it stays,
// for good; but a further attempt that nobody has taken yet is not needed any more where the work was
// done, whether or not the run's record has reached the history.
func Late(l *state.Ledger, ended run.Run, o run.Outcome) (canceled []Settled, noted bool) {
	for i := range l.Finished {
		r := &l.Finished[i]
		if r.ID != ended.ID {
			continue
		}
		if !Overdue(*r, o) {
			return nil, false // it ended with a result, and that stands
		}
		noted = NoteLate(r, o) || noted
	}
	if o.State != run.StateSucceeded {
		return nil, noted
	}
	for _, again := range slices.Clone(l.Runs) {
		further := again.Cause == run.CauseRecovery || again.Cause == run.CauseRetry
		if again.Occurrence == ended.Occurrence && again.Attempt > ended.Attempt && further && again.State == run.StateQueued {
			again.State, again.Code, again.EndedAt = run.StateCanceled, run.CodeCanceled, o.EndedAt
			again.Message = "not needed: an attempt before it reported its success late"
			end(l, again, run.Run{})
			canceled = append(canceled, Settled{Run: again})
			noted = true
		}
	}
	return canceled, noted
}

// Overdue reports whether o is worth a note on a run that has ended: it was ended without knowing
// what became of it, and now the app says so.
func Overdue(ended run.Run, o run.Outcome) bool {
	return ended.State == run.StateLost || ended.State.Ended() && ended.Unknown && o.Told
}

// NoteLate writes a late result into the message of a run that has ended. It reports false where
// that stands there already.
func NoteLate(r *run.Run, o run.Outcome) bool {
	note := run.LateNote + string(o.State)
	if strings.Contains(r.Message, note) {
		return false
	}
	if o.Told && o.Message != "" {
		note += ", " + o.Message
	}
	r.Message = Clip(note + "; " + r.Message)
	if !o.Told {
		r.Unknown = o.Unknown
	}
	return true
}
