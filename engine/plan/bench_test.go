package plan_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/state"
)

// manyJobs is a catalog of n cron jobs, of which each hundredth is due at noon if due, and the
// others at other minutes of the day.
func manyJobs(tb testing.TB, n, dueAtNoon int) *state.Catalog {
	tb.Helper()
	c := &state.Catalog{Revision: 1, Jobs: make(map[string]*state.Job, n)}
	for i := range n {
		text := fmt.Sprintf("%d %d * * *", i%59+1, i%11)
		if i < dueAtNoon {
			text = "0 12 * * *"
		}
		j := job(fmt.Sprintf("job-%05d", i), text)
		definition, err := json.Marshal(j)
		if err != nil {
			tb.Fatal(err)
		}
		c.Jobs[j.Name] = &state.Job{Versions: []state.Version{{Number: 1, Revision: 1, EffectiveAt: noon.Add(-24 * time.Hour), Definition: definition}}}
	}
	return c
}

// BenchmarkTick10000 is one turn with 10,000 cron triggers defined, of which 10 are due.
func BenchmarkTick10000(b *testing.B) {
	d := plan.Compile(manyJobs(b, 10_000, 10))
	start := &state.Ledger{Term: 1, CatalogRevision: 1, Watermark: noon.Add(-time.Minute)}
	in := plan.Input{
		Namespace: "ns", App: "app", Node: "me", Term: 1, Now: noon, Horizon: noon.Add(100 * time.Millisecond), MaxRuns: 32,
		NewID: func() string { return "0198c6f2d7a87c3e9b1f3a5c7d9e0f12" }, Definitions: d, Index: plan.NewIndex(d, start),
	}
	b.ReportAllocs()
	for b.Loop() {
		l := plan.Clone(start)
		res := plan.Plan(in, l)
		if len(res.Claimed) != 10 {
			b.Fatalf("claimed %d", len(res.Claimed))
		}
	}
}

// BenchmarkIdleTick10000 is one turn with 10,000 cron triggers of which none is due.
func BenchmarkIdleTick10000(b *testing.B) {
	d := plan.Compile(manyJobs(b, 10_000, 0))
	start := &state.Ledger{Term: 1, CatalogRevision: 1, Watermark: noon.Add(-time.Minute)}
	in := plan.Input{Node: "me", Term: 1, Now: noon, Horizon: noon.Add(100 * time.Millisecond), MaxRuns: 32, Definitions: d, Index: plan.NewIndex(d, start)}
	b.ReportAllocs()
	for b.Loop() {
		if res := plan.Plan(in, start); res.Changed {
			b.Fatal("changed")
		}
	}
}

// BenchmarkThirtyDaysWithoutALeader is the first turn after 30 days for a trigger of each second,
// under each policy that has to pass over them.
func BenchmarkThirtyDaysWithoutALeader(b *testing.B) {
	for name, m := range map[string]config.Misfire{
		"run-once": {Policy: config.MisfireRunOnce},
		"skip":     {Policy: config.MisfireSkip},
		"window":   {Policy: config.MisfireCatchUp, Limit: 10, Window: 24 * time.Hour},
	} {
		for kind, text := range map[string]string{"cron": "* * * * * *", "cron-new-york": "* * * * * * tz=America/New_York", "rate": "rate 1s start=2026-01-01T00:00:00Z"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				j := job("a", text, misfire(m))
				definition, err := json.Marshal(j)
				if err != nil {
					b.Fatal(err)
				}
				d := plan.Compile(&state.Catalog{Revision: 1, Jobs: map[string]*state.Job{"a": {Versions: []state.Version{{
					Number: 1, Revision: 1, EffectiveAt: noon.Add(-60 * 24 * time.Hour), Definition: definition,
					Bases: map[string]time.Time{"default": noon.Add(-60 * 24 * time.Hour)},
				}}}}})
				start := &state.Ledger{Term: 1, CatalogRevision: 1, Watermark: noon.Add(-30 * 24 * time.Hour)}
				in := plan.Input{
					Node: "me", Term: 1, Now: noon, Horizon: noon.Add(100 * time.Millisecond), MaxRuns: 32,
					NewID: func() string { return "id" }, Definitions: d, Index: plan.NewIndex(d, start),
				}
				b.ReportAllocs()
				for b.Loop() {
					if res := plan.Plan(in, plan.Clone(start)); !res.Changed {
						b.Fatal("nothing decided")
					}
				}
			})
		}
	}
}

// BenchmarkIdleTriggerMemory prints the heap that one defined trigger costs while it is idle.
func BenchmarkIdleTriggerMemory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		c := manyJobs(b, n, 0)
		before := heap()
		d := plan.Compile(c)
		x := plan.NewIndex(d, &state.Ledger{Watermark: noon})
		b.ReportMetric(float64(heap()-before)/n, "B/trigger")
		runtime.KeepAlive(d)
		runtime.KeepAlive(x)
		runtime.KeepAlive(c)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCommitSizeFollowsTheWorkInFlight: what a commit writes does not depend on how many jobs are defined.
func TestCommitSizeFollowsTheWorkInFlight(t *testing.T) {
	size := func(defined int) int {
		d := plan.Compile(manyJobs(t, defined, 10))
		l := &state.Ledger{Term: 1, CatalogRevision: 1, Watermark: noon.Add(-time.Minute)}
		plan.Plan(plan.Input{
			Namespace: "ns", App: "app", Node: "me", Term: 1, Now: noon, Horizon: noon, MaxRuns: 32,
			NewID: func() string { return "0198c6f2d7a87c3e9b1f3a5c7d9e0f12" }, Definitions: d, Index: plan.NewIndex(d, l),
		}, l)
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	few, many := size(10), size(2000)
	t.Logf("bytes per commit with 10 due: %d of 10 jobs, %d of 2,000 jobs", few, many)
	if many > few+few/10 {
		t.Errorf("%d bytes with 2,000 jobs, %d with 10: want within 10 %%", many, few)
	}
}
