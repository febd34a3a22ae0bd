package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

var (
	asyncAt   = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	succeeded = run.Outcome{State: run.StateSucceeded, Told: true, Message: "done", EndedAt: asyncAt}
	failed    = run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Told: true, Retryable: true, EndedAt: asyncAt}
)

// TestTell is the table of what becomes of an app's word, by where the run stands.
func TestTell(t *testing.T) {
	open := func(s run.State, async bool) *state.Ledger {
		return &state.Ledger{Runs: []run.Run{{ID: "r", Occurrence: "o", Key: run.Key{Job: "j"}, State: s, Async: async, Node: "a", Attempt: 1}}}
	}
	ended := func(s run.State, unknown bool) *state.Ledger {
		return &state.Ledger{
			Finished: []run.Run{{ID: "r", Occurrence: "o", Key: run.Key{Job: "j"}, State: s, Async: true, Unknown: unknown, Attempt: 1, Message: "so it was"}},
			Runs:     []run.Run{{ID: "again", Occurrence: "o", Key: run.Key{Job: "j"}, State: run.StateQueued, Cause: run.CauseRetry, Attempt: 2}},
		}
	}
	tests := map[string]struct {
		ledger  *state.Ledger
		sync    bool // the job is not async
		outcome run.Outcome
		verdict plan.Verdict
		noted   bool // on the run
		spared  bool // the further attempt is not needed any more
	}{
		"accepted, succeeds":                          {open(run.StateRunning, true), false, succeeded, plan.VerdictRecorded, false, false},
		"accepted, fails":                             {open(run.StateRunning, true), false, failed, plan.VerdictRecorded, false, false},
		"accepted under a definition that is gone":    {open(run.StateRunning, true), true, succeeded, plan.VerdictRecorded, false, false},
		"known to be sent, not to be accepted":        {open(run.StateRunning, false), false, succeeded, plan.VerdictRecorded, false, false},
		"may have been sent":                          {open(run.StatePending, false), false, succeeded, plan.VerdictEarly, false, false},
		"waits":                                       {open(run.StateQueued, false), false, succeeded, plan.VerdictUnawaited, false, false},
		"of a job that answers when it is done":       {open(run.StateRunning, false), true, succeeded, plan.VerdictUnawaited, false, false},
		"a person was to say, the app does":           {open(run.StateNeedsReview, true), false, succeeded, plan.VerdictRecorded, false, false},
		"nobody knows it":                             {&state.Ledger{}, false, succeeded, plan.VerdictUnknown, false, false},
		"has succeeded, succeeds again":               {ended(run.StateSucceeded, false), false, succeeded, plan.VerdictSame, false, false},
		"has succeeded, fails":                        {ended(run.StateSucceeded, false), false, failed, plan.VerdictOver, false, false},
		"has failed, fails again":                     {ended(run.StateFailed, false), false, failed, plan.VerdictSame, false, false},
		"has failed, succeeds: the first word stands": {ended(run.StateFailed, false), false, succeeded, plan.VerdictOver, false, false},
		"has timed out, succeeds late":                {ended(run.StateFailed, true), false, succeeded, plan.VerdictOver, true, true},
		"has timed out, fails late":                   {ended(run.StateFailed, true), false, failed, plan.VerdictOver, true, false},
		"was canceled, succeeds late":                 {ended(run.StateCanceled, true), false, succeeded, plan.VerdictOver, true, true},
		"is lost, succeeds late":                      {ended(run.StateLost, true), false, succeeded, plan.VerdictOver, true, true},
		"is lost, fails late":                         {ended(run.StateLost, true), false, failed, plan.VerdictOver, true, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			job := config.Job{Name: "j", Async: !tt.sync}
			hadAgain := tt.ledger.Run("again") != nil
			tell := func() plan.Told {
				return plan.Tell(tt.ledger, "r", plan.Report{Outcome: tt.outcome, NewID: func() string { return "new" }}, job)
			}
			told := tell()
			if told.Verdict != tt.verdict {
				t.Fatalf("verdict %d, want %d", told.Verdict, tt.verdict)
			}
			if changes := tt.verdict == plan.VerdictRecorded || tt.noted; told.Changed != changes {
				t.Errorf("changed %v, want %v", told.Changed, changes)
			}
			for _, r := range tt.ledger.Finished {
				if r.ID == "r" && strings.Contains(r.Message, "late result") != tt.noted {
					t.Errorf("message %q, want a note: %v", r.Message, tt.noted)
				}
			}
			if gone := hadAgain && tt.ledger.Run("again") == nil; gone != tt.spared {
				t.Errorf("the further attempt is gone: %v, want %v", gone, tt.spared)
			}
			if tt.verdict == plan.VerdictUnknown || tt.verdict == plan.VerdictEarly || tt.verdict == plan.VerdictUnawaited {
				return
			}
			// Said again, nothing happens again.
			again := tell()
			want := tt.verdict
			if want == plan.VerdictRecorded {
				want = plan.VerdictSame
			}
			if again.Verdict != want || again.Changed || again.Run.Message != told.Run.Message && !tt.noted {
				t.Errorf("said again: verdict %d, changed %v, want %d and nothing changed", again.Verdict, again.Changed, want)
			}
		})
	}
}

func TestAdoptTakesWhatWasAcceptedAlone(t *testing.T) {
	l := &state.Ledger{Runs: []run.Run{
		{ID: "accepted", State: run.StateRunning, Async: true, Node: "old", Place: "pod", Term: 3, Silent: 5000, Beat: 2},
		{ID: "open", State: run.StateRunning, Node: "old", Place: "pod"},
		{ID: "elsewhere", State: run.StateRunning, Async: true, Node: "other", Place: "pod-2"},
		{ID: "reviewed", State: run.StateNeedsReview, Async: true, Node: "old", Place: "pod"},
	}}
	if n := plan.Adopt(l, "new", func(r run.Run) bool { return r.Place == "pod" }); n != 1 {
		t.Errorf("adopted %d, want 1", n)
	}
	if r := l.Run("accepted"); r.Node != "new" || r.Term != 3 || r.Silent != 0 || r.Beat != 3 {
		t.Errorf("%+v, want it with the successor, heard anew, under the term with which it was sent", r)
	}
	for _, id := range []string{"open", "elsewhere", "reviewed"} {
		if l.Run(id).Node == "new" {
			t.Errorf("%s was adopted", id)
		}
	}
	if n := plan.Adopt(l, "new", func(run.Run) bool { return true }); n != 1 { // the one elsewhere
		t.Errorf("adopted %d more, want 1", n)
	}
}

func TestAcceptIsForWhoHasTheRun(t *testing.T) {
	l := &state.Ledger{Runs: []run.Run{
		{ID: "mine", State: run.StatePending, Node: "a"},
		{ID: "theirs", State: run.StatePending, Node: "b"},
		{ID: "waits", State: run.StateQueued},
	}}
	for id, want := range map[string]bool{"mine": true, "theirs": false, "waits": false, "nobody": false} {
		if got := plan.Accept(l, id, "a", asyncAt); got != want {
			t.Errorf("Accept(%s) = %v, want %v", id, got, want)
		}
	}
	if r := l.Run("mine"); !r.Async || r.State != run.StateRunning || !r.FiredAt.Equal(asyncAt) {
		t.Errorf("%+v, want it running, fired then", r)
	}
}
