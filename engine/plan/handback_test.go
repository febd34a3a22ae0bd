package plan_test

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestARunThatWasReportedAsRunningCanBeHandedBack(t *testing.T) {
	// The connection was refused; a heartbeat said meanwhile that the node works on the run; then the
	// lease ended, and the node may not try again. Nobody but it knows that nothing was sent.
	w := newWorld(t, noon, job("a", "* * * * *"))
	w.plan(noon)
	r := &w.ledger.Runs[0]
	r.State, r.Beat, r.FiredAt = run.StateRunning, 3, noon
	if !plan.HandBack(w.ledger, r.ID, "me") {
		t.Fatal("HandBack refused")
	}
	if got := w.ledger.Runs[0]; got.State != run.StateQueued || got.Node != "" || got.Beat != 0 || !got.FiredAt.IsZero() {
		t.Errorf("after the hand-back %+v, want it as if nobody had taken it", got)
	}
	w.plan(noon.Add(time.Second))
	if got := w.ledger.Runs[0]; got.ID != r.ID || got.State != run.StatePending {
		t.Errorf("a second later %+v, want the same run claimed again", got)
	}
}
