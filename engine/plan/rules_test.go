package plan_test

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestALostRunIsPutUpForReview(t *testing.T) {
	j := job("a", "* * * * *", func(j *config.Job) { j.Recovery = config.RecoveryReview })
	w := newWorld(t, noon, j)
	w.plan(noon)
	plan.Lose(w.ledger, func(run.Run) bool { return true }, func(run.Run) config.Job { return j }, noon.Add(time.Second), w.newID)
	w.plan(noon.Add(time.Minute))
	if len(w.ledger.Runs) != 1 || w.ledger.Runs[0].State != run.StateNeedsReview {
		t.Errorf("open %v, want the lost one in review, which keeps the next waiting", story(w.ledger.Runs, nil))
	}
}

func TestParallelWaitsAtItsLimit(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *", overlap(config.OverlapParallel, 2)))
	for m := range 5 {
		w.plan(noon.Add(time.Duration(m) * time.Minute))
	}
	if n := len(w.ledger.Runs); n != 2 {
		t.Errorf("%d open runs of a job with maxParallel 2", n)
	}
}

func TestTheBacklogOfARemovedJobIsNotRun(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Hour), job("a", "*/10 * * * *"))
	w.remove("a", noon)
	if w.plan(noon.Add(time.Minute)); len(w.ledger.Runs) != 0 {
		t.Errorf("decided %v of a job that has left", story(w.ledger.Runs, nil))
	}
}
