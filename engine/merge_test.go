package engine

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// A leader whose clock was ahead made the newest version; its successor's clock is right.
func TestAVersionNeverTakesEffectBeforeItsPredecessor(t *testing.T) {
	now := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ predecessor, want time.Duration }{
		"within what clocks may differ": {30 * time.Second, 30 * time.Second},
		"further than is possible":      {time.Hour, 0},
		"in the past":                   {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			minutely := func(text string) config.Job {
				s, err := schedule.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				return config.Job{Name: "a", Triggers: []config.Trigger{{Name: "default", Schedule: s}}}
			}
			var catalog state.Catalog
			for i, step := range []struct {
				jobs []config.Job
				at   time.Time
			}{
				{[]config.Job{minutely("* * * * *")}, now.Add(c.predecessor)},
				{[]config.Job{minutely("*/2 * * * *")}, now}, // an edit
				{nil, now}, // the job leaves
			} {
				changed, err := merge(&catalog, step.jobs, step.at, step.at.Add(time.Minute), false)
				if err != nil || len(changed) != 1 {
					t.Fatalf("step %d changed %v, error %v", i, changed, err)
				}
				if i == 0 {
					continue
				}
				if got := catalog.Jobs["a"].Newest().EffectiveAt.Sub(now); got != c.want {
					t.Errorf("step %d takes effect at now + %s, want + %s", i, got, c.want)
				}
			}
		})
	}
}
