package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestJitterOnlyDelays(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Hour), job("a", "* * * * * jitter=30s", overlap(config.OverlapParallel, 0),
		misfire(config.Misfire{Policy: config.MisfireSkip, Grace: time.Hour})))
	w.maxRuns = 0
	w.plan(noon)
	if len(w.ledger.Runs) < 50 {
		t.Fatalf("%d runs, want one for each minute of the hour", len(w.ledger.Runs))
	}
	least, most := time.Hour, -time.Hour
	for _, r := range w.ledger.Runs {
		by := r.DueAt.Sub(r.ScheduledAt)
		least, most = min(least, by), max(most, by)
		if !r.DueAt.Truncate(time.Microsecond).Equal(r.DueAt) { // the clock that is asked whether it has come shows no less
			t.Errorf("due %s: finer than a microsecond", r.DueAt)
		}
	}
	if least < 0 || most > 30*time.Second || most-least < 10*time.Second {
		t.Errorf("due from %s to %s after their instants, want them spread over 0s to 30s", least, most)
	}
}

func TestAScheduledRunIsNotMovedBeforeItsInstant(t *testing.T) {
	// A leader whose clock was half an hour ahead has decided it and found no slot for it. A one-shot
	// counts from now then, an instant is an instant.
	w := newWorld(t, noon, job("a", "manual"))
	instant := noon.Add(30 * time.Minute)
	w.ledger.Runs = append(w.ledger.Runs, run.Run{
		ID: "ahead", Key: run.Key{Job: "a", Trigger: "default"}, Version: 1, Cause: run.CauseSchedule, State: run.StateQueued,
		ScheduledAt: instant, DueAt: instant.Add(time.Second), DecidedAt: instant, Attempt: 1,
	})
	w.plan(noon)
	if r := w.ledger.Runs[0]; r.State != run.StateQueued || !r.DueAt.Equal(instant.Add(time.Second)) {
		t.Errorf("at noon it is %s, due %s, want it to wait until 30m1s", r.State, offset(r.DueAt))
	}
}

func TestAnOccurrenceIsRecoveredOnce(t *testing.T) {
	j := job("a", "0 12 * * *", func(j *config.Job) {
		j.Recovery, j.Retry = config.RecoveryRerun, config.Retry{MaxRetries: 3, Delay: time.Second}
	})
	w := newWorld(t, noon, j)
	lose := func(now time.Time) plan.Settled {
		t.Helper()
		lost := plan.Lose(w.ledger, func(run.Run) bool { return true }, func(run.Run) config.Job { return j }, now, w.newID)
		if len(lost) != 1 {
			t.Fatalf("lost %+v, want one run", lost)
		}
		return lost[0]
	}
	w.plan(noon)
	if s := lose(noon.Add(time.Minute)); s.Retry.Cause != run.CauseRecovery || s.Retry.Attempt != 2 {
		t.Fatalf("after the first loss %+v, want a recovery", s.Retry)
	}
	w.plan(noon.Add(time.Minute))
	failed := run.Outcome{State: run.StateFailed, Status: 503, Retryable: true, StartedAt: noon.Add(time.Minute), EndedAt: noon.Add(time.Minute)}
	if s := w.settle(w.ledger.Runs[0].ID, failed, j); s.Retry.Cause != run.CauseRetry || s.Retry.Attempt != 3 {
		t.Fatalf("after the recovery has failed %+v, want a retry", s.Retry)
	}
	w.plan(noon.Add(2 * time.Minute))
	if s := lose(noon.Add(3 * time.Minute)); !s.Final() {
		t.Errorf("the retry was lost too, and %+v follows: one recovery for each occurrence is all", s.Retry)
	}
}

