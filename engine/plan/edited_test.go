package plan_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// covered counts the instants that runs and skips account for, and fails where one begins elsewhere
// than the one before it ended.
func (w *world) covered() (ran, skipped int) {
	w.t.Helper()
	type tile struct {
		from, until time.Time
		n           int
		run         bool
	}
	var tiles []tile
	for _, r := range slices.Concat(w.ledger.Finished, w.ledger.Runs) {
		tiles = append(tiles, tile{r.ScheduledAt, r.CoveredUntil, cmp.Or(r.Coalesced, 1), true})
	}
	for _, s := range w.ledger.Skipped {
		tiles = append(tiles, tile{s.ScheduledAt, s.CoveredUntil, s.Count, false})
	}
	slices.SortFunc(tiles, func(a, b tile) int { return a.from.Compare(b.from) })
	for i, t := range tiles {
		if i > 0 && !tiles[i-1].until.Equal(t.from) {
			w.t.Errorf("decided up to %s, then from %s", offset(tiles[i-1].until), offset(t.from))
		}
		if t.run {
			ran += t.n
		} else {
			skipped += t.n
		}
	}
	return ran, skipped
}

func hourly(n int, paused bool) config.Job {
	return job("a", "0 * * * *", func(j *config.Job) { j.Description, j.Paused = fmt.Sprint(n), paused })
}

func TestNoInstantVanishesWithAnOldVersion(t *testing.T) {
	tests := map[string]struct {
		edits       int // of the paused job, one each hour
		ran         int // instants that runs account for in the end; the others are skipped with a reason
		mostVersion int // kept at any time
	}{
		"more edits than versions are kept":                {edits: 30, ran: 31, mostVersion: 32},
		"more edits than versions are kept for their sake": {edits: 130, ran: 100, mostVersion: state.MostVersions + 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, hourly(0, true))
			now := noon
			w.plan(now)
			for i := range tt.edits {
				w.define(hourly(i+1, true), now)
				now = now.Add(time.Hour)
				w.plan(now)
				if n := len(w.catalog.Jobs["a"].Versions); n > tt.mostVersion {
					t.Fatalf("%d versions after %d edits, want at most %d", n, i+1, tt.mostVersion)
				}
			}
			w.define(hourly(-1, false), now.Add(time.Minute))
			now = now.Add(2 * time.Minute)
			d := plan.Compile(w.catalog)
			for range state.MostVersions + 20 { // a run for what each version has left
				plan.Plan(plan.Input{
					Namespace: "ns", App: "app", Node: "me", Term: 1, Now: now, Horizon: now,
					MaxRuns: 1, NewID: w.newID, Definitions: d, Index: plan.NewIndex(d, w.ledger),
				}, w.ledger)
				w.finish(now)
				now = now.Add(time.Millisecond)
			}
			ran, skipped := w.covered()
			if ran+skipped != tt.edits+1 || ran < tt.ran-2 || ran > tt.ran+2 {
				t.Errorf("of %d instants %d ran and %d were skipped, want about %d and the rest", tt.edits+1, ran, skipped, tt.ran)
			}
			for _, s := range w.ledger.Skipped {
				if s.Reason != run.ReasonWindow {
					t.Errorf("skipped for %s", s.Reason)
				}
			}
			w.ledger.Finished = nil // in the history
			w.define(hourly(-2, false), now)
			if n := len(w.catalog.Jobs["a"].Versions); n != state.MaxVersions {
				t.Errorf("%d versions are kept when all is decided, want %d", n, state.MaxVersions)
			}
		})
	}
}

func TestARunKeepsItsVersionThroughManyEdits(t *testing.T) {
	// And what that version decides ends where it did, although the one after it is gone.
	w := newWorld(t, noon, job("a", "*/10 * * * *"))
	w.plan(noon)
	for i := range 40 {
		at := noon.Add(time.Duration(i+1) * time.Minute)
		w.define(job("a", "0 3 * * *", func(j *config.Job) { j.Description = fmt.Sprint(i) }), at)
		w.plan(at)
	}
	versions := w.catalog.Jobs["a"].Versions
	if n := len(versions); n != state.MaxVersions+1 || versions[0].Number != 1 {
		t.Fatalf("%d versions from %d, want the newest %d and the run's", n, versions[0].Number, state.MaxVersions)
	}
	w.finish(noon.Add(41 * time.Minute))
	for m := range 60 {
		w.plan(noon.Add(time.Duration(41+m) * time.Minute))
	}
	if n := len(w.ledger.Runs); n != 0 {
		t.Errorf("decided by a version that is over: %v", story(w.ledger.Runs, nil))
	}
	w.ledger.Watermark = noon.Add(5 * time.Minute) // a ledger that was restored, or kept back by a crowd
	w.ledger.Triggers = nil
	if w.plan(noon.Add(2 * time.Hour)); len(w.ledger.Runs) != 0 {
		t.Errorf("decided by a version that is over: %v", story(w.ledger.Runs, nil))
	}
}

