package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// noon is the moment around which the tables are written.
var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// world is a catalog and a ledger to plan on.
type world struct {
	t       *testing.T
	catalog *state.Catalog
	ledger  *state.Ledger
	ids     int
	maxRuns int
}

// newWorld has jobs since long before noon and nothing decided since the given time.
func newWorld(t *testing.T, watermark time.Time, jobs ...config.Job) *world {
	t.Helper()
	w := &world{t: t, catalog: &state.Catalog{Revision: 1, Jobs: map[string]*state.Job{}}, maxRuns: 32}
	w.ledger = &state.Ledger{Term: 1, Watermark: watermark, CatalogRevision: 1}
	for _, j := range jobs {
		w.define(j, noon.Add(-365*24*time.Hour))
	}
	return w
}

// define adds a version of a job.
func (w *world) define(j config.Job, effective time.Time) {
	w.t.Helper()
	definition, err := json.Marshal(j)
	if err != nil {
		w.t.Fatal(err)
	}
	record := w.catalog.Jobs[j.Name]
	if record == nil {
		record = &state.Job{FirstSeen: effective}
		w.catalog.Jobs[j.Name] = record
	}
	bases := map[string]time.Time{}
	for _, t := range j.Triggers {
		bases[t.Name] = effective
		if b, ok := record.Newest().Bases[t.Name]; ok {
			bases[t.Name] = b
		}
	}
	record.Add(state.Version{
		Number: record.Newest().Number + 1, Revision: w.catalog.Revision, EffectiveAt: effective,
		Source: state.SourceConfig, Definition: definition, Bases: bases,
	})
	plan.DropVersions(w.catalog, w.ledger, state.MaxVersions)
}

func (w *world) newID() string { w.ids++; return fmt.Sprintf("run-%d", w.ids) }

// plan takes one turn at now, looking ahead a tenth of a second.
func (w *world) plan(now time.Time) plan.Result {
	w.t.Helper()
	d := plan.Compile(w.catalog)
	return plan.Plan(plan.Input{
		Namespace: "ns", App: "app", Node: "me", Term: 1, Now: now, Horizon: now.Add(100 * time.Millisecond),
		MaxRuns: w.maxRuns, NewID: w.newID, Definitions: d, Index: plan.NewIndex(d, w.ledger),
	}, w.ledger)
}

// finish ends every claimed run with success.
func (w *world) finish(at time.Time) {
	for _, r := range append([]run.Run(nil), w.ledger.Runs...) {
		if r.State.Claimed() {
			w.settle(r.ID, run.Outcome{State: run.StateSucceeded, StartedAt: at, EndedAt: at}, config.Job{})
		}
	}
}

func (w *world) settle(id string, o run.Outcome, job config.Job) plan.Settled {
	w.t.Helper()
	s, ok := plan.Settle(w.ledger, id, plan.Report{Outcome: o, NewID: w.newID}, job)
	if !ok {
		w.t.Fatalf("Settle(%s): the ledger does not hold it", id)
	}
	return s
}

// job has one trigger with the defaults of the document.
func job(name, text string, change ...func(*config.Job)) config.Job {
	s, err := schedule.Parse(text)
	if err != nil {
		panic(err)
	}
	j := config.Job{
		Name: name, Target: "http://127.0.0.1:8080", Path: "/", Method: "POST", Timeout: 30 * time.Second,
		Overlap: config.OverlapSerial, Recovery: config.RecoveryNone, Scope: config.ScopeCluster, HistoryLimit: 20,
		Triggers: []config.Trigger{{
			Name: "default", Schedule: s, Priority: 5,
			Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: time.Minute},
		}},
	}
	for _, c := range change {
		c(&j)
	}
	return j
}

func misfire(m config.Misfire) func(*config.Job) {
	return func(j *config.Job) {
		if m.Grace == 0 {
			m.Grace = time.Minute
		}
		j.Triggers[0].Misfire = m
	}
}

