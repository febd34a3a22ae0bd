package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

func TestDropVersionsKeepsWhatIsNeeded(t *testing.T) {
	key := run.Key{Job: "a", Trigger: "default"}
	tests := map[string]struct {
		most   int
		change func(w *world)
		want   []int
	}{
		"the newest":                         {2, func(*world) {}, []int{5, 6}},
		"more than there are":                {10, func(*world) {}, []int{1, 2, 3, 4, 5, 6}},
		"at least one":                       {0, func(*world) {}, []int{6}},
		"what an open run names":             {1, func(w *world) { w.ledger.Runs = []run.Run{{ID: "x", Key: key, Version: 2}} }, []int{2, 6}},
		"what an ended run names":            {1, func(w *world) { w.ledger.Finished = []run.Run{{ID: "x", Key: key, Version: 3}} }, []int{3, 6}},
		"of another job it is no matter":     {1, func(w *world) { w.ledger.Runs = []run.Run{{ID: "x", Key: run.Key{Job: "b"}, Version: 2}} }, []int{6}},
		"what decides instants of a laggard": {1, func(w *world) { w.ledger.SetTrigger(key, state.Trigger{Cursor: noon.Add(-150 * time.Minute)}) }, []int{4, 5, 6}},
		"and those of the watermark":         {1, func(w *world) { w.ledger.Watermark = noon.Add(-90 * time.Minute) }, []int{5, 6}},
		"not where they have none":           {1, func(w *world) { w.ledger.Watermark = noon.Add(-30 * time.Minute) }, []int{6}},
		"nothing of a job that left": {1, func(w *world) {
			w.catalog.Jobs["a"].Add(state.Version{Number: 7, EffectiveAt: noon})
		}, []int{7}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon)
			for i := range 6 { // version n decides the instant n - 6 hours from noon, a minute past the hour
				w.define(job("a", "0 1 * * * *"), noon.Add(time.Duration(i-5)*time.Hour))
			}
			tt.change(w)
			before := len(w.catalog.Jobs["a"].Versions)
			dropped := plan.DropVersions(w.catalog, w.ledger, tt.most)
			var got []int
			for _, v := range w.catalog.Jobs["a"].Versions {
				got = append(got, v.Number)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if dropped != before-len(got) {
				t.Errorf("it reports %d dropped of %d, and %d are left", dropped, before, len(got))
			}
		})
	}
}
