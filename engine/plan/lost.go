package plan

import (
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Lose declares the claimed runs that gone names as lost, for good, and enqueues the recovery
// that their jobs, which jobOf knows, ask for. It returns what became of each.
func Lose(l *state.Ledger, gone func(run.Run) bool, jobOf func(run.Run) config.Job, now time.Time, newID func() string) []Settled {
	var out []Settled
	for _, r := range slices.Clone(l.Runs) {
		if !r.State.Claimed() || !gone(r) {
			continue
		}
		job := jobOf(r)
		r.State, r.EndedAt, r.Unknown = run.StateLost, now, true
		r.Code = run.CodeFailed
		r.Message = "its sidecar " + r.Node + " is gone; whether the app ran it is not known"
		s := Settled{Run: r}
		switch job.Recovery {
		case config.RecoveryReview:
			s.Run.State, s.Run.EndedAt = run.StateNeedsReview, time.Time{}
			*l.Run(r.ID) = s.Run
			out = append(out, s)
			continue
		case config.RecoveryRerun:
			if !r.Recovered {
				s.Retry = another(r, run.CauseRecovery, now, newID())
			}
		case config.RecoveryNone:
		}
		end(l, s.Run, s.Retry)
		out = append(out, s)
	}
	return out
}