func TestALateSuccessEndsOnlyWhatNobodyHasTaken(t *testing.T) {
	for state, want := range map[run.State]run.State{
		run.StateQueued: run.StateCanceled, run.StatePending: run.StatePending, run.StateRunning: run.StateRunning, run.StateNeedsReview: run.StateNeedsReview,
	} {
		w := newWorld(t, noon, job("a", "0 12 * * *"))
		lost := run.Run{ID: "lost", Occurrence: "o", Key: run.Key{Job: "a", Trigger: "default"}, State: run.StateLost, Cause: run.CauseSchedule, Attempt: 1}
		again := lost
		again.ID, again.State, again.Cause, again.Attempt = "again", state, run.CauseRecovery, 2
		w.ledger.Finished, w.ledger.Runs = []run.Run{lost}, []run.Run{again}
		plan.Late(w.ledger, lost, run.Outcome{State: run.StateSucceeded, EndedAt: noon})
		got := run.State("gone")
		for _, r := range append(w.ledger.Runs, w.ledger.Finished...) {
			if r.ID == "again" {
				got = r.State
			}
		}
		if got != want {
			t.Errorf("a recovery that was %s is %s after the late success, want %s", state, got, want)
		}
	}
}

func TestARunThatNeedsReviewKeepsItsSerialJobBusy(t *testing.T) {
	for policy, want := range map[config.Overlap]run.State{
		config.OverlapSerial: run.StateQueued, config.OverlapSkip: run.StateQueued, config.OverlapReplace: run.StateQueued, config.OverlapParallel: run.StatePending,
	} {
		w := newWorld(t, noon, job("a", "manual", overlap(policy, 0)))
		w.ledger.Runs = []run.Run{
			{ID: "doubtful", Occurrence: "o1", Key: run.Key{Job: "a"}, Version: 1, Cause: run.CauseManual, State: run.StateNeedsReview, Attempt: 1, ScheduledAt: noon, DueAt: noon, DecidedAt: noon},
			{ID: "next", Occurrence: "o2", Key: run.Key{Job: "a"}, Version: 1, Cause: run.CauseManual, State: run.StateQueued, Attempt: 1, ScheduledAt: noon, DueAt: noon, DecidedAt: noon},
		}
		w.plan(noon.Add(time.Second))
		if got := w.ledger.Run("next").State; got != want {
			t.Errorf("%s: the run after the one that needs review is %s, want %s", policy, got, want)
		}
	}
}

func TestOneShotsThatWaitAreNeverReplaced(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Second), job("a", "* * * * *", overlap(config.OverlapReplace, 0)))
	for _, cause := range []run.Cause{run.CauseRetry, run.CauseRecovery, run.CauseManual, run.CauseBackfill, run.CauseRerun} {
		w.ledger.Runs = append(w.ledger.Runs, run.Run{
			ID: string(cause), Occurrence: string(cause), Key: run.Key{Job: "a", Trigger: "default"}, Version: 1, Cause: cause, State: run.StateQueued,
			Attempt: 1, ScheduledAt: noon.Add(-time.Hour), DueAt: noon.Add(time.Hour), DecidedAt: noon.Add(-time.Hour),
		})
	}
	w.plan(noon)
	w.plan(noon.Add(time.Minute))
	var left []string
	for _, r := range w.ledger.Runs {
		if r.Cause != run.CauseSchedule && r.State == run.StateQueued && !r.Cancel {
			left = append(left, r.ID)
		}
	}
	if diff := cmp.Diff([]string{"retry", "recovery", "manual", "backfill", "rerun"}, left); diff != "" {
		t.Errorf("one-shots that still wait (-want +got):\n%s", diff)
	}
}

func TestAnEditKeepsTheCount(t *testing.T) {
	was := job("a", "every 10m x5 start=2026-06-15T11:50:00Z")
	is := job("a", "every 10m x5 start=2026-06-15T11:50:00Z", func(j *config.Job) { j.Timeout = time.Minute })
	for name, dropped := range map[string]bool{"with the version before it": false, "when that is kept no more": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon.Add(-time.Hour), was)
			runs := 0
			work := func(now time.Time) {
				t.Helper()
				w.plan(now)
				runs += len(w.ledger.Runs)
				w.finish(now)
			}
			now := noon
			for range 3 {
				work(now)
				now = now.Add(10 * time.Minute)
			}
			w.define(is, now)
			record := w.catalog.Jobs["a"]
			if dropped {
				record.Versions = record.Versions[1:]
			}
			for range 9 {
				work(now)
				now = now.Add(10 * time.Minute)
			}
			if runs != 5 {
				t.Errorf("%d runs over an edit that does not concern the schedule, want 5", runs)
			}
		})
	}
}
