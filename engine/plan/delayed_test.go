package plan_test

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"

	"github.com/google/go-cmp/cmp"
)

func TestAClockSetBackDecidesNoFixedDelayTwice(t *testing.T) {
	// The run ends, by a clock that was set back meanwhile, before the trigger was even first seen:
	// the interval from there leads to the instant that was just decided.
	w := newWorld(t, noon, job("a", "every 10m"))
	w.catalog.Jobs["a"].Versions[0].EffectiveAt = noon.Add(-10 * time.Minute)
	w.catalog.Jobs["a"].Versions[0].Bases["default"] = noon.Add(-10 * time.Minute)
	w.plan(noon)
	w.finish(noon.Add(-25 * time.Minute))
	w.plan(noon.Add(-25 * time.Minute))
	w.plan(noon)
	w.plan(noon.Add(time.Minute))
	want := []string{"Succeeded 0s", "Pending 100.001ms"}
	if diff := cmp.Diff(want, story(append(w.ledger.Finished, w.ledger.Runs...), nil)); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
}

func TestAClockThatWasOffDelaysNothingForLong(t *testing.T) {
	w := newWorld(t, noon, job("a", "every 10m start=2026-06-15T11:50:00Z"))
	w.plan(noon)
	// The node that had the run reports its end by a clock that is ahead by days.
	w.settle(w.ledger.Runs[0].ID, run.Outcome{State: run.StateSucceeded, StartedAt: noon, EndedAt: noon.Add(72 * time.Hour)}, config.Job{})
	w.plan(noon.Add(time.Minute))
	w.plan(noon.Add(11 * time.Minute))
	if len(w.ledger.Runs) != 1 {
		t.Errorf("%d runs ten minutes after the end was seen, want 1", len(w.ledger.Runs))
	}
}
