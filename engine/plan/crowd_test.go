package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

// TestACrowdFitsIntoTheLedger: thousands of triggers due at the same instant all run, each once,
// and the ledger stays far below what an object may hold. R006, R176.
func TestACrowdFitsIntoTheLedger(t *testing.T) {
	const n = 3_000
	w := newWorld(t, noon.Add(-time.Second))
	for i := range n {
		w.define(job(fmt.Sprintf("job-%05d", i), "0 12 * * *"), noon.Add(-time.Hour))
	}
	// A few that fire all the time beside them.
	for i := range 20 {
		w.define(job(fmt.Sprintf("tick-%02d", i), "* * * * * *", func(j *config.Job) { j.Triggers[0].Priority = 9 }), noon.Add(-time.Hour))
	}
	w.maxRuns = 200
	d := plan.Compile(w.catalog)
	index := plan.NewIndex(d, w.ledger)
	seen := make(map[string]int)
	largest, turns := 0, 0
	now := noon
	for ; now.Before(noon.Add(30 * time.Second)); now = now.Add(250 * time.Millisecond) {
		turns++
		if turns%17 == 0 { // a new leader starts from the ledger alone
			index = plan.NewIndex(d, w.ledger)
		}
		if turns%23 == 0 { // and its clock may be behind
			now = now.Add(-200 * time.Millisecond)
		}
		res := plan.Plan(plan.Input{
			Namespace: "ns", App: "app", Node: "me", Term: 1, Now: now, Horizon: now.Add(100 * time.Millisecond),
			MaxRuns: w.maxRuns, NewID: w.newID, Definitions: d, Index: index,
		}, w.ledger)
		index.Apply(res.Moves)
		if len(w.ledger.Skipped)+len(res.Missed) > 0 {
			t.Fatalf("missed %v: there is room for all within grace", res.Missed)
		}
		for _, r := range res.Claimed {
			seen[r.Occurrence]++
		}
		if turns%5 == 1 {
			text, err := json.Marshal(w.ledger)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, len(text))
		}
		w.finish(now)
		w.ledger.Finished = nil // as a flush does
	}
	crowd := 0
	for _, times := range seen {
		if times != 1 {
			t.Fatalf("an occurrence ran %d times", times)
		}
		crowd++
	}
	if want := n + 20*29; crowd < want {
		t.Errorf("%d occurrences ran, want at least %d", crowd, want)
	}
	if largest > 600<<10 {
		t.Errorf("the ledger took %d KiB, want at most 600", largest>>10)
	}
	if len(w.ledger.Triggers) > 0 {
		t.Errorf("%d triggers still have an entry after the crowd has passed", len(w.ledger.Triggers))
	}
	t.Logf("%d occurrences in %d turns, the ledger took at most %d KiB", crowd, turns, largest>>10)
}

// TestMoreThanItsSlotsTake: whatever the load, no instant is decided twice and none is passed over.
func TestMoreThanItsSlotsTake(t *testing.T) {
	policies := []config.Overlap{config.OverlapSerial, config.OverlapParallel, config.OverlapSkip}
	for n, every := range map[int]string{150: "* * * * * *", 210: "* * * * * *", 500: "* * * * * *", 501: "*/5 * * * * *", 300: "rate 1s start=2026-06-01T00:00:00Z"} {
		for _, slots := range []int{4, 60, 400} {
			t.Run(fmt.Sprintf("%d jobs, %d slots, %s", n, slots, every), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, noon.Add(-time.Second))
				for i := range n {
					w.define(job(fmt.Sprintf("j%03d", i), every, overlap(policies[i%7%3], 0)), noon.Add(-time.Hour))
				}
				w.maxRuns = slots
				d := plan.Compile(w.catalog)
				index := plan.NewIndex(d, w.ledger)
				decided := map[run.Key]time.Time{} // up to where, tile by tile
				open := map[string]bool{}
				tile := func(key run.Key, from, until time.Time) {
					if at, ok := decided[key]; ok && !at.Equal(from) {
						t.Fatalf("%s: decided up to %s, then from %s", key, offset(at), offset(from))
					}
					decided[key] = until
				}
				for i := range 400 {
					now := noon.Add(time.Duration(i) * 50 * time.Millisecond)
					if i%31 == 30 { // another leader
						index = plan.NewIndex(d, w.ledger)
					}
					res := plan.Plan(plan.Input{
						Namespace: "ns", App: "app", Node: "me", Term: 1, Now: now, Horizon: now.Add(50 * time.Millisecond),
						MaxRuns: w.maxRuns, NewID: w.newID, Definitions: d, Index: index,
					}, w.ledger)
					index.Apply(res.Moves)
					turn := slices.Clone(w.ledger.Skipped)
					for _, r := range w.ledger.Runs {
						if !open[r.ID] {
							open[r.ID] = true
							turn = append(turn, run.Skip{Key: r.Key, ScheduledAt: r.ScheduledAt, CoveredUntil: r.CoveredUntil})
						}
					}
					slices.SortFunc(turn, func(a, b run.Skip) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
					for _, s := range turn {
						tile(s.Key, s.ScheduledAt, s.CoveredUntil)
					}
					if i%3 == 0 {
						w.finish(now)
					}
					w.ledger.Finished, w.ledger.Skipped = nil, nil
				}
			})
		}
	}
}

// TestAPausedCrowdCostsLittle: pausing everything does not fill the ledger with cursors.
func TestAPausedCrowdCostsLittle(t *testing.T) {
	w := newWorld(t, noon)
	for i := range 500 {
		w.define(job(fmt.Sprintf("job-%05d", i), "* * * * *", func(j *config.Job) { j.Paused = true }), noon.Add(-time.Hour))
	}
	w.define(job("alive", "* * * * *"), noon.Add(-time.Hour))
	for i := range 10 {
		w.plan(noon.Add(time.Duration(i) * time.Minute))
		w.finish(noon.Add(time.Duration(i) * time.Minute))
	}
	runs := 0
	for _, r := range w.ledger.Finished {
		if r.Key != (run.Key{Job: "alive", Trigger: "default"}) {
			t.Fatalf("%s ran while paused", r.Key)
		}
		runs++
	}
	if runs != 10 {
		t.Errorf("%d runs of the job that is not paused, want 10", runs)
	}
	w.ledger.Finished = nil
	text, err := json.Marshal(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 2<<10 {
		t.Errorf("the ledger takes %d bytes while 500 jobs are paused", len(text))
	}
}
