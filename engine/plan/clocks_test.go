package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

func TestAManualRunIsDueAtOnceWhateverTheClockWhereItWasAsked(t *testing.T) {
	w := newWorld(t, noon, job("a", "manual"))
	later := noon.Add(30 * time.Minute)
	w.ledger.Runs = append(w.ledger.Runs, run.Run{
		ID: "asked", Key: run.Key{Job: "a"}, Version: 1, Cause: run.CauseManual, State: run.StateQueued,
		ScheduledAt: later, DueAt: later, Attempt: 1,
	})
	w.plan(noon)
	if r := w.ledger.Runs[0]; r.State != run.StatePending || !r.DueAt.Equal(noon) {
		t.Errorf("at noon %s, due %s, want it claimed and due", r.State, offset(r.DueAt))
	}
}

func TestAResumePassesOverNothingThatIsNotDue(t *testing.T) {
	// The clock of the replica that was asked is half an hour ahead of the leader's.
	w := newWorld(t, noon.Add(-2*time.Minute), job("a", "* * * * *"))
	w.catalog.Skips = map[string]time.Time{state.PauseKey(run.Key{Job: "a"}): noon.Add(30 * time.Minute)}
	w.plan(noon.Add(time.Second))
	want := []string{"Skipped resume-skip -2m0s count=3 until 1m0s"}
	if diff := cmp.Diff(want, story(nil, w.ledger.Skipped)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
