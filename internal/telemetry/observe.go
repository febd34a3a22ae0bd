package telemetry

import (
	"context"
	"errors"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// Observe implements [engine.Observer].
func (t *Telemetry) Observe(event engine.Event) {
	switch e := event.(type) {
	case engine.TermBegan:
		t.leaderTransitions.Inc()
		t.jobs.lead(true)
	case engine.TermEnded:
		t.jobs.lead(false)
		if steppedDown(e.Err) {
			t.leadershipLost.Inc()
		}
	case engine.JobsChanged:
		t.jobs.force(e.Jobs)
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
	case engine.RecordsDropped:
		t.recordsDropped.Add(float64(e.Count))
	case engine.Committed:
		switch {
		case e.Err == nil:
			t.ledgerCommit.Observe(seconds(e.Took))
		case commitFailed(e.Err):
			t.ledgerCommitFailures.Inc()
		}
	}
}

// steppedDown reports whether the engine gave up a term that it could not go on with. Every other
// end is the election's to judge: it knows whether a Lease was taken away or handed over, which
// the cause of a context does not tell.
func steppedDown(err error) bool {
	return errors.Is(err, engine.ErrTermOver) || errors.Is(err, engine.ErrLedgerFailing) || errors.Is(err, engine.ErrNewerFormat)
}

// commitFailed reports whether the error of a swap is a failure, and not merely that there was
// nothing to write or that the process is stopping.
func commitFailed(err error) bool {
	return err != nil && !errors.Is(err, engine.ErrNoChange) && !errors.Is(err, context.Canceled)
}
