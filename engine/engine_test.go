package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// app is a callback target without sockets: it takes each call, waits as long as the job's path
// says, and answers.
type app struct {
	mu     sync.Mutex
	calls  []call
	work   time.Duration // how long each call takes
	workOf func(a run.Attempt) time.Duration
	answer func(a run.Attempt) run.Outcome
	down   time.Duration // for how long the first call's connection is refused
	refuse atomic.Bool   // the process is dead: it sends nothing any more
}

type call struct {
	run.Attempt
	at time.Time
}

func (a *app) Invoke(ctx context.Context, at run.Attempt) run.Outcome {
	if err := at.MayStart(); err != nil || a.refuse.Load() {
		return run.Outcome{State: run.StateCanceled, NotSent: true, Refused: true, EndedAt: time.Now()}
	}
	if a.down > 0 { // nothing was written yet: it is asked again whether it still may be
		time.Sleep(a.down)
		a.down = 0
		if err := at.MayStart(); err != nil {
			return run.Outcome{State: run.StateCanceled, NotSent: true, Refused: true, EndedAt: time.Now()}
		}
	}
	start := time.Now()
	at.Started(start)
	a.mu.Lock()
	a.calls = append(a.calls, call{at, start})
	work, answer := a.work, a.answer
	if a.workOf != nil {
		work = a.workOf(at)
	}
	a.mu.Unlock()
	select {
	case <-time.After(min(work, at.Timeout)):
	case <-ctx.Done():
		return run.Outcome{State: run.StateCanceled, Code: run.CodeCanceled, StartedAt: start, EndedAt: time.Now()}
	}
	o := run.Outcome{State: run.StateSucceeded, Status: 200}
	if answer != nil {
		o = answer(at)
	}
	if o.EndedAt = time.Now(); !o.NotSent {
		o.StartedAt = start
	}
	return o
}

func (a *app) Calls() []call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// lease is a leadership that a test ends.
type lease struct {
	mu        sync.Mutex
	err       error
	resigned  error
	cancel    context.CancelCauseFunc
	annotated int64
}

func (l *lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
func (l *lease) AnnotatedTerm() int64 { return l.annotated }
func (l *lease) SetTerm(int64)        {}

func (l *lease) Resign(reason error) {
	l.mu.Lock()
	l.err, l.resigned = reason, reason
	l.mu.Unlock()
	l.cancel(reason)
}

// node is one sidecar's engine on shared documents.
type node struct {
	t      *testing.T
	store  ledger.Store
	engine *engine.Engine
	app    *app
	stop   context.CancelFunc
	ended  chan error
	// annotated is what the Leases of its terms name.
	annotated int64
}

func start(t *testing.T, store ledger.Store, name string, a *app, change ...func(*engine.Options)) *node {
	t.Helper()
	o := engine.Options{
		Namespace: "ns", App: "shop", Node: name, Invoker: a, Exclusive: store.Exclusive(),
		Ledger:  ledger.NewPort[state.Ledger](store, ledger.NameLedger),
		Catalog: ledger.NewPort[state.Catalog](store, ledger.NameCatalog),
		History: ledger.NewPort[state.History](store, ledger.NameHistory),
	}
	for _, c := range change {
		c(&o)
	}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{t: t, store: store, engine: e, app: a, stop: cancel, ended: make(chan error, 1)}
	go func() { n.ended <- e.Run(ctx) }()
	return n
}

// lead makes the node the leader until the returned function is called, which waits for the
// hand-over as the elector does.
func (n *node) lead() (l *lease, leave func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	l = &lease{cancel: cancel, annotated: n.annotated}
	done := make(chan error, 1)
	go func() { done <- n.engine.Lead(ctx, l) }()
	return l, func() {
		l.Resign(context.Canceled)
		if err := <-done; err == nil {
			n.t.Error("Lead() returned nil, want why the term ended")
		}
	}
}

// close ends the node as the wiring does.
func (n *node) close() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.engine.Drain(ctx); err != nil {
		n.t.Errorf("Drain() = %v", err)
	}
	n.stop()
	n.awaitEnd()
}

