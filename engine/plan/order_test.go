package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
)

// with adds a trigger to a job.
func with(name, text string, priority int) func(*config.Job) {
	return func(j *config.Job) {
		s, err := schedule.Parse(text)
		if err != nil {
			panic(err)
		}
		j.Triggers = append(j.Triggers, config.Trigger{
			Name: name, Schedule: s, Priority: priority, Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: time.Minute},
		})
	}
}

func TestNoTriggerStarvesBesideAnotherOfItsJob(t *testing.T) {
	// A run takes longer than the other trigger's interval, so that one is due again whenever a run ends.
	for _, priority := range []int{5, 10} {
		w := newWorld(t, noon, job("a", "rate 1s start=2026-06-15T11:50:00Z", with("urgent", "0 * * * * *", priority)))
		now := noon.Add(100 * time.Millisecond)
		for range 1_200 { // half an hour
			w.plan(now)
			now = now.Add(1500 * time.Millisecond)
			w.finish(now)
		}
		ran := map[string]int{}
		for _, r := range w.ledger.Finished {
			ran[r.Key.Trigger]++
		}
		if ran["urgent"] < 28 {
			t.Errorf("priority %d: in half an hour runs by trigger %v, want urgent each minute", priority, ran)
		}
	}
}

func TestWhatIsDueAtOnceGoesByPriorityThenInstantThenName(t *testing.T) {
	tests := map[string]struct {
		job  config.Job
		want string // which trigger runs, of those due by noon
	}{
		"the larger priority, whatever its name": {
			job: job("a", "0 12 * * *", overlap(config.OverlapSkip, 0), with("urgent", "0 12 * * *", 10)), want: "urgent",
		},
		"the larger priority goes before the earlier instant": {
			job: job("a", "59 11 * * *", with("urgent", "0 12 * * *", 10)), want: "urgent",
		},
		"the earlier instant goes before the name": {
			job: job("a", "0 12 * * *", with("other", "59 11 * * *", 5)), want: "other",
		},
		"the name decides the rest": {
			job: job("a", "0 12 * * *", with("another", "0 12 * * *", 5)), want: "another",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon.Add(-2*time.Minute), tt.job)
			w.plan(noon)
			if len(w.ledger.Runs) != 1 || w.ledger.Runs[0].Key.Trigger != tt.want {
				t.Errorf("decided %v of %v, want %s alone", story(w.ledger.Runs, nil), keysOf(w), tt.want)
			}
		})
	}
}

func TestAheadOfTimeTheEarlierInstantGoesFirst(t *testing.T) {
	// Both lie within the horizon. The greater priority is not due when the other one is.
	w := newWorld(t, noon.Add(-time.Second), job("a", "0 12 * * *", with("urgent", "rate 1m start=2026-06-15T11:59:00.04Z", 10)))
	w.plan(noon.Add(-50 * time.Millisecond))
	if diff := cmp.Diff([]string{"a/default"}, keysOf(w)); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
}

func TestABacklogIsServedInstantByInstant(t *testing.T) {
	// Two triggers catch up side by side: none takes all the room first.
	w := newWorld(t, noon.Add(-10*time.Second), job("a", "* * * * * *", overlap(config.OverlapParallel, 6), with("other", "* * * * * *", 5)))
	w.plan(noon)
	want := []string{"a/default", "a/other", "a/default", "a/other", "a/default", "a/other"}
	if diff := cmp.Diff(want, keysOf(w)); diff != "" {
		t.Errorf("decided (-want +got):\n%s", diff)
	}
}

func keysOf(w *world) []string {
	var out []string
	for _, r := range w.ledger.Runs {
		out = append(out, fmt.Sprint(r.Key))
	}
	return out
}