func TestAVersionThatCannotBeComputedBlocksWhatItHasNotDecided(t *testing.T) {
	for name, definition := range map[string]string{
		"its zone is gone":       `{"name":"a","triggers":[{"name":"default","schedule":"cron 0 * * * * tz=Gone/Zone"}]}`,
		"it cannot even be read": `{"name":"a","triggers":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, hourly(1, true), job("other", "0 * * * *"))
			w.plan(noon)
			w.define(hourly(2, true), noon.Add(3*time.Hour))
			w.define(hourly(3, false), noon.Add(6*time.Hour))
			good := w.catalog.Jobs["a"].Versions[1].Definition
			w.catalog.Jobs["a"].Versions[1].Definition = json.RawMessage(definition)
			now := noon.Add(6*time.Hour + time.Minute)
			work := func() {
				for range 30 {
					w.plan(now)
					w.finish(now)
					now = now.Add(time.Second)
				}
			}
			work()
			mine := func() []string {
				return story(slices.DeleteFunc(slices.Clone(w.ledger.Finished), func(r run.Run) bool { return r.Key.Job != "a" }), w.ledger.Skipped)
			}
			first := []string{"Succeeded 0s coalesced=3 until 3h0m0s"}
			if diff := gocmp.Diff(first, mine()); diff != "" {
				t.Errorf("with the broken version (-want +got):\n%s", diff)
			}
			if err := plan.Compile(w.catalog).Broken("a", w.ledger); err == nil {
				t.Error("the job shows no error")
			}
			if err := plan.Compile(w.catalog).Broken("other", w.ledger); err != nil {
				t.Errorf("another job shows %v", err)
			}
			before := plan.Clone(w.ledger)
			w.ledger.Finished = nil
			if n := plan.DropVersions(w.catalog, w.ledger, 1); n != 1 {
				t.Errorf("%d versions dropped, want the one that has decided all", n)
			}
			w.ledger = plan.Clone(before)
			w.catalog.Skips = map[string]time.Time{"a/default": now}
			work()
			if diff := gocmp.Diff(append(first, "Skipped resume-skip 3h0m0s count=1 until 6h0m0s", "Skipped resume-skip 6h0m0s count=1 until 7h0m0s"), mine()); diff != "" {
				t.Errorf("passed over (-want +got):\n%s", diff)
			}
			w.catalog.Skips, w.ledger = nil, before
			w.catalog.Jobs["a"].Versions[0].Definition = good // a program that knows it
			work()
			if diff := gocmp.Diff(append(first, "Succeeded 3h0m0s coalesced=3 until 6h0m0s", "Succeeded 6h0m0s until 7h0m0s"), mine()); diff != "" {
				t.Errorf("repaired (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABrokenTriggerDoesNotTakeTheOthersOfItsVersionAlong(t *testing.T) {
	w := newWorld(t, noon, hourly(1, true))
	w.plan(noon)
	w.define(hourly(2, true), noon.Add(time.Hour))
	w.define(hourly(3, false), noon.Add(3*time.Hour))
	w.catalog.Jobs["a"].Versions[1].Definition = json.RawMessage(`{"name":"a","triggers":[
		{"name":"another","schedule":"cron 0 * * * * tz=Gone/Zone"},
		{"name":"default","schedule":"cron 0 * * * *","misfire":{"policy":"run-once","grace":60000000000}}]}`)
	for i := range 20 {
		now := noon.Add(3*time.Hour + time.Duration(i)*time.Second)
		w.plan(now)
		w.finish(now)
	}
	if ran, skipped := w.covered(); ran+skipped != 4 {
		t.Errorf("%d instants ran and %d were skipped, want 4 in all: %v", ran, skipped, story(w.ledger.Finished, w.ledger.Skipped))
	}
}