func (n *node) awaitEnd() {
	n.t.Helper()
	if err := <-n.ended; !errors.Is(err, context.Canceled) {
		n.t.Errorf("Run() = %v, want %v", err, context.Canceled)
	}
}

func job(name, text string, change ...func(*config.Job)) config.Job {
	s, err := schedule.Parse(text)
	if err != nil {
		panic(err)
	}
	j := config.Job{
		Name: name, Target: "http://127.0.0.1:8080", Path: "/" + name, Method: "POST", Timeout: 30 * time.Second,
		Overlap: config.OverlapSerial, Recovery: config.RecoveryNone, Scope: config.ScopeCluster, HistoryLimit: 20,
	}
	if s.Kind != schedule.KindManual {
		j.Triggers = []config.Trigger{{
			Name: "default", Schedule: s, Priority: 5,
			Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: time.Minute},
		}}
	}
	for _, c := range change {
		c(&j)
	}
	return j
}

func ledgerOf(t *testing.T, store ledger.Store) *state.Ledger {
	t.Helper()
	l, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestFiresEachInstantAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1s")})
		_, leave := n.lead()
		time.Sleep(3*time.Minute + 500*time.Millisecond)
		synctest.Wait()
		calls := n.app.Calls()
		if len(calls) != 180 {
			t.Errorf("%d calls in three minutes of rate 1s, want 180", len(calls))
		}
		for i, c := range calls {
			if late := c.at.Sub(c.Run.ScheduledAt); late < 0 || late > time.Millisecond {
				t.Errorf("call %d: %s late", i, late)
			}
			if i > 0 && !c.Run.ScheduledAt.Equal(calls[i-1].Run.ScheduledAt.Add(time.Second)) {
				t.Errorf("call %d is for %s, after %s", i, c.Run.ScheduledAt, calls[i-1].Run.ScheduledAt)
			}
		}
		leave()
		n.close()
	})
}

func TestTheTermEndsEverything(t *testing.T) { // R075
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1s")})
		_, leave := n.lead()
		time.Sleep(10*time.Second + 500*time.Millisecond)
		leave()
		before := len(n.app.Calls())
		time.Sleep(time.Minute)
		synctest.Wait()
		if after := len(n.app.Calls()); after != before {
			t.Errorf("%d calls after the term had ended", after-before)
		}
		n.close()
	})
}

func TestAnUnsentRunIsHandedBackAndSentByTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		jobs := []config.Job{job("tick", "rate 10s")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(9*time.Second + 980*time.Millisecond) // committed ahead, not due yet
		if got := ledgerOf(t, store).Claimed("a"); got != 1 {
			t.Fatalf("%d runs committed ahead, want 1", got)
		}
		leave()
		l := ledgerOf(t, store)
		if len(l.Runs) != 1 || l.Runs[0].State != run.StateQueued || l.Runs[0].Node != "" {
			t.Fatalf("after the hand-over %+v, want one Queued run of nobody", l.Runs)
		}
		id := l.Runs[0].ID
		_, leaveB := b.lead()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(a.app.Calls()); n != 0 {
			t.Errorf("the old leader sent %d", n)
		}
		calls := b.app.Calls()
		if len(calls) != 1 || calls[0].Run.ID != id || calls[0].Run.Attempt != 1 || calls[0].FencingTerm != 2 {
			t.Fatalf("new leader's calls %+v, want run %s, attempt 1, term 2", calls, id)
		}
		if late := calls[0].at.Sub(calls[0].Run.ScheduledAt); late > time.Millisecond {
			t.Errorf("%s late", late)
		}
		leaveB()
		a.close()
		b.close()
	})
}

func TestARunInFlightIsReportedAfterTheTerm(t *testing.T) { // R123
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{work: 20 * time.Second}), start(t, store, "b", &app{})
		jobs := []config.Job{job("slow", "rate 5s"), job("quick", "rate 5s")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		leave()
		_, leaveB := b.lead()
		time.Sleep(15 * time.Second)
		if got := len(b.app.Calls()); got != 0 {
			t.Errorf("%d runs started beside those of the old leader: serial forbids it", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		l := ledgerOf(t, store)
		for _, r := range l.Finished {
			if r.State != run.StateSucceeded {
				t.Errorf("%s ended as %s: %s", r.Key, r.State, r.Message)
			}
		}
		if got := len(b.app.Calls()); got == 0 {
			t.Error("the new leader started nothing after the old runs had ended")
		}
		leaveB()
		a.close()
		b.close()
	})
}

