package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

func endedRun(job string, n int) run.Run {
	return run.Run{
		ID: fmt.Sprintf("%s-%04d", job, n), Key: run.Key{Job: job, Trigger: "default"}, State: run.StateSucceeded,
		ScheduledAt: minute(n), EndedAt: minute(n), Data: []byte(`{}`),
	}
}

// skipOf is a skip that covers [from, until) in minutes; until 0: there is no later instant.
func skipOf(job string, from, until, count int) run.Skip {
	s := run.Skip{
		Occurrence: fmt.Sprintf("%s-%04d", job, from), Key: run.Key{Job: job, Trigger: "default"}, Version: 1, Reason: run.ReasonOverlap,
		ScheduledAt: minute(from), Count: count, DecidedAt: minute(from),
	}
	if until != 0 {
		s.CoveredUntil = minute(until)
	}
	return s
}

func upTo(n int) func(string) int { return func(string) int { return n } }

// shape says what a job's skips are: [from, until) or [from..last] in minutes, and their count.
func shape(skips []run.Skip) []string {
	var out []string
	minutes := func(at time.Time) int { return int(at.Sub(noon) / time.Minute) }
	for _, s := range skips {
		text := fmt.Sprintf("[%d]", minutes(s.ScheduledAt))
		switch {
		case !s.CoveredUntil.IsZero():
			text = fmt.Sprintf("[%d,%d)", minutes(s.ScheduledAt), minutes(s.CoveredUntil))
		case !s.Last.IsZero():
			text = fmt.Sprintf("[%d..%d]", minutes(s.ScheduledAt), minutes(s.Last))
		}
		out = append(out, fmt.Sprintf("%s x%d %s", text, s.Count, s.Reason))
	}
	return out
}

func TestSkipsInARowAreOneRange(t *testing.T) {
	lost := func(s run.Skip) run.Skip { s.Reason = run.ReasonMisfire; return s }
	tests := map[string]struct {
		runs  []run.Run
		skips []run.Skip
		want  []string
	}{
		"one after the other":                          {nil, []run.Skip{skipOf("a", 1, 2, 1), skipOf("a", 2, 5, 3)}, []string{"[1,5) x4 overlap"}},
		"with something between them":                  {nil, []run.Skip{skipOf("a", 1, 2, 1), skipOf("a", 3, 4, 1)}, []string{"[3,4) x1 overlap", "[1,2) x1 overlap"}},
		"an older one after a newer one":               {nil, []run.Skip{skipOf("a", 10, 20, 10), skipOf("a", 1, 2, 1)}, []string{"[10,20) x10 overlap", "[1,2) x1 overlap"}},
		"an older one that ends where the newer began": {nil, []run.Skip{skipOf("a", 2, 3, 1), skipOf("a", 1, 2, 1)}, []string{"[1,3) x2 overlap"}},
		"one that closes a gap":                        {nil, []run.Skip{skipOf("a", 1, 2, 1), skipOf("a", 3, 4, 1), skipOf("a", 2, 3, 1)}, []string{"[1,4) x3 overlap"}},
		"one that reaches beyond a range":              {nil, []run.Skip{skipOf("a", 1, 3, 2), skipOf("a", 2, 5, 3)}, []string{"[2,5) x3 overlap", "[1,3) x2 overlap"}},
		"part of a range":                              {nil, []run.Skip{skipOf("a", 1, 5, 4), skipOf("a", 2, 3, 1)}, []string{"[1,5) x4 overlap"}},
		"two reasons for one occurrence":               {nil, []run.Skip{skipOf("a", 1, 2, 1), lost(skipOf("a", 1, 2, 1))}, []string{"[1,2) x1 overlap", "[1,2) x1 misfire"}},
		"the last of a schedule":                       {nil, []run.Skip{skipOf("a", 1, 2, 1), skipOf("a", 2, 0, 1)}, []string{"[1..2] x2 overlap"}},
		"those of a fixed delay":                       {nil, []run.Skip{skipOf("a", 1, 0, 1), skipOf("a", 7, 0, 1), skipOf("a", 9, 0, 1)}, []string{"[1..9] x3 overlap"}},
		"those of a fixed delay, around a run":         {[]run.Run{endedRun("a", 5)}, []run.Skip{skipOf("a", 1, 0, 1), skipOf("a", 7, 0, 1)}, []string{"[7] x1 overlap", "[1] x1 overlap"}},
		"a fixed delay, the older one later":           {nil, []run.Skip{skipOf("a", 7, 0, 1), skipOf("a", 1, 0, 1)}, []string{"[1..7] x2 overlap"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var one, batch state.History
			for _, s := range tt.skips { // each by a flush of its own
				one.Add(tt.runs, []run.Skip{s}, upTo(20))
			}
			batch.Add(tt.runs, tt.skips, upTo(20))
			for how, h := range map[string]*state.History{"one by one": &one, "at once": &batch} {
				for range 2 { // the second time it is a flush that is repeated
					if diff := cmp.Diff(tt.want, shape(h.Jobs["a"].Skips)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", how, diff)
					}
					h.Add(tt.runs, tt.skips, upTo(20))
				}
			}
		})
	}
}

