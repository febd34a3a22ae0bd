package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"

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

func TestAFixedDelayKeepsToCalendarAndEndWhenItIsLate(t *testing.T) {
	// The run ends at 12:01, which is told at 12:30 only, because its node was cut off. Other jobs went on.
	tests := map[string]struct {
		text string
		want []string // when it is decided next
	}{
		"inside an excluded span it waits for its end": {
			text: "every 10m start=2026-06-15T11:50:00Z calendar=closed", want: []string{"Pending 6h0m0s"},
		},
		"after the end there is none": {text: "every 10m start=2026-06-15T11:50:00Z end=2026-06-15T12:15:00Z"},
		"else it is due at once":      {text: "every 10m start=2026-06-15T11:50:00Z", want: []string{"Pending 29m0.100001s"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, job("a", tt.text, func(j *config.Job) {
				j.Calendars = map[string]schedule.CalendarSpec{"closed": {From: "12:15", To: "18:00"}}
			}), job("b", "* * * * *"))
			w.plan(noon)
			var id string
			for m := range 30 {
				now := noon.Add(time.Duration(m) * time.Minute)
				w.plan(now)
				for _, r := range slices.Clone(w.ledger.Runs) {
					if r.Key.Job == "a" {
						id = r.ID
					} else {
						w.settle(r.ID, run.Outcome{State: run.StateSucceeded, StartedAt: now, EndedAt: now}, config.Job{})
					}
				}
			}
			w.settle(id, run.Outcome{State: run.StateSucceeded, StartedAt: noon, EndedAt: noon.Add(time.Minute)}, config.Job{})
			for _, at := range []time.Duration{30 * time.Minute, 6 * time.Hour} {
				w.plan(noon.Add(at))
			}
			var got []run.Run
			for _, r := range w.ledger.Runs {
				if r.Key.Job == "a" {
					got = append(got, r)
				}
			}
			if diff := cmp.Diff(tt.want, story(got, nil)); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFixedDelayAwaitsItsOwnRun(t *testing.T) {
	// The run that is still at work when the job becomes a fixed delay ends first.
	parallel := func(j *config.Job) { j.Overlap = config.OverlapParallel }
	w := newWorld(t, noon, job("a", "* * * * *", parallel))
	w.plan(noon)
	w.define(job("a", "every 10s", parallel), noon.Add(time.Second))
	w.plan(noon.Add(11 * time.Second))
	w.settle(w.ledger.Runs[0].ID, run.Outcome{State: run.StateSucceeded, EndedAt: noon.Add(12 * time.Second)}, config.Job{})
	w.plan(noon.Add(23 * time.Second))
	if len(w.ledger.Runs) != 1 {
		t.Errorf("%d runs are open, want the one alone that the delay counts from", len(w.ledger.Runs))
	}
	w.finish(noon.Add(30 * time.Second))
	if res := w.plan(noon.Add(31 * time.Second)); !res.Next.Equal(noon.Add(40 * time.Second)) {
		t.Errorf("next at %s, want ten seconds after the end", offset(res.Next))
	}
}