func TestRunsOfADeadNodeAreLostAfterItsSilence(t *testing.T) { // R103, R111, R115
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		recovered := job("rerun", "rate 1h", func(j *config.Job) { j.Recovery = config.RecoveryRerun })
		l := ledger.NewPort[state.Ledger](store, ledger.NameLedger)
		b := start(t, store, "b", &app{})
		b.engine.Define([]config.Job{recovered, job("none", "rate 1h")})
		_, leave := b.lead()
		time.Sleep(time.Second)
		_, err := l.Swap(t.Context(), func(l *state.Ledger) error {
			for i, name := range []string{"rerun", "none"} {
				l.Runs = append(l.Runs, run.Run{
					ID: fmt.Sprint("lost", i), Occurrence: fmt.Sprint("o", i), Key: run.Key{Job: name, Trigger: "default"}, Version: 1,
					Cause: run.CauseSchedule, State: run.StatePending, Node: "dead", Term: 1, Attempt: 1, ScheduledAt: time.Now().UTC(), DueAt: time.Now().UTC(),
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if n := len(b.app.Calls()); n != 0 {
			t.Fatalf("%d calls before the node timeout", n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		calls := b.app.Calls()
		if len(calls) != 1 || calls[0].Run.Key.Job != "rerun" || calls[0].Run.Cause != run.CauseRecovery || calls[0].Run.Attempt != 2 {
			t.Errorf("calls %+v, want one recovery of job rerun, attempt 2", calls)
		}
		leave()
		b.close()
	})
}

func TestALivingNodeIsNotLost(t *testing.T) { // R110
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{work: 10 * time.Minute}), start(t, store, "b", &app{})
		jobs := []config.Job{job("slow", "rate 5s", func(j *config.Job) { j.Timeout = time.Hour })}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(6 * time.Second)
		leave() // lost the lease, the app works on
		_, leaveB := b.lead()
		time.Sleep(9 * time.Minute)
		if n := len(b.app.Calls()); n != 0 {
			t.Errorf("%d calls although the old node still reports its run", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(b.app.Calls()); n == 0 {
			t.Error("nothing ran after the slow run had ended")
		}
		leaveB()
		a.close()
		b.close()
	})
}

func TestAFailedAttemptIsRetried(t *testing.T) { // R131
	synctest.Test(t, func(t *testing.T) {
		a := &app{answer: func(at run.Attempt) run.Outcome {
			if at.Run.Attempt < 3 {
				return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 503, Retryable: true}
			}
			return run.Outcome{State: run.StateSucceeded, Status: 200}
		}}
		n := start(t, ledger.NewMemory(), "a", a)
		n.engine.Define([]config.Job{job("flaky", "rate 1h", func(j *config.Job) {
			j.Retry = config.Retry{MaxRetries: 5, Delay: 10 * time.Second, Backoff: config.BackoffExponential}
		})})
		_, leave := n.lead()
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		calls := a.Calls()
		if len(calls) != 3 {
			t.Fatalf("%d attempts, want 3", len(calls))
		}
		for i, want := range []time.Duration{10 * time.Second, 20 * time.Second} {
			if gap := calls[i+1].at.Sub(calls[i].at).Round(10 * time.Millisecond); gap != want {
				t.Errorf("attempt %d came %s after the one before, want %s", i+2, gap, want)
			}
		}
		if calls[2].Run.Occurrence != calls[0].Run.Occurrence || calls[2].Run.RetryOf != calls[0].Run.ID {
			t.Errorf("the retry %+v does not belong to %+v", calls[2].Run, calls[0].Run)
		}
		leave()
		n.close()
	})
}

func TestAManualRun(t *testing.T) { // R152
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		leader, other := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		leader.engine.Define([]config.Job{job("by-hand", "manual", func(j *config.Job) { j.Data = json.RawMessage(`{"a":1,"b":9007199254740993}`) })})
		_, leave := leader.lead()
		time.Sleep(time.Second)
		r, err := other.engine.Enqueue(t.Context(), "by-hand", json.RawMessage(`{"a":2}`))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		calls := leader.app.Calls()
		if len(calls) != 1 || calls[0].Run.ID != r.ID || calls[0].Run.Cause != run.CauseManual || string(calls[0].Data) != `{"a":2,"b":9007199254740993}` {
			t.Errorf("calls %+v, want the one that a follower was asked for, with its data", calls)
		}
		if _, err := other.engine.Enqueue(t.Context(), "unknown", nil); !errors.Is(err, engine.ErrJobNotFound) {
			t.Errorf("Enqueue(unknown) = %v, want %v", err, engine.ErrJobNotFound)
		}
		leave()
		leader.close()
		other.close()
	})
}

func TestAnEditTakesEffectWithoutARestart(t *testing.T) { // R018, R175
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		n.engine.Define([]config.Job{job("old", "rate 10s")})
		_, leave := n.lead()
		time.Sleep(5 * time.Second)
		n.engine.Define([]config.Job{job("old", "rate 10s"), job("new", "rate 2s")})
		time.Sleep(5500 * time.Millisecond)
		n.engine.Define([]config.Job{job("old", "rate 10s")})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		count := map[string]int{}
		for _, c := range n.app.Calls() {
			count[c.Run.Key.Job]++
		}
		if count["old"] != 2 || count["new"] != 2 {
			t.Errorf("calls by job %v, want 2 of old on its unchanged grid and 2 of new in the five seconds that it existed", count)
		}
		leave()
		n.close()
	})
}

