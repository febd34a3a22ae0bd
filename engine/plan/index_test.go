package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
)

func TestATriggerThatCaughtUpBehindTheIndexIsNotForgotten(t *testing.T) {
	// The index was made when the trigger lagged. The write that let it catch up is stored, but its answer
	// was lost: the leader plans on with the index that it has.
	w := newWorld(t, noon.Add(-time.Minute), job("a", "* * * * *", func(j *config.Job) { j.Paused = true }))
	w.plan(noon)
	if len(w.ledger.Triggers) != 1 {
		t.Fatalf("a paused trigger does not lag: %+v", w.ledger.Triggers)
	}
	w.define(job("a", "* * * * *"), noon)
	d := plan.Compile(w.catalog)
	input := plan.Input{
		Namespace: "ns", App: "app", Node: "me", Term: 1, MaxRuns: 32, NewID: w.newID,
		Definitions: d, Index: plan.NewIndex(d, w.ledger),
	}
	for now := noon; !now.After(noon.Add(2 * time.Minute)); now = now.Add(time.Minute) {
		input.Now, input.Horizon = now, now
		plan.Plan(input, w.ledger) // and its moves never reach the index
		w.finish(now)
	}
	want := []string{"Succeeded -1m0s until 0s", "Succeeded 0s until 1m0s", "Succeeded 1m0s until 2m0s"}
	if diff := cmp.Diff(want, story(w.ledger.Finished, nil)); diff != "" {
		t.Errorf("fired (-want +got):\n%s", diff)
	}
}
