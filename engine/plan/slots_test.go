package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestAnOccurrenceThatHasBegunEndsBeforeAnotherStarts(t *testing.T) {
	retry := func(o config.Overlap) config.Job {
		return job("a", "0 12 * * *", func(j *config.Job) {
			j.Overlap, j.Retry = o, config.Retry{MaxRetries: 1, Delay: time.Minute}
		})
	}
	tests := map[string]struct {
		job  config.Job
		want []string // while the retry waits, when it is due, and when it has ended
	}{
		"serial":                    {retry(config.OverlapSerial), []string{"", "a2", "a1 manual"}},
		"skip":                      {retry(config.OverlapSkip), []string{"", "a2", "a1 manual"}},
		"replace":                   {retry(config.OverlapReplace), []string{"", "a2", "a1 manual"}},
		"parallel starts it beside": {retry(config.OverlapParallel), []string{"a1 manual", "a1 manual a2", "a1 manual"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, tt.job)
			w.plan(noon)
			first := w.ledger.Runs[0].ID
			w.settle(first, run.Outcome{State: run.StateFailed, Retryable: true, StartedAt: noon, EndedAt: noon}, tt.job)
			w.ledger.Runs = append(w.ledger.Runs, run.Run{
				ID: "asked", Occurrence: "asked", Key: run.Key{Job: "a"}, Version: 1, Cause: run.CauseManual, State: run.StateQueued,
				ScheduledAt: noon, DueAt: noon, DecidedAt: noon, Attempt: 1,
			})
			inFlight := func(at time.Time) (text string) {
				w.plan(at)
				for _, id := range []string{"asked", ""} {
					for _, r := range w.ledger.Runs {
						switch {
						case !r.State.Claimed() || (r.ID == "asked") != (id == "asked"):
						case r.Cause == run.CauseManual:
							text += " a1 manual"
						default:
							text += fmt.Sprintf(" a%d", r.Attempt)
						}
					}
				}
				if text != "" {
					text = text[1:]
				}
				return text
			}
			got := []string{inFlight(noon.Add(time.Second)), inFlight(noon.Add(time.Minute))}
			for _, r := range w.ledger.Runs {
				if r.Cause == run.CauseRetry {
					w.settle(r.ID, run.Outcome{State: run.StateSucceeded, EndedAt: noon.Add(61 * time.Second)}, tt.job)
					break
				}
			}
			got = append(got, inFlight(noon.Add(62*time.Second)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("in flight (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDeadlineCountsFromTheStartOfARunThatWasLost(t *testing.T) {
	j := job("a", "0 12 * * *", func(j *config.Job) {
		j.Recovery, j.Deadline = config.RecoveryRerun, time.Minute
	})
	w := newWorld(t, noon, j)
	w.plan(noon)
	w.ledger.Runs[0].FiredAt = noon.Add(time.Second) // a heartbeat has said so
	lost := plan.Lose(w.ledger, func(run.Run) bool { return true }, func(run.Run) config.Job { return j }, noon.Add(30*time.Second), w.newID)
	if len(lost) != 1 || !lost[0].Retry.FirstStartedAt.Equal(noon.Add(time.Second)) {
		t.Errorf("Lose = %+v, want a recovery whose deadline counts from a second past noon", lost)
	}
}

// A run that was asked for by a version which the leader does not know yet says by which one it runs: the
// record must not name a timeout, a deadline or data that were not its own.
func TestARunNamesTheVersionThatItGoesBy(t *testing.T) {
	w := newWorld(t, noon, job("a", "0 0 1 1 *"))
	w.define(job("a", "0 0 1 2 *"), noon)
	for number, want := range map[int]int{1: 1, 2: 2, 3: 2} {
		w.ledger.Runs = []run.Run{{
			ID: "asked", Occurrence: "asked", Key: run.Key{Job: "a"}, Version: number, Cause: run.CauseManual, State: run.StateQueued,
			ScheduledAt: noon, DueAt: noon, DecidedAt: noon, Attempt: 1,
		}}
		if res := w.plan(noon.Add(time.Minute)); len(res.Claimed) != 1 || res.Claimed[0].Version != want || w.ledger.Runs[0].Version != want {
			t.Errorf("asked for by version %d: %+v was claimed, want it to go by version %d", number, res.Claimed, want)
		}
	}
}