func TestDrainRecordsWhatTheGraceDoesNotCover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		n := start(t, store, "a", &app{work: time.Hour})
		n.engine.Define([]config.Job{job("endless", "rate 5s", func(j *config.Job) { j.Timeout = 2 * time.Hour })})
		_, leave := n.lead()
		time.Sleep(6 * time.Second)
		leave()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if err := n.engine.Drain(ctx); err != nil {
			t.Errorf("Drain() = %v", err)
		}
		l := ledgerOf(t, store)
		if len(l.Runs) != 0 || len(l.Finished) != 1 || l.Finished[0].State != run.StateLost {
			t.Errorf("open %v, finished %v; want the run recorded as Lost", l.Runs, l.Finished)
		}
		n.stop()
		n.awaitEnd()
	})
}

func TestALeaderThatFindsAnotherTermResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		jobs := []config.Job{job("tick", "rate 1s")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		first, leaveA := a.lead()
		time.Sleep(2500 * time.Millisecond)
		_, leaveB := b.lead() // both believe that they lead: the ledger decides
		time.Sleep(5 * time.Second)
		synctest.Wait()
		first.mu.Lock()
		resigned := first.resigned
		first.mu.Unlock()
		if !errors.Is(resigned, engine.ErrTermOver) {
			t.Errorf("the old leader resigned with %v, want %v", resigned, engine.ErrTermOver)
		}
		seen := map[string]bool{}
		for _, c := range append(a.app.Calls(), b.app.Calls()...) {
			id := fmt.Sprint(c.Run.Occurrence, c.Run.Attempt)
			if seen[id] {
				t.Errorf("attempt %d of %s at %s was started twice", c.Run.Attempt, c.Run.Key, c.Run.ScheduledAt)
			}
			seen[id] = true
		}
		if len(seen) != 7 {
			t.Errorf("%d instants ran, want 7", len(seen))
		}
		leaveA()
		leaveB()
		a.close()
		b.close()
	})
}

func TestHistoryKeepsWhatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1s", func(j *config.Job) { j.HistoryLimit = 7 })})
		_, leave := n.lead()
		time.Sleep(time.Minute + 500*time.Millisecond)
		synctest.Wait()
		runs, err := n.engine.Runs(t.Context(), "tick", 1000)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range runs {
			if seen[r.ID] {
				t.Errorf("run %s is listed twice", r.ID)
			}
			seen[r.ID] = true
		}
		if len(runs) < 7 || len(runs) > 7+11 {
			t.Errorf("%d runs kept, want the limit of 7 and what is not flushed yet", len(runs))
		}
		leave()
		n.close()
	})
}
