package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestAnInstantThatWasBlockedAheadOfTimeIsNotForgotten(t *testing.T) {
	// It is looked at shortly before its time and blocked. When the run before it ends, the leader looks
	// less far ahead, or its clock was set back: not due now, but the watermark has passed it.
	for name, back := range map[string]time.Duration{
		"the horizon is shorter": 40 * time.Millisecond,
		"the clock was set back": 20 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []config.Overlap{config.OverlapSerial, config.OverlapSkip, config.OverlapReplace} {
				w := newWorld(t, noon.Add(-time.Minute), job("a", "0 * * * *", overlap(policy, 0)))
				w.ledger.Runs = append(w.ledger.Runs, run.Run{
					ID: "before", Key: run.Key{Job: "a", Trigger: "default"}, Version: 1, Cause: run.CauseSchedule,
					State: run.StateRunning, Node: "me", Term: 1, ScheduledAt: noon.Add(-time.Hour), Attempt: 1,
				})
				w.plan(noon.Add(-90 * time.Millisecond)) // the horizon is beyond noon
				w.finish(noon.Add(-80 * time.Millisecond))
				d := plan.Compile(w.catalog)
				now := noon.Add(-back - 20*time.Millisecond)
				plan.Plan(plan.Input{
					Namespace: "ns", App: "app", Node: "me", Term: 1, Now: now, Horizon: now.Add(10 * time.Millisecond),
					MaxRuns: 32, NewID: w.newID, Definitions: d, Index: plan.NewIndex(d, w.ledger),
				}, w.ledger)
				w.plan(noon)
				if diff := cmp.Diff([]string{"Pending 0s until 1h0m0s"}, story(w.ledger.Runs, nil)); diff != "" {
					t.Errorf("%s: at noon (-want +got):\n%s", policy, diff)
				}
			}
		})
	}
}