func TestAFlushThatIsRepeatedChangesNothing(t *testing.T) {
	var runs []run.Run
	var skips []run.Skip
	for i := range state.MaxHistoryRuns + 300 {
		job := fmt.Sprintf("job-%d", i%300)
		r := endedRun(job, i)
		r.EndedAt = minute(i / 50) // many at once: which of them goes must not be a matter of luck
		runs = append(runs, r)
	}
	for i := range state.MaxHistorySkips + 700 {
		s := skipOf(fmt.Sprintf("job-%d", i%100), 2*i, 2*i+1, 1)
		s.DecidedAt = minute(i / 50)
		skips = append(skips, s)
	}
	var h state.History
	h.Add(runs, skips, upTo(5))
	text := func() string { return fmt.Sprint(shapes(&h), ids(&h)) }
	before := text()
	for range 3 {
		h.Add(runs, skips, upTo(5))
		if text() != before {
			t.Fatal("the same runs and skips once more changed the history")
		}
	}
	slices.Reverse(runs)
	slices.Reverse(skips)
	var other state.History
	other.Add(runs, skips, upTo(5))
	if diff := cmp.Diff(ids(&h), ids(&other)); diff != "" {
		t.Errorf("the order in which runs are added matters:\n%s", diff)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h state.History
	var runs []run.Run
	var skips []run.Skip
	for i := range 2 * state.MaxHistoryRuns {
		runs = append(runs, endedRun(fmt.Sprintf("job-%d", i%400), i))
	}
	for i := range 30_000 {
		skips = append(skips, skipOf(fmt.Sprintf("job-%d", i%400), 2*i, 2*i+1, 1))
	}
	h.Add(runs, skips, upTo(20))
	nr, ns := 0, 0
	for name, j := range h.Jobs {
		nr, ns = nr+len(j.Runs), ns+len(j.Skips)
		if !slices.IsSortedFunc(j.Runs, state.NewestFirst) {
			t.Errorf("the runs of %s are not in order", name)
		}
		if !slices.IsSortedFunc(j.Skips, func(a, b run.Skip) int { return b.ScheduledAt.Compare(a.ScheduledAt) }) {
			t.Errorf("the skips of %s are not in order", name)
		}
		for _, r := range j.Runs {
			if r.EndedAt.Before(minute(state.MaxHistoryRuns)) {
				t.Errorf("run %s is kept, older than others that are not", r.ID)
			}
			if len(r.Data) > 0 {
				t.Errorf("run %s is kept with its body", r.ID)
			}
		}
	}
	if nr != state.MaxHistoryRuns || ns != state.MaxHistorySkips {
		t.Errorf("%d runs and %d skips are kept, want %d and %d", nr, ns, state.MaxHistoryRuns, state.MaxHistorySkips)
	}
	var one state.History
	one.Add(nil, skips[:0:0], upTo(20))
	for i := range 200 {
		one.Add(nil, []run.Skip{skipOf("a", 2*i, 2*i+1, 1)}, upTo(20))
	}
	if kept := one.Jobs["a"].Skips; len(kept) != 50 || !kept[0].ScheduledAt.Equal(minute(398)) || !kept[49].ScheduledAt.Equal(minute(300)) {
		t.Errorf("%d skips of a job are kept, want the newest 50: %v", len(kept), shape(kept))
	}
}

func TestShrinkDropsWhatIsGoneThenWhatIsOld(t *testing.T) {
	var h state.History
	for i := range 100 {
		job := []string{"gone", "here", "there", "else"}[i%4]
		r := endedRun(job, i)
		r.Message = strings.Repeat("m", 500)
		h.Add([]run.Run{r}, nil, upTo(100))
	}
	h.Add(nil, []run.Skip{skipOf("here", 200, 201, 1)}, upTo(100))
	gone := func(job string) bool { return job == "gone" }
	h.Shrink(100, gone)
	if n := len(ids(&h)); n != 100 {
		t.Fatalf("%d runs are left of 100 percent, want all 100", n)
	}
	h.Shrink(50, gone)
	left := ids(&h)
	if h.Jobs["gone"] != nil || len(left) < 45 || len(left) > 50 {
		t.Errorf("%d runs are left of half, want nearly 50, none of a job that left: %v", len(left), left)
	}
	for _, id := range left {
		if n := strings.TrimLeft(id[strings.LastIndex(id, "-")+1:], "0"); len(n) < 2 {
			t.Errorf("%s is left, which is older than what went", id)
		}
	}
	h.Shrink(0, gone)
	if left := ids(&h); len(left) > 0 || len(h.Jobs["here"].Skips) > 0 {
		t.Errorf("%v is left of nothing", left)
	}
	if at := h.Jobs["here"].LastSuccess; !at.Equal(minute(97)) {
		t.Errorf("the last success of a job that is defined is %s, want it kept", at)
	}
}

func TestForgetDropsWhatLeftLongAgo(t *testing.T) {
	var h state.History
	h.Add([]run.Run{endedRun("old", 1), endedRun("defined", 1), endedRun("young", 9)}, nil, upTo(20))
	h.Add(nil, []run.Skip{skipOf("skipped", 9, 10, 1)}, upTo(20))
	h.Forget(func(job string) bool { return job == "defined" }, minute(5))
	var left []string
	for name := range h.Jobs {
		left = append(left, name)
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"defined", "skipped", "young"}, left); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func ids(h *state.History) []string {
	var out []string
	for _, j := range h.Jobs {
		for _, r := range j.Runs {
			out = append(out, r.ID)
		}
	}
	slices.Sort(out)
	return out
}

func shapes(h *state.History) []string {
	var out []string
	for name, j := range h.Jobs {
		out = append(out, fmt.Sprint(name, shape(j.Skips)))
	}
	slices.Sort(out)
	return out
}

// A flush of a leader before may be stored after a late result was noted on what it carries.
func TestAFlushThatComesLateKeepsTheNote(t *testing.T) {
	ended := endedRun("a", 1)
	ended.State, ended.Message = run.StateLost, "its sidecar is gone"
	noted := ended
	noted.Message = run.LateNote + "Succeeded; its sidecar is gone"
	var h state.History
	for _, r := range []run.Run{ended, noted, ended} {
		h.Add([]run.Run{r}, nil, upTo(10))
	}
	if got := h.Jobs["a"].Runs; len(got) != 1 || got[0].Message != noted.Message {
		t.Errorf("the history has %+v, want one run with the message %q", got, noted.Message)
	}
}
