package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

// fill lets jobs of every second run for that many seconds, of which nothing is heard any more.
func (w *world) fill(from time.Time, seconds int) (last plan.Result) {
	d := plan.Compile(w.catalog)
	index := plan.NewIndex(d, w.ledger)
	for i := range seconds {
		now := from.Add(time.Duration(i) * time.Second)
		last = plan.Plan(plan.Input{
			Namespace: "ns", App: "app", Node: "me", Term: 1, Now: now, Horizon: now.Add(100 * time.Millisecond),
			MaxRuns: w.maxRuns, NewID: w.newID, Definitions: d, Index: index,
		}, w.ledger)
		index.Apply(last.Moves)
		for j := range w.ledger.Runs {
			if r := &w.ledger.Runs[j]; r.State.Claimed() {
				r.State, r.Message = run.StateNeedsReview, strings.Repeat("m", 100)
			}
		}
	}
	return last
}

func (w *world) open(job string) int { return w.ledger.Unfinished(job) }

// However many runs some jobs have open, one that has none finds room: they wait, not it.
func TestNoJobStopsAnother(t *testing.T) {
	for hogs, share := range map[int]int{1: 500, 2: 333, 5: 166} {
		t.Run(fmt.Sprintf("%d jobs fill their share", hogs), func(t *testing.T) {
			w := newWorld(t, noon.Add(-time.Second))
			for i := range hogs {
				w.define(job(fmt.Sprintf("hog-%d", i), "* * * * * *", overlap(config.OverlapParallel, 0)), noon.Add(-time.Hour))
			}
			w.maxRuns = plan.MaxOpenRuns
			last := w.fill(noon, 700)
			for i := range hogs {
				name := fmt.Sprintf("hog-%d", i)
				if got := w.open(name); got < share-2 || got > share+2 {
					t.Errorf("%s has %d runs open, want about %d", name, got, share)
				}
				if !slices.Contains(last.Filled, name) {
					t.Errorf("%s is not told to fill its share: %v", name, last.Filled)
				}
			}
			if last.Full {
				t.Error("the ledger is said to be full: there is room for others")
			}
			now := noon.Add(time.Hour)
			w.define(job("newcomer", "0 13 * * *"), noon.Add(time.Minute))
			w.plan(now)
			if got := w.open("newcomer"); got != 1 {
				t.Errorf("the newcomer has %d runs, want 1", got)
			}
			if len(w.ledger.Skipped) > 0 {
				t.Errorf("skipped %v: what waits for room is not missed", w.ledger.Skipped)
			}
		})
	}
}

// A job that waits for room goes on where it stood when its runs have ended.
func TestAJobThatFilledItsShareGoesOn(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Second), job("hog", "* * * * * *", overlap(config.OverlapParallel, 0),
		misfire(config.Misfire{Policy: config.MisfireCatchUp, Limit: 100, Window: time.Hour})))
	w.maxRuns = plan.MaxOpenRuns
	w.fill(noon, 520)
	newest := w.ledger.Runs[len(w.ledger.Runs)-1]
	for _, r := range slices.Clone(w.ledger.Runs) {
		if _, ok := plan.Resolve(w.ledger, r.ID, run.StateSucceeded, "looked", noon.Add(520*time.Second)); !ok {
			t.Fatal("not resolved")
		}
	}
	w.plan(noon.Add(520 * time.Second))
	if len(w.ledger.Runs) == 0 || !w.ledger.Runs[0].ScheduledAt.Equal(newest.CoveredUntil) {
		t.Errorf("after the review %v, want to go on at %s", story(w.ledger.Runs, w.ledger.Skipped), offset(newest.CoveredUntil))
	}
}

// A failure and its retry are one swap, whether or not there is room.
func TestARetryNeedsNoRoom(t *testing.T) {
	retrying := job("hog", "* * * * * *", overlap(config.OverlapParallel, 0), func(j *config.Job) { j.Retry = config.Retry{MaxRetries: 3, Delay: time.Hour} })
	w := newWorld(t, noon.Add(-time.Second), retrying)
	w.maxRuns = 1
	for i := range 600 {
		w.plan(noon.Add(time.Duration(i) * time.Second))
	}
	before := w.open("hog")
	var claimed run.Run
	for _, r := range w.ledger.Runs {
		if r.State.Claimed() {
			claimed = r
		}
	}
	at := noon.Add(time.Hour)
	s := w.settle(claimed.ID, run.Outcome{State: run.StateFailed, Retryable: true, StartedAt: at, EndedAt: at}, retrying)
	if s.Retry.Attempt != 2 || w.open("hog") != before {
		t.Errorf("retry %+v and %d open runs, want attempt 2 in place of the one that failed, %d", s.Retry, w.open("hog"), before)
	}
}

// A thousand triggers of one second are one decision.
func TestAThousandAreDecidedAtOnce(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Second))
	for i := range plan.MaxOpenRuns {
		w.define(job(fmt.Sprintf("reports.tenant-with-a-name-%04d", i), "0 12 * * *"), noon.Add(-time.Hour))
	}
	res := w.plan(noon)
	if res.Decided != plan.MaxOpenRuns || len(w.ledger.Runs) != plan.MaxOpenRuns || res.Full || len(res.Filled) > 0 {
		t.Errorf("%d decided, %d open, full %v, %d jobs told to wait; want %d at once", res.Decided, len(w.ledger.Runs), res.Full, len(res.Filled), plan.MaxOpenRuns)
	}
}

