package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// through plans and finishes each ten seconds for a time, and returns when it is over.
func (w *world) through(now time.Time, d time.Duration) time.Time {
	for end := now.Add(d); now.Before(end); now = now.Add(10 * time.Second) {
		w.plan(now)
		w.finish(now)
	}
	return now
}

// remove makes a version in which the job has left.
func (w *world) remove(name string, at time.Time) {
	record := w.catalog.Jobs[name]
	record.Add(state.Version{Number: record.Newest().Number + 1, Revision: w.catalog.Revision, EffectiveAt: at, Source: state.SourceConfig})
}

func TestALimitIsUsedUpForGood(t *testing.T) {
	const limited = "every 1m x2 start=2026-06-15T11:50:00Z"
	described := func(d string) func(*config.Job) { return func(j *config.Job) { j.Description = d } }
	tests := map[string]struct {
		then func(w *world, now time.Time) time.Time
		want int // runs in all
	}{
		"25 edits of the job": {want: 2, then: func(w *world, now time.Time) time.Time {
			for i := range 25 {
				w.define(job("a", limited, described(fmt.Sprint(i))), now)
				now = w.through(now, 2*time.Minute)
			}
			return now
		}},
		"an edit that adds jitter": {want: 2, then: func(w *world, now time.Time) time.Time {
			w.define(job("a", limited+" jitter=5s"), now)
			return now
		}},
		"an edit that adds an end": {want: 2, then: func(w *world, now time.Time) time.Time {
			w.define(job("a", limited+" end=2027-01-01T00:00:00Z"), now)
			return now
		}},
		"an edit that adds a zone": {want: 2, then: func(w *world, now time.Time) time.Time {
			j := job("a", limited)
			j.Triggers[0].Schedule.TimeZone = "Asia/Shanghai"
			w.define(j, now)
			return now
		}},
		"the job is removed and added again": {want: 2, then: func(w *world, now time.Time) time.Time {
			w.remove("a", now)
			now = w.through(now, 5*time.Minute)
			w.define(job("a", limited), now)
			return now
		}},
		"the trigger is removed and added again, with more edits between than versions are kept": {want: 2, then: func(w *world, now time.Time) time.Time {
			for i := range 15 {
				w.define(job("a", "0 3 * * *", described(fmt.Sprint(i)), func(j *config.Job) { j.Triggers[0].Name = "other" }), now)
				now = w.through(now, time.Minute)
			}
			w.define(job("a", limited), now)
			return now
		}},
		"the job comes back after more than 30 days": {want: 4, then: func(w *world, now time.Time) time.Time {
			w.remove("a", now)
			w.plan(now)
			now = now.Add(31 * 24 * time.Hour)
			w.plan(now)
			w.define(job("a", limited), now)
			return now
		}},
		"the limit changes":    {want: 5, then: edited("every 1m x3 start=2026-06-15T11:50:00Z")},
		"the interval changes": {want: 4, then: edited("every 2m x2 start=2026-06-15T11:50:00Z")},
		"the start changes":    {want: 4, then: edited("every 1m x2 start=2026-06-15T11:51:00Z")},
		"the limit changes and changes back before anything fires": {want: 2, then: func(w *world, now time.Time) time.Time {
			return edited(limited)(w, edited("every 1m x3 start=2026-06-15T11:50:00Z")(w, now))
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, job("a", limited))
			now := w.through(noon, 10*time.Minute)
			if n := len(w.ledger.Finished); n != 2 {
				t.Fatalf("%d runs of x2", n)
			}
			now = tt.then(w, now)
			w.through(now, 30*time.Minute)
			if n := len(w.ledger.Finished); n != tt.want {
				t.Errorf("%d runs, want %d: %v", n, tt.want, story(w.ledger.Finished, nil))
			}
		})
	}
}

func edited(text string) func(*world, time.Time) time.Time {
	return func(w *world, now time.Time) time.Time {
		w.define(job("a", text), now)
		return now
	}
}

func TestAnEditKeepsTheCountSoFar(t *testing.T) {
	w := newWorld(t, noon, job("a", "every 10m x3 start=2026-06-15T11:50:00Z"))
	now := w.through(noon, 5*time.Minute)
	w.define(job("a", "every 10m x3 start=2026-06-15T11:50:00Z jitter=1s", func(j *config.Job) { j.Description = "edited" }), now)
	w.through(now, 2*time.Hour)
	if n := len(w.ledger.Finished); n != 3 {
		t.Errorf("%d runs, want the 3 of x3, one before the edit and two after it", n)
	}
}

func TestNamesThatChangeAllTheTimeDoNotFillTheLedger(t *testing.T) {
	w := newWorld(t, noon, job("a", "0 3 * * *"))
	w.ledger.Triggers = map[run.Key]state.Trigger{}
	for i := range 1_000 {
		w.ledger.SetTrigger(run.Key{Job: fmt.Sprintf("job-%04d", i), Trigger: "default"}, state.Trigger{Fired: 1, FiredOf: "1m0s x1", Gone: noon.Add(time.Duration(i) * time.Second)})
	}
	w.plan(noon.Add(time.Hour))
	if n := len(w.ledger.Triggers); n != 200 {
		t.Fatalf("%d triggers that are not defined are remembered, want 200", n)
	}
	if _, ok := w.ledger.Triggers[run.Key{Job: "job-0999", Trigger: "default"}]; !ok {
		t.Error("the one that went last is forgotten, want those that went first")
	}
	w.plan(noon.Add(31 * 24 * time.Hour))
	if n := len(w.ledger.Triggers); n != 0 {
		t.Errorf("%d of them are remembered after 31 days", n)
	}
}
