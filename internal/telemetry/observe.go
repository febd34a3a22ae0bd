package telemetry

import (
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// Observe implements [engine.Observer].
func (t *Telemetry) Observe(event engine.Event) {
	switch e := event.(type) {
	case engine.TermBegan:
		t.leaderTransitions.Inc()
	case engine.TermEnded:
		if e.Err != nil {
			t.leadershipLost.Inc()
		}
	case engine.JobsChanged:
		t.jobs.set(e.Jobs)
	case engine.RunStarted:
		t.fireLateness.Observe(seconds(e.Lateness))
	case engine.RunEnded:
		t.jobs.ended(e.Run.Key.Job, e.Run.State)
		// How long a lost run took is not known, and one that was never sent took no time.
		if e.Run.State != run.StateLost && !e.Run.FiredAt.IsZero() && !e.Run.EndedAt.IsZero() {
			t.runDuration.Observe(seconds(e.Run.EndedAt.Sub(e.Run.FiredAt)))
		}
	case engine.RetryPlanned:
		t.retries.Inc()
	case engine.ManualPlanned:
		t.manualTriggers.Inc()
	case engine.Missed:
		t.jobs.missed(e.Key.Job, e.Reason, e.Count)
	case engine.Committed:
		t.ledgerCommit.Observe(seconds(e.Took))
		if e.Err != nil {
			t.ledgerCommitFailures.Inc()
		}
	}
}
