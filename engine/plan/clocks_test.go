package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

func TestAManualRunIsDueAtOnceWhateverTheClockWhereItWasAsked(t *testing.T) {
	w := newWorld(t, noon, job("a", "manual"))
	later := noon.Add(30 * time.Minute)
	w.ledger.Runs = append(w.ledger.Runs, run.Run{
		ID: "asked", Key: run.Key{Job: "a"}, Version: 1, Cause: run.CauseManual, State: run.StateQueued,
		ScheduledAt: later, DueAt: later, DecidedAt: later, Attempt: 1,
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

func TestWhatEndedInTheFutureCountsFromNow(t *testing.T) {
	// The run ended at a node whose clock is an hour ahead.
	ahead := noon.Add(time.Hour)
	t.Run("a retry", func(t *testing.T) {
		j := job("a", "0 12 * * *", func(j *config.Job) { j.Retry = config.Retry{MaxRetries: 1, Delay: time.Minute} })
		w := newWorld(t, noon, j)
		w.plan(noon)
		w.settle(w.ledger.Runs[0].ID, run.Outcome{State: run.StateFailed, Retryable: true, StartedAt: noon, EndedAt: ahead}, j)
		w.plan(noon.Add(time.Second))
		if r := w.ledger.Runs[0]; !r.DueAt.Equal(noon.Add(61 * time.Second)) {
			t.Errorf("due %s, want a minute after it was seen", offset(r.DueAt))
		}
	})
	t.Run("a fixed delay", func(t *testing.T) {
		w := newWorld(t, noon, job("a", "every 10m start=2026-06-15T11:50:00Z"))
		w.plan(noon)
		w.finish(ahead)
		if res := w.plan(noon.Add(time.Second)); !res.Next.Equal(noon.Add(10*time.Minute + time.Second)) {
			t.Errorf("next look at %s, want an interval after the end was seen", offset(res.Next))
		}
	})
}

func TestVersionsThatTakeEffectOutOfTheirOrder(t *testing.T) {
	// The second version was made by a leader whose clock was ahead, the third by its successor.
	w := newWorld(t, noon.Add(-90*time.Second), job("a", "* * * * *"))
	w.define(job("a", "*/2 * * * *"), noon.Add(3*time.Minute))
	w.define(job("a", "30 * * * * *"), noon)
	var decided []string
	for now := noon; now.Before(noon.Add(5 * time.Minute)); now = now.Add(10 * time.Second) {
		before := len(w.ledger.Runs)
		w.plan(now)
		decided = append(decided, story(w.ledger.Runs[before:], nil)...)
		w.finish(now)
	}
	want := []string{
		"Pending -1m0s until 0s",
		"Pending 30s until 1m30s", "Pending 1m30s until 2m30s", "Pending 2m30s until 3m30s", "Pending 3m30s until 4m30s", "Pending 4m30s until 5m30s",
	}
	if diff := cmp.Diff(want, decided); diff != "" {
		t.Errorf("up to noon by the first version, from then on by the newest (-want +got):\n%s", diff)
	}
}
