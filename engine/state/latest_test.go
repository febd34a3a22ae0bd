package state_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// R186, R187: the history knows when a job last started, succeeded and failed, in whatever order
// its runs ended, and for longer than it keeps them.
func TestHistoryKeepsTheLatestTimes(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	ended := func(id string, s run.State, started, ended int) run.Run {
		r := run.Run{ID: id, Key: run.Key{Job: "a", Trigger: "default"}, State: s, ScheduledAt: at(started), EndedAt: at(ended)}
		if started != 0 {
			r.FiredAt = at(started)
		}
		return r
	}
	again := func(r run.Run) run.Run { r.Again = true; return r }
	tests := map[string]struct {
		runs []run.Run
		want state.Latest
	}{
		"a success": {
			[]run.Run{ended("1", run.StateSucceeded, 1, 2)},
			state.Latest{LastStart: at(1), LastSuccess: at(2)},
		},
		"an older run that ends late sets nothing back": {
			[]run.Run{ended("2", run.StateSucceeded, 5, 6), ended("1", run.StateSucceeded, 1, 2)},
			state.Latest{LastStart: at(5), LastSuccess: at(6)},
		},
		"a failure that is repeated is none yet": {
			[]run.Run{again(ended("1", run.StateFailed, 1, 2))},
			state.Latest{LastStart: at(1)},
		},
		"a failure for good, and a lost run": {
			[]run.Run{ended("1", run.StateFailed, 1, 2), ended("2", run.StateLost, 3, 4)},
			state.Latest{LastStart: at(3), LastFailure: at(4)},
		},
		"a lost run of which nobody knows when it was sent": {
			[]run.Run{{ID: "1", Key: run.Key{Job: "a", Trigger: "default"}, State: run.StateLost, ScheduledAt: at(1), DueAt: at(1), EndedAt: at(2)}},
			state.Latest{LastStart: at(1), LastFailure: at(2)},
		},
		"a canceled run that was never sent tells nothing": {
			[]run.Run{ended("1", run.StateCanceled, 0, 4)},
			state.Latest{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var h state.History
			for _, r := range tt.runs {
				h.Add([]run.Run{r}, nil, func(string) int { return 1 })
			}
			h.Add([]run.Run{{ID: "x", Key: run.Key{Job: "a", Trigger: "default"}, State: run.StateCanceled, ScheduledAt: at(60)}}, nil, func(string) int { return 1 })
			text, err := json.Marshal(h)
			if err != nil {
				t.Fatal(err)
			}
			var read state.History
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			if n := len(read.Jobs["a"].Runs); n != 1 {
				t.Errorf("%d runs are kept, want 1", n)
			}
			if diff := cmp.Diff(tt.want, read.Jobs["a"].Latest); diff != "" {
				t.Errorf("latest (-want +got):\n%s", diff)
			}
		})
	}
}