func overlap(o config.Overlap, maxParallel int) func(*config.Job) {
	return func(j *config.Job) { j.Overlap, j.MaxParallel = o, maxParallel }
}

// story prints runs and skips in a line each, times as offsets from noon.
func story(runs []run.Run, skips []run.Skip) []string {
	var out []string
	for _, r := range runs {
		line := fmt.Sprintf("%s %s", r.State, offset(r.ScheduledAt))
		if r.Coalesced > 1 {
			line += fmt.Sprintf(" coalesced=%d", r.Coalesced)
		}
		if !r.CoveredUntil.IsZero() {
			line += " until " + offset(r.CoveredUntil)
		}
		out = append(out, line)
	}
	for _, s := range skips {
		line := fmt.Sprintf("Skipped %s %s count=%d", s.Reason, offset(s.ScheduledAt), s.Count)
		if !s.CoveredUntil.IsZero() {
			line += " until " + offset(s.CoveredUntil)
		}
		out = append(out, line)
	}
	return out
}

func offset(t time.Time) string { return t.Sub(noon).String() }

func TestMisfire(t *testing.T) {
	skip := misfire(config.Misfire{Policy: config.MisfireSkip})
	catchUp := misfire(config.Misfire{Policy: config.MisfireCatchUp, Limit: 10, Window: 24 * time.Hour})
	tests := map[string]struct {
		job       config.Job
		watermark time.Time // instants before it are decided
		now       time.Time
		want      []string
	}{
		"an instant that is due fires under its own name": {
			job: job("a", "* * * * *"), watermark: noon, now: noon,
			want: []string{"Pending 0s until 1m0s"},
		},
		"an instant within the horizon is committed ahead": {
			job: job("a", "* * * * *"), watermark: noon.Add(-50 * time.Second), now: noon.Add(-80 * time.Millisecond),
			want: []string{"Pending 0s until 1m0s"},
		},
		"an instant beyond the horizon waits": {
			job: job("a", "* * * * *"), watermark: noon.Add(-50 * time.Second), now: noon.Add(-200 * time.Millisecond),
		},
		"late within grace is not a misfire": { // R015
			job: job("a", "* * * * *"), watermark: noon, now: noon.Add(20 * time.Second),
			want: []string{"Pending 0s until 1m0s"},
		},
		"480 missed minutes become one run": { // R001, R011, R019
			job: job("a", "* * * * *"), watermark: noon.Add(-8 * time.Hour), now: noon.Add(-time.Second),
			want: []string{"Pending -8h0m0s coalesced=480 until 0s"},
		},
		"one missed instant is fired, not coalesced": {
			job: job("a", "0 3 * * *"), watermark: noon.Add(-12 * time.Hour), now: noon,
			want: []string{"Pending -9h0m0s until 15h0m0s"},
		},
		"a rate frozen for ten hours runs once, then on its grid": { // R025
			job: job("a", "rate 30m start=2026-06-01T00:00:00Z"), watermark: noon.Add(-10 * time.Hour), now: noon.Add(-time.Minute),
			want: []string{"Pending -10h0m0s coalesced=20 until 0s"},
		},
		"skip passes over what is older than grace and fires the rest": { // R023 (DESIGN keeps what is within grace)
			job: job("a", "* * * * *", skip), watermark: noon.Add(-5 * time.Minute), now: noon.Add(30 * time.Second),
			want: []string{"Pending 0s until 1m0s", "Skipped misfire -5m0s count=5 until 0s"},
		},
		"skip after a night runs nothing": { // R024
			job: job("a", "0 8 * * *", skip), watermark: noon.Add(-10 * time.Hour), now: noon.Add(3 * time.Hour),
			want: []string{"Skipped misfire -4h0m0s count=1 until 20h0m0s"},
		},
		"older than the window is skipped as a range": { // R013
			job:       job("a", "0 2 * * *", misfire(config.Misfire{Policy: config.MisfireRunOnce, Window: 30 * time.Minute})),
			watermark: noon.Add(-11 * time.Hour), now: noon.Add(-3 * time.Hour),
			want: []string{"Skipped window -10h0m0s count=1 until 14h0m0s"},
		},
		"catch-up runs the oldest first, each with its own time": { // R012, R020
			job: job("a", "* * * * *", catchUp), watermark: noon.Add(-5 * time.Minute), now: noon.Add(-time.Second),
			want: []string{"Pending -5m0s until -4m0s"},
		},
		"an instant before the trigger was first seen never fires": {
			job: job("a", "once 2020-01-01T00:00:00Z"), watermark: noon, now: noon,
		},
		"a once that came in an outage fires once": {
			job: job("a", "once 2026-06-15T11:00:00Z"), watermark: noon.Add(-2 * time.Hour), now: noon,
			want: []string{"Pending -1h0m0s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tt.watermark, tt.job)
			w.plan(tt.now)
			if diff := cmp.Diff(tt.want, story(w.ledger.Runs, w.ledger.Skipped)); diff != "" {
				t.Errorf("Plan at %s with nothing decided since %s (-want +got):\n%s", offset(tt.now), offset(tt.watermark), diff)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	// The job fires at noon and runs until 2m30s later; the table says what the instants meanwhile become.
	tests := map[string]struct {
		job  config.Job
		want []string // all runs in the order in which they ended, and the skips
	}{
		"serial: what is within grace follows, each with its own time": { // R021
			job:  job("a", "* * * * *", misfire(config.Misfire{Policy: config.MisfireCatchUp, Limit: 10, Window: time.Hour})),
			want: []string{"Succeeded 0s until 1m0s", "Succeeded 1m0s until 2m0s", "Succeeded 2m0s until 3m0s"},
		},
		"serial, run-once: the backlog older than grace is one run": {
			job:  job("a", "* * * * *"),
			want: []string{"Succeeded 0s until 1m0s", "Succeeded 1m0s coalesced=2 until 3m0s"},
		},
		"skip: passed over with a reason, and not caught up": { // R156
			job: job("a", "* * * * *", overlap(config.OverlapSkip, 0)),
			want: []string{
				"Succeeded 0s until 1m0s",
				"Skipped overlap 1m0s count=1 until 2m0s", "Skipped overlap 2m0s count=1 until 3m0s",
			},
		},
		"parallel: starts beside the running one": {
			job:  job("a", "* * * * *", overlap(config.OverlapParallel, 0)),
			want: []string{"Succeeded 0s until 1m0s", "Succeeded 1m0s until 2m0s", "Succeeded 2m0s until 3m0s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, tt.job)
			for now := noon; now.Before(noon.Add(150 * time.Second)); now = now.Add(10 * time.Second) {
				w.plan(now)
			}
			w.finish(noon.Add(150 * time.Second))
			for now := noon.Add(150 * time.Second); now.Before(noon.Add(170 * time.Second)); now = now.Add(time.Second) {
				w.plan(now)
				w.finish(now)
			}
			if diff := cmp.Diff(tt.want, story(w.ledger.Finished, w.ledger.Skipped)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlots(t *testing.T) {
	priority := func(n int) func(*config.Job) { return func(j *config.Job) { j.Triggers[0].Priority = n } }
	w := newWorld(t, noon, job("low", "0 12 * * *", priority(1)), job("high", "0 12 * * *", priority(9)), job("mid", "0 12 * * *"))
	w.maxRuns = 2
	res := w.plan(noon)
	var got []string
	for _, r := range res.Claimed {
		got = append(got, r.Key.Job)
	}
	if diff := cmp.Diff([]string{"high", "mid"}, got); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
	if len(w.ledger.Runs) != 3 {
		t.Errorf("%d runs in the ledger, want all 3 decided, one of them Queued", len(w.ledger.Runs))
	}
	w.finish(noon.Add(5 * time.Minute))
	res = w.plan(noon.Add(5 * time.Minute))
	if len(res.Claimed) != 1 || res.Claimed[0].Key.Job != "low" {
		t.Errorf("claimed %v after a slot came free, want low: waiting for a slot is no misfire", res.Claimed)
	}
}

func TestFixedDelayCountsFromTheEnd(t *testing.T) {
	w := newWorld(t, noon, job("a", "every 10m x2 start=2026-06-15T11:50:00Z"))
	w.plan(noon)
	if got := story(w.ledger.Runs, nil); len(got) != 1 || got[0] != "Pending 0s" {
		t.Fatalf("first at start + interval: got %v", got)
	}
	w.plan(noon.Add(30 * time.Minute))
	if len(w.ledger.Runs) != 1 {
		t.Fatalf("a fixed delay is due again while it runs: %v", story(w.ledger.Runs, nil))
	}
	w.finish(noon.Add(31 * time.Minute))
	res := w.plan(noon.Add(32 * time.Minute))
	if want := noon.Add(41 * time.Minute); !res.Next.Equal(want) {
		t.Errorf("next look at %s, want %s", offset(res.Next), offset(want))
	}
	w.plan(noon.Add(41 * time.Minute))
	w.finish(noon.Add(42 * time.Minute))
	w.plan(noon.Add(24 * time.Hour))
	want := []string{"Succeeded 0s", "Succeeded 41m0s"}
	if diff := cmp.Diff(want, story(append(w.ledger.Finished, w.ledger.Runs...), nil)); diff != "" {
		t.Errorf("x2 fires twice (-want +got):\n%s", diff)
	}
}

func TestAnEditDecidesOnlyWhatComesAfterIt(t *testing.T) {
	// R005: after an edit no instant of the old schedule fires, and none of the new before it.
	w := newWorld(t, noon.Add(-time.Hour), job("a", "30 * * * *"))
	w.define(job("a", "45 * * * *"), noon)
	w.plan(noon.Add(time.Second))
	if diff := cmp.Diff([]string{"Pending -30m0s until 0s"}, story(w.ledger.Runs, nil)); diff != "" {
		t.Errorf("what was due before the edit is the old version's, and ends at it (-want +got):\n%s", diff)
	}
	w.finish(noon.Add(2 * time.Second))
	w.plan(noon.Add(44 * time.Minute))
	w.plan(noon.Add(45 * time.Minute))
	if diff := cmp.Diff([]string{"Pending 45m0s until 1h45m0s"}, story(w.ledger.Runs, nil)); diff != "" {
		t.Errorf("after the edit (-want +got):\n%s", diff)
	}
}

func TestPausedInstantsStayUndecided(t *testing.T) {
	paused := func(j *config.Job) { j.Paused = true }
	w := newWorld(t, noon, job("a", "* * * * *", paused))
	for i := range 10 {
		if res := w.plan(noon.Add(time.Duration(i) * time.Minute)); len(res.Missed) > 0 {
			t.Fatalf("missed %v while paused", res.Missed)
		}
	}
	if len(w.ledger.Runs)+len(w.ledger.Skipped) > 0 {
		t.Fatalf("decided while paused: %v", story(w.ledger.Runs, w.ledger.Skipped))
	}
	w.define(job("a", "* * * * *"), noon.Add(10*time.Minute))
	w.plan(noon.Add(10*time.Minute + time.Second))
	if diff := cmp.Diff([]string{"Pending 0s coalesced=10 until 10m0s"}, story(w.ledger.Runs, w.ledger.Skipped)); diff != "" {
		t.Errorf("on resume the misfire policy decides (-want +got):\n%s", diff)
	}
}

func TestCatchUpKeepsItsRateAndDropsNothing(t *testing.T) {
	w := newWorld(t, noon.Add(-30*time.Minute), job("a", "* * * * *",
		misfire(config.Misfire{Policy: config.MisfireCatchUp, Limit: 2, Window: time.Hour}), overlap(config.OverlapParallel, 0)))
	perSecond := map[int]int{}
	for i := range 300 {
		now := noon.Add(time.Duration(i) * 100 * time.Millisecond)
		perSecond[i/10] += len(w.plan(now).Claimed)
		w.finish(now)
	}
	for second, n := range perSecond {
		if n > 3 { // one instant within grace may come on top
			t.Errorf("second %d: %d runs, want at most 2", second, n)
		}
	}
	if got := len(w.ledger.Finished); got != 31 {
		t.Errorf("%d runs, want all 30 missed instants and noon's", got)
	}
}

func TestClockSetBackMakesNothingDueAgain(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *"))
	w.plan(noon)
	w.finish(noon)
	for i := range 600 {
		w.plan(noon.Add(-10 * time.Minute).Add(time.Duration(i) * time.Second))
	}
	if len(w.ledger.Runs) > 0 {
		t.Errorf("fired again after the clock was set back: %v", story(w.ledger.Runs, nil))
	}
}

func TestAnIdleTurnChangesNothing(t *testing.T) {
	w := newWorld(t, noon, job("a", "0 3 * * *"))
	w.plan(noon)
	before := *w.ledger
	if res := w.plan(noon.Add(time.Hour)); res.Changed || len(res.Moves) > 0 {
		t.Errorf("Plan with nothing due = %+v, want no change", res)
	}
	if diff := cmp.Diff(before, *w.ledger); diff != "" {
		t.Errorf("ledger changed:\n%s", diff)
	}
}

func TestRetry(t *testing.T) {
	retry := func(r config.Retry) func(*config.Job) { return func(j *config.Job) { j.Retry = r } }
	failed := run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 503, Retryable: true, StartedAt: noon, EndedAt: noon.Add(time.Second)}
	unknown := failed
	unknown.Unknown = true
	final := failed
	final.Retryable = false
	tests := map[string]struct {
		job     config.Job
		outcome run.Outcome
		want    time.Duration // when the retry is due after the end; 0: no retry
	}{
		"no retry setting means one request": {job: job("a", "* * * * *"), outcome: failed}, // R133
		"fixed delay": {
			job: job("a", "* * * * *", retry(config.Retry{MaxRetries: 3, Delay: 5 * time.Second})), outcome: failed, want: 5 * time.Second,
		},
		"a final status is final": {
			job: job("a", "* * * * *", retry(config.Retry{MaxRetries: 3, Delay: time.Second})), outcome: final,
		},
		"a status of the job's own list is repeated": {
			job:     job("a", "* * * * *", retry(config.Retry{MaxRetries: 1, Delay: time.Second, Statuses: []int{404}})),
			outcome: func() run.Outcome { o := final; o.Status = 404; return o }(), want: time.Second,
		},
		"a status that the job's own list leaves out is final": {
			job: job("a", "* * * * *", retry(config.Retry{MaxRetries: 1, Delay: time.Second, Statuses: []int{404}})), outcome: failed,
		},
		"an unknown outcome can be left alone": {
			job: job("a", "* * * * *", retry(config.Retry{MaxRetries: 3, Delay: time.Second, NoUnknown: true})), outcome: unknown,
		},
		"Retry-After is a lower bound": { // R136
			job:     job("a", "* * * * *", retry(config.Retry{MaxRetries: 3, Delay: time.Second})),
			outcome: func() run.Outcome { o := failed; o.RetryAfter = 7 * time.Second; return o }(), want: 7 * time.Second,
		},
		"Retry-After is capped by maxDelay": { // R136
			job:     job("a", "* * * * *", retry(config.Retry{MaxRetries: 3, Delay: time.Second, MaxDelay: time.Minute})),
			outcome: func() run.Outcome { o := failed; o.RetryAfter = 24 * time.Hour; return o }(), want: time.Minute,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, tt.job)
			w.plan(noon)
			first := w.ledger.Runs[0]
			s := w.settle(first.ID, tt.outcome, tt.job)
			if tt.want == 0 {
				if !s.Final() {
					t.Fatalf("got a retry: %+v", s.Retry)
				}
				return
			}
			if s.Final() {
				t.Fatal("got no retry")
			}
			if got := s.Retry.DueAt.Sub(tt.outcome.EndedAt); got != tt.want {
				t.Errorf("due %s after the end, want %s", got, tt.want)
			}
			if s.Retry.Occurrence != first.Occurrence || s.Retry.Attempt != 2 || s.Retry.RetryOf != first.ID || !s.Retry.ScheduledAt.Equal(first.ScheduledAt) {
				t.Errorf("retry %+v is not the second attempt of %+v", s.Retry, first)
			}
			if w.plan(noon.Add(time.Second)); len(w.ledger.Runs) != 1 {
				t.Errorf("%d open runs, want the waiting retry alone", len(w.ledger.Runs))
			}
		})
	}
}

func TestRetryDelayGrowsAndIsCapped(t *testing.T) {
	r := config.Retry{MaxRetries: 100, Delay: time.Minute, Backoff: config.BackoffExponential, MaxDelay: 30 * time.Minute}
	var got []string
	for n := 1; n <= 7; n++ {
		got = append(got, plan.RetryDelay(r, n, 0, "x").String())
	}
	if want := "1m0s 2m0s 4m0s 8m0s 16m0s 30m0s 30m0s"; strings.Join(got, " ") != want {
		t.Errorf("delays %v, want %s", got, want)
	}
	r.Jitter = 0.5
	spread := map[time.Duration]bool{}
	for i := range 50 {
		d := plan.RetryDelay(r, 1, 0, fmt.Sprint(i))
		if d < 30*time.Second || d > 90*time.Second {
			t.Errorf("jittered delay %s outside 1m ± 50%%", d)
		}
		spread[d] = true
	}
	if len(spread) < 20 {
		t.Errorf("only %d different delays of 50", len(spread))
	}
	if d := plan.RetryDelay(config.Retry{Delay: plan.MaxRetryDelay, Backoff: config.BackoffExponential}, 100, 0, "x"); d != plan.MaxRetryDelay {
		t.Errorf("uncapped exponential delay %s, want %s", d, plan.MaxRetryDelay)
	}
}

func TestDeadlineEndsRetries(t *testing.T) {
	j := job("a", "* * * * *", func(j *config.Job) {
		j.Retry = config.Retry{MaxRetries: 100, Delay: time.Minute}
		j.Deadline = 90 * time.Second
	})
	w := newWorld(t, noon, j)
	w.plan(noon)
	fail := func(at time.Time) plan.Settled {
		return w.settle(w.ledger.Runs[0].ID, run.Outcome{State: run.StateFailed, Retryable: true, StartedAt: at, EndedAt: at}, j)
	}
	if s := fail(noon); s.Final() {
		t.Fatal("no retry within the deadline")
	}
	w.plan(noon.Add(time.Minute))
	s := fail(noon.Add(time.Minute))
	if !s.Final() || s.Run.Code != run.CodeTimeout || s.Run.State != run.StateFailed {
		t.Errorf("after the deadline: %+v, want Failed with %s and no retry", s, run.CodeTimeout)
	}
}

func TestTheDeadlineCountsWhileTheAppCannotBeReached(t *testing.T) {
	j := job("a", "0 12 * * *", func(j *config.Job) {
		j.Retry = config.Retry{MaxRetries: 100, Delay: 5 * time.Minute}
		j.Deadline = 2 * time.Hour
	})
	w := newWorld(t, noon, j)
	now := noon
	for range 100 {
		w.plan(now)
		end := now.Add(10 * time.Second) // of asking again
		s := w.settle(w.ledger.Runs[0].ID, run.Outcome{
			State: run.StateFailed, Code: run.CodeFailed, Retryable: true, NotSent: true, BegunAt: now, EndedAt: end,
		}, j)
		if s.Final() {
			if s.Run.Code != run.CodeTimeout {
				t.Errorf("ended with %s, want %s", s.Run.Code, run.CodeTimeout)
			}
			if after := end.Sub(noon); after < 115*time.Minute || after > 2*time.Hour {
				t.Errorf("given up after %s, want the last one before 2 h", after)
			}
			return
		}
		now = s.Retry.DueAt
	}
	t.Errorf("still tried %s after the first attempt began", now.Sub(noon))
}

func TestLostRuns(t *testing.T) {
	recovery := func(r config.Recovery) func(*config.Job) { return func(j *config.Job) { j.Recovery = r } }
	tests := map[string]struct {
		job  config.Job
		want []string // open runs after the verdict and a turn
	}{
		"none records it and goes on": { // R111
			job: job("a", "0 12 * * *", recovery(config.RecoveryNone)),
		},
		"rerun enqueues it once more": { // R109 (DESIGN: a new run with the next attempt)
			job: job("a", "0 12 * * *", recovery(config.RecoveryRerun)), want: []string{"recovery attempt 2 of 0s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, noon, tt.job)
			w.plan(noon)
			w.ledger.Runs[0].Node = "dead"
			all := func(r run.Run) bool { return r.Node == "dead" }
			jobOf := func(run.Run) config.Job { return tt.job }
			if lost := plan.Lose(w.ledger, all, jobOf, noon.Add(time.Minute), w.newID); len(lost) != 1 || lost[0].Run.State != run.StateLost {
				t.Fatalf("Lose = %+v", lost)
			}
			w.plan(noon.Add(time.Minute))
			var got []string
			for _, r := range w.ledger.Runs {
				got = append(got, fmt.Sprintf("%s attempt %d of %s", r.Cause, r.Attempt, offset(r.ScheduledAt)))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// A second loss is not recovered again: once per occurrence.
			for i := range w.ledger.Runs {
				w.ledger.Runs[i].Node = "dead"
			}
			for _, s := range plan.Lose(w.ledger, all, jobOf, noon.Add(2*time.Minute), w.newID) {
				if !s.Final() {
					t.Errorf("recovered twice: %+v", s.Retry)
				}
			}
		})
	}
}

func TestHandBackKeepsIDAndAttempt(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *"))
	w.plan(noon)
	r := w.ledger.Runs[0]
	if plan.HandBack(w.ledger, r.ID, "somebody else") {
		t.Error("a node handed back a run that is not its own")
	}
	if !plan.HandBack(w.ledger, r.ID, "me") {
		t.Fatal("HandBack refused")
	}
	w.plan(noon.Add(time.Second))
	if got := w.ledger.Runs[0]; got.ID != r.ID || got.Attempt != 1 || !got.State.Claimed() {
		t.Errorf("after the hand-back %+v, want the same run claimed again", got)
	}
}

func TestReplaceCancelsThenStarts(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *", overlap(config.OverlapReplace, 0)))
	w.plan(noon)
	w.plan(noon.Add(time.Minute - 50*time.Millisecond))
	if w.ledger.Runs[0].Cancel {
		t.Error("canceled before the instant came")
	}
	w.plan(noon.Add(time.Minute))
	if len(w.ledger.Runs) != 1 || !w.ledger.Runs[0].Cancel {
		t.Fatalf("%+v, want the running one asked to end and nothing beside it", w.ledger.Runs)
	}
	w.settle(w.ledger.Runs[0].ID, run.Outcome{State: run.StateCanceled, EndedAt: noon.Add(61 * time.Second)}, config.Job{})
	w.plan(noon.Add(61 * time.Second))
	if diff := cmp.Diff([]string{"Pending 1m0s until 2m0s"}, story(w.ledger.Runs, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABrokenJobStopsNobodyElse(t *testing.T) { // R053, R171
	w := newWorld(t, noon, job("good", "* * * * *"), job("bad", "* * * * *"))
	w.catalog.Jobs["bad"].Versions[0].Definition = json.RawMessage(`{"name":"bad","triggers":[{"name":"default","schedule":"cron * * * * * tz=Gone/Zone"}]}`)
	w.plan(noon)
	if diff := cmp.Diff([]string{"Pending 0s until 1m0s"}, story(w.ledger.Runs, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := plan.Compile(w.catalog).Jobs["bad"].Err; err == nil {
		t.Error("the broken job carries no error")
	}
}