func TestALedgerThatIsFullDecidesNothing(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Second), job("a", "* * * * * *"))
	for i := range 300 {
		w.ledger.Finished = append(w.ledger.Finished, run.Run{ID: fmt.Sprint(i), Message: strings.Repeat("m", 1000)})
	}
	d := plan.Compile(w.catalog)
	in := plan.Input{Node: "me", Term: 1, Now: noon, Horizon: noon, MaxRuns: 32, MaxBytes: 400 << 10, NewID: w.newID, Definitions: d, Index: plan.NewIndex(d, w.ledger)}
	if res := plan.Plan(in, w.ledger); !res.Full || len(w.ledger.Runs) > 0 {
		t.Errorf("full %v, runs %v; want nothing decided above seven eighths of the bound", res.Full, story(w.ledger.Runs, nil))
	}
	w.ledger.Finished = w.ledger.Finished[:200]
	if res := plan.Plan(in, w.ledger); res.Full || len(w.ledger.Runs) != 1 {
		t.Errorf("full %v, runs %v; want it decided once there is room", res.Full, story(w.ledger.Runs, nil))
	}
}

func TestATurnMayBeToldToClaimLess(t *testing.T) {
	w := newWorld(t, noon.Add(-time.Second))
	for i := range 5 {
		w.define(job(fmt.Sprintf("job-%02d", i), "0 12 * * *"), noon.Add(-time.Hour))
	}
	d := plan.Compile(w.catalog)
	in := plan.Input{Node: "me", Term: 1, Now: noon, Horizon: noon, MaxRuns: 32, MaxClaimed: 2, NewID: w.newID, Definitions: d, Index: plan.NewIndex(d, w.ledger)}
	var got []string
	for range 4 {
		res := plan.Plan(in, w.ledger)
		in.Index.Apply(res.Moves)
		got = append(got, fmt.Sprintf("%d/%d", res.Decided, len(res.Claimed)))
		if w.ledger.Claimed("me") < 5 && !res.Next.Equal(noon) {
			t.Fatalf("the next turn is at %s although there is more to do", offset(res.Next))
		}
	}
	if want := "5/2 0/2 0/1 0/0"; strings.Join(got, " ") != want {
		t.Errorf("decided/claimed %v, want %s", got, want)
	}
}

func TestAdmit(t *testing.T) {
	const kib = 1 << 10
	ask := func(job string, data int) run.Run {
		r := run.Run{ID: strings.Repeat("i", 32), Occurrence: strings.Repeat("o", 32), Key: run.Key{Job: job}, State: run.StateQueued}
		if data > 0 {
			r.Data = json.RawMessage(`"` + strings.Repeat("d", data-2) + `"`)
		}
		return r
	}
	tests := map[string]struct {
		open map[string]int // runs by job
		data int            // of each
		ask  run.Run
		want string // part of the refusal; empty: none
	}{
		"an empty ledger":                         {ask: ask("a", 256*kib)},
		"a job up to its share":                   {open: map[string]int{"a": 499}, ask: ask("a", 0)},
		"a job that fills its share":              {open: map[string]int{"a": 500}, ask: ask("a", 0), want: `500 runs of job "a"`},
		"another job beside it":                   {open: map[string]int{"a": 500}, ask: ask("b", 0)},
		"all jobs together leave triggers theirs": {open: map[string]int{"a": 375, "b": 375}, ask: ask("c", 0), want: "750 runs are open"},
		"data up to the bound":                    {open: map[string]int{"a": 1}, data: 200 * kib, ask: ask("a", 200*kib)},
		"a job whose data fill its share":         {open: map[string]int{"a": 2}, data: 140 * kib, ask: ask("a", 1*kib), want: `runs of job "a" carry 286720 bytes`},
		"data of another job beside it":           {open: map[string]int{"a": 2}, data: 140 * kib, ask: ask("b", 200*kib)},
		"data of another job up to what is left":  {open: map[string]int{"a": 2}, data: 140 * kib, ask: ask("b", 256*kib), want: "more than the ledger takes (524288)"},
		"no data while others' data is all":       {open: map[string]int{"a": 2}, data: 256 * kib, ask: ask("b", 0)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon)
			for j, n := range tt.open {
				for range n {
					w.ledger.Runs = append(w.ledger.Runs, ask(j, tt.data))
				}
			}
			err := plan.Admit(w.ledger, tt.ask, 0)
			if tt.want == "" {
				if err != nil {
					t.Errorf("Admit() = %v, want it taken", err)
				}
				return
			}
			if full, ok := errors.AsType[*run.Error](err); !ok || full.Code != run.CodeLedgerFull || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Admit() = %v, want %s with %q", err, run.CodeLedgerFull, tt.want)
			}
		})
	}
}

// What is asked for by hand fills three quarters of a ledger, by its true size.
func TestAdmitStopsAtThreeQuartersOfTheBytes(t *testing.T) {
	const most = 60 << 10
	w := newWorld(t, noon)
	for i := 0; ; i++ {
		at := noon.Add(time.Duration(i)*time.Second + 123456*time.Microsecond)
		id := fmt.Sprintf("%032x", i)
		r := run.Run{
			ID: id, Request: id, Occurrence: fmt.Sprintf("%032x", i*i), Key: run.Key{Job: fmt.Sprintf("by-hand-%d", i%9)}, Version: 3, Cause: run.CauseManual,
			State: run.StateQueued, Priority: 5, ScheduledAt: at, DueAt: at, DecidedAt: at, Attempt: 1,
		}
		if err := plan.Admit(w.ledger, r, most); err != nil {
			break
		}
		w.ledger.Runs = append(w.ledger.Runs, r)
	}
	text, err := json.Marshal(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(text); size < most/2 || size > most*3/4 {
		t.Errorf("%d bytes of at most %d are taken, want half to three quarters", size, most)
	}
}
