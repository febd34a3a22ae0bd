package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestReplacingWhatWasNotSentTakesItsPlaceAtOnce(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *", overlap(config.OverlapReplace, 0)))
	w.maxRuns = 0 // no slot: it waits
	w.plan(noon)
	w.plan(noon.Add(time.Minute))
	if diff := cmp.Diff([]string{"Queued 1m0s until 2m0s"}, story(w.ledger.Runs, nil)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Canceled 0s until 1m0s"}, story(w.ledger.Finished, nil)); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

func TestCatchingUpReplacesNothingBeforeItsTurn(t *testing.T) {
	// The rate of catch-up holds under replace as well: each run has its time before the next ends it.
	w := newWorld(t, noon.Add(-10*time.Minute), job("a", "* * * * *", overlap(config.OverlapReplace, 0),
		misfire(config.Misfire{Policy: config.MisfireCatchUp, Limit: 2})))
	res := w.plan(noon)
	if len(w.ledger.Runs) != 1 || len(w.ledger.Finished) != 0 || w.ledger.Runs[0].Cancel {
		t.Fatalf("open %v, ended %v, want one run that is left alone", story(w.ledger.Runs, nil), story(w.ledger.Finished, nil))
	}
	if want := noon.Add(500 * time.Millisecond); !res.Next.Equal(want) {
		t.Errorf("next look at %s, want %s", offset(res.Next), offset(want))
	}
	w.plan(noon.Add(500 * time.Millisecond))
	if !w.ledger.Runs[0].Cancel {
		t.Error("the next one does not replace it")
	}
}

func TestOneShotsAreNeverReplaced(t *testing.T) { // R155
	// A one-shot of the job has been claimed, ahead of its time or to be sent, when the next instant comes.
	retried := func(cause run.Cause) run.Run {
		return run.Run{
			ID: "one-shot", Occurrence: "o", Key: run.Key{Job: "a", Trigger: "default"}, Version: 1, Cause: cause,
			State: run.StateQueued, ScheduledAt: noon.Add(-time.Hour), DueAt: noon.Add(59 * time.Second), Attempt: 2, DecidedAt: noon,
		}
	}
	for _, cause := range []run.Cause{run.CauseManual, run.CauseRetry, run.CauseRecovery, run.CauseBackfill, run.CauseRerun} {
		for _, state := range []run.State{run.StatePending, run.StateRunning} {
			w := newWorld(t, noon.Add(time.Second), job("a", "* * * * *", overlap(config.OverlapReplace, 0)))
			w.ledger.Runs = append(w.ledger.Runs, retried(cause))
			w.plan(noon.Add(59 * time.Second))
			if r := w.ledger.Run("one-shot"); r.State != run.StatePending {
				t.Fatalf("%s: %s at its time, want it claimed", cause, r.State)
			}
			w.ledger.Run("one-shot").State = state
			w.plan(noon.Add(time.Minute))
			if r := w.ledger.Run("one-shot"); r == nil || r.Cancel {
				t.Errorf("%s, %s: asked to end when an instant came", cause, state)
			}
			if n := len(w.ledger.Runs); n != 1 {
				t.Errorf("%s, %s: %d open runs, want the instant to wait", cause, state, n)
			}
			w.finish(noon.Add(61 * time.Second))
			w.plan(noon.Add(61 * time.Second))
			if diff := cmp.Diff([]string{"Pending 1m0s until 2m0s"}, story(w.ledger.Runs, nil)); diff != "" {
				t.Errorf("%s, %s: after it (-want +got):\n%s", cause, state, diff)
			}
		}
	}
}

func TestWhatIsHandedBackCanceledIsNotSent(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *", overlap(config.OverlapReplace, 0)))
	w.plan(noon)
	first := w.ledger.Runs[0].ID
	w.plan(noon.Add(time.Minute))
	if !w.ledger.Run(first).Cancel {
		t.Fatal("not asked to end")
	}
	w.define(job("a", "* * * * *", overlap(config.OverlapReplace, 0), func(j *config.Job) { j.Paused = true }), noon.Add(time.Minute))
	plan.HandBack(w.ledger, first, "me")
	res := w.plan(noon.Add(61 * time.Second))
	if len(res.Claimed) > 0 {
		t.Errorf("claimed %v, which was to be canceled", story(res.Claimed, nil))
	}
	if diff := cmp.Diff([]string{"Canceled 0s until 1m0s"}, story(w.ledger.Finished, nil)); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if !res.Changed || len(res.Settled) != 1 {
		t.Errorf("changed %v, settled %d, want the one that ended to be told", res.Changed, len(res.Settled))
	}
}
