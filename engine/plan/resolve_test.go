package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

func TestWhatAPersonSaysOfARunOverrulesWhatWasRecorded(t *testing.T) {
	type end struct {
		Code    run.Code
		Status  int
		AppCode string
		Message string
	}
	tests := map[string]struct {
		as   run.State
		code run.Code
		note string
		want end
	}{
		"it succeeded, so it has no code of a failure": {
			run.StateSucceeded, run.CodeTimeout, "in the archive",
			end{Message: "resolved: in the archive (before: SCHEDULING_TIMEOUT_001, what was known)"},
		},
		"it was canceled": {
			run.StateCanceled, run.CodeFailed, "not wanted",
			end{Code: run.CodeCanceled, Message: "resolved: not wanted (before: SCHEDULING_UNEXPECTED_001, what was known)"},
		},
		"it failed, as was known": {
			run.StateFailed, run.CodeTimeout, "half of it is missing",
			end{Code: run.CodeTimeout, Status: 504, AppCode: "E1", Message: "resolved: half of it is missing"},
		},
		"the longest note": {
			run.StateSucceeded, run.CodeTimeout, strings.Repeat("x", 1024),
			end{Message: "resolved: " + strings.Repeat("x", 1024-len("resolved: "))},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := &state.Ledger{Runs: []run.Run{{
				ID: "r", Key: run.Key{Job: "a"}, State: run.StateNeedsReview, Unknown: true,
				Code: tt.code, Status: 504, AppCode: "E1", Message: "what was known",
			}}}
			s, ok := plan.Resolve(l, "r", tt.as, tt.note, noon.Add(time.Minute))
			if !ok || s.Run.State != tt.as || s.Run.Unknown || !s.Run.EndedAt.Equal(noon.Add(time.Minute)) {
				t.Fatalf("Resolve = %+v, %v, want it %s at 12:01", s, ok, tt.as)
			}
			got := end{s.Run.Code, s.Run.Status, s.Run.AppCode, s.Run.Message}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(l.Runs) != 0 || len(l.Finished) != 1 {
				t.Errorf("%d open and %d finished runs, want the one finished", len(l.Runs), len(l.Finished))
			}
		})
	}
}
