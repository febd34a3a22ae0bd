package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// TestJudgeShare: an engine that passes everything over, with whatever reasons, does not pass, nor does one that
// fires and reaches nobody.
func TestJudgeShare(t *testing.T) {
	tests := map[string]struct {
		plant func(*evidence)
		says  []string
	}{
		"all fired": {plant: func(*evidence) {}},
		"all skipped, each for a reason that holds": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 1, 5, run.ReasonMisfire, second(9))
			},
			says: []string{
				"rate: 0 of 5 instants, 0 %, got a run of their own: less than 10 %",
				"all jobs: 0 of 5 instants, 0 %, got a run of their own: less than 40 %",
			},
		},
		"a definition that names nothing": {
			plant: func(e *evidence) { define(e, func(j *config.Job) { j.Triggers[0].Schedule.Interval = time.Hour }) },
			says:  []string{"rate: its definitions name 0 instants, less than the 5 of every 1s"},
		},
		"runs that reach nobody": {
			plant: func(e *evidence) {
				for id := range e.Runs {
					change(e, id, getsLost)
				}
				e.Arrivals = nil
			},
			says: []string{"of 5 runs 0 reached the app, less than 80 %"},
		},
		"a calm stretch in which all fired": {plant: func(e *evidence) { e.Calm = span{second(2), second(5)} }},
		"a skip in a calm stretch, for a reason that holds": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(5)}
				define(e, skipsLate)
				skip(e, 3, 1, run.ReasonMisfire, second(3.6))
			},
			says: []string{"rate: of 12:00:03.250000, when nothing went wrong any more, there is no run"},
		},
		"a coalesced run in a calm stretch": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(3)}
				forget(e, 3)
				change(e, "run-1", func(r *run.Run) { r.Coalesced, r.CoveredUntil, r.DecidedAt = 2, second(4), second(3.2) })
			},
			says: []string{"rate: of 12:00:02.250000, when nothing went wrong any more, the run stands for others as well"},
		},
		"a run in a calm stretch that is lost": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(5)}
				change(e, "run-2", getsLost)
			},
			says: []string{"rate: of 12:00:03.250000, when nothing went wrong any more, the run is Lost"},
		},
		"a busy machine in a calm stretch": {
			plant: func(e *evidence) {
				e.Calm = span{second(1), second(5)}
				define(e, skipsOverlap)
				e.Busy[skipID(skip(e, 3, 1, run.ReasonOverlap, second(3)))] = true
			},
		},
		"a calm stretch in which hardly anything fired, as the ledger has it for a reason": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(5)}
				define(e, skipsOverlap)
				for _, n := range []int{3, 4} {
					e.Busy[skipID(skip(e, n, 1, run.ReasonOverlap, second(float64(n))))] = true
				}
			},
			says: []string{"rate: when nothing went wrong any more, 1 of 3 instants fired"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := good(t)
			e.Standing = map[string]time.Duration{"rate": time.Second}
			e.Began = base.Add(-startsWithin)
			e.Calm = span{second(5), second(5.5)}
			tt.plant(&e)
			got := judge(e).Violations
			for _, want := range tt.says {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("violations %q, want one that says %q", got, want)
				}
			}
			if len(tt.says) == 0 && len(got) > 0 {
				t.Errorf("violations %q, want none", got)
			}
		})
	}
}
