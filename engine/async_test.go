package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// mortal is the way of one process to the documents. It counts the ledger's writes, and ends with the
// process, or for a while.
type mortal struct {
	ledger.Store
	dead   atomic.Bool
	writes atomic.Int64
	stall  atomic.Int64 // how long each write of the ledger takes, in nanoseconds
}

var errCut = errors.New("cut off")

func (m *mortal) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	if m.dead.Load() {
		return nil, "", errCut
	}
	return m.Store.Load(ctx, name)
}

func (m *mortal) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	if m.dead.Load() {
		return "", errCut
	}
	if name == ledger.NameLedger {
		time.Sleep(time.Duration(m.stall.Load()))
		m.writes.Add(1)
	}
	return m.Store.Replace(ctx, name, from, data)
}

// kill ends a process as SIGKILL does: nothing that it does has an effect any more. The test waits for
// its end, since its goroutines end like those of others.
func (n *node) kill(m *mortal) {
	m.dead.Store(true)
	n.app.refuse.Store(true)
	n.stop()
}

// accepts is an app that answers 202 to everything.
func accepts() *app {
	return &app{answer: func(run.Attempt) run.Outcome {
		return run.Outcome{State: run.StateSucceeded, Status: 202, Message: "will do"}
	}}
}

func asyncJob(change ...func(*config.Job)) config.Job {
	return job("import", "rate 1h", append([]func(*config.Job){func(j *config.Job) { j.Async, j.Timeout = true, 20*time.Minute }}, change...)...)
}

func in(place string) func(*engine.Options) { return func(o *engine.Options) { o.Place = place } }

// theRun is the one run of which the ledger or the history has a record.
func theRun(t *testing.T, n *node) run.Run {
	t.Helper()
	runs, err := n.engine.Runs(t.Context(), "import", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Fatalf("%d runs, want 1: %+v", len(runs), runs)
	}
	return runs[0]
}

func codeOf(err error) run.Code {
	if coded, ok := errors.AsType[*run.Error](err); ok {
		return coded.Code
	}
	return ""
}

// began starts a leader, lets the job fire once and be accepted, and returns the run.
func began(t *testing.T, n *node, j config.Job) (id string, leave func()) {
	t.Helper()
	n.engine.Define([]config.Job{j})
	_, leave = n.lead()
	time.Sleep(time.Hour + time.Second)
	synctest.Wait()
	r := theRun(t, n)
	if r.State != run.StateRunning || !r.Async {
		t.Fatalf("after the 202 the run is %s, async %v, want a running asynchronous one", r.State, r.Async)
	}
	return r.ID, leave
}

// R132: what takes longer than a connection lives is answered 202 and ended later, once.
func TestR132AnAcceptedRunEndsWhenTheAppSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", accepts(), func(o *engine.Options) { o.MaxRuns = 1 })
		other := job("other", "rate 10m")
		n.engine.Define([]config.Job{other})
		id, leave := began(t, n, asyncJob())
		n.engine.Define([]config.Job{asyncJob(), other})
		time.Sleep(15 * time.Minute)
		if got := len(n.app.Calls()); got != 1 {
			t.Errorf("%d calls while the only slot is taken by the accepted run, want that one", got)
		}
		if s := n.engine.Status(); s.InFlight != 1 {
			t.Errorf("%d runs in flight, want 1", s.InFlight)
		}
		r, err := n.engine.Complete(t.Context(), id, engine.Result{Message: "42 files\nimported\x00"})
		if err != nil || r.State != run.StateSucceeded || r.Message != "42 files imported" {
			t.Fatalf("Complete() = %s %q, %v, want it succeeded with its message on one line", r.State, r.Message, err)
		}
		if l := ledgerOf(t, n.store); l.Run(id) != nil {
			t.Error("answered before it was in the ledger")
		}
		if took := r.EndedAt.Sub(r.FiredAt); took < 15*time.Minute || took > 16*time.Minute {
			t.Errorf("the run took %s, want the time until the app said so", took)
		}
		time.Sleep(time.Second)
		if got := len(n.app.Calls()); got != 2 {
			t.Errorf("%d calls after the slot was free, want the other job's too", got)
		}
		// The same again is the same, something else is a conflict that names the state.
		again, err := n.engine.Complete(t.Context(), id, engine.Result{Message: "again"})
		if err != nil || again.Message != r.Message || !again.EndedAt.Equal(r.EndedAt) {
			t.Errorf("completing again: %q, %v, want the first answer", again.Message, err)
		}
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{Failed: true}); codeOf(err) != run.CodeRunOver || !strings.Contains(err.Error(), "Succeeded") {
			t.Errorf("failing what is completed: %v, want %s that names the state", err, run.CodeRunOver)
		}
		if _, err := n.engine.Heartbeat(t.Context(), id, nil, ""); codeOf(err) != run.CodeRunOver {
			t.Errorf("a heartbeat of what is completed: %v, want %s", err, run.CodeRunOver)
		}
		leave()
		n.close()
	})
}

func TestWhatTheFirstAnswerMeans(t *testing.T) {
	tests := map[string]struct {
		async  bool
		status int
		want   run.State
	}{
		"202 of a job that is not async is done": {false, 202, run.StateSucceeded},
		"200 of an async job is done":            {true, 200, run.StateSucceeded},
		"204 of an async job is done":            {true, 204, run.StateSucceeded},
		"202 of an async job is accepted":        {true, 202, run.StateRunning},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, ledger.NewMemory(), "a", &app{answer: func(run.Attempt) run.Outcome {
					return run.Outcome{State: run.StateSucceeded, Status: tt.status}
				}})
				n.engine.Define([]config.Job{asyncJob(func(j *config.Job) { j.Async = tt.async })})
				_, leave := n.lead()
				time.Sleep(time.Hour + time.Second)
				synctest.Wait()
				if r := theRun(t, n); r.State != tt.want {
					t.Errorf("the run is %s, want %s", r.State, tt.want)
				}
				leave()
				n.engine.Define(nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := n.engine.Drain(ctx); err != nil {
					t.Error(err)
				}
				n.stop()
				n.awaitEnd()
			})
		})
	}
}

// The app may be quicker with its word than with its answer, and its word is what counts.
func TestACompletionThatOvertakesTheAnswer(t *testing.T) {
	for _, answer := range []int{200, 202, 500} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n *node
				a := &app{answer: func(at run.Attempt) run.Outcome {
					r, err := n.engine.Complete(t.Context(), at.Run.ID, engine.Result{Message: "done already"})
					if err != nil || r.State != run.StateSucceeded || !r.Async {
						t.Errorf("Complete() before the answer = %s, %v", r.State, err)
					}
					if answer == 500 {
						return run.Outcome{State: run.StateFailed, Status: 500, Retryable: true, Code: run.CodeFailed}
					}
					return run.Outcome{State: run.StateSucceeded, Status: answer}
				}}
				n = start(t, ledger.NewMemory(), "a", a)
				n.engine.Define([]config.Job{asyncJob(func(j *config.Job) { j.Retry = config.Retry{MaxRetries: 3, Delay: time.Second} })})
				_, leave := n.lead()
				time.Sleep(time.Hour + time.Minute)
				synctest.Wait()
				if r := theRun(t, n); r.State != run.StateSucceeded || r.Message != "done already" {
					t.Errorf("the run is %s %q, want what the app said first", r.State, r.Message)
				}
				if got := len(a.Calls()); got != 1 {
					t.Errorf("%d calls, want 1", got)
				}
				leave()
				n.close()
			})
		})
	}
}

func TestTheTimeoutOfAnAcceptedRunCountsFromItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := accepts()
		a.work = 10 * time.Second // before it accepts
		n := start(t, ledger.NewMemory(), "a", a)
		n.engine.Define([]config.Job{asyncJob(func(j *config.Job) { j.Timeout = time.Minute })})
		_, leave := n.lead()
		time.Sleep(time.Hour + 59*time.Second)
		synctest.Wait()
		if r := theRun(t, n); r.State != run.StateRunning {
			t.Fatalf("before the timeout the run is %s", r.State)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r := theRun(t, n)
		if r.State != run.StateFailed || r.Code != run.CodeTimeout || !r.Unknown || r.EndedAt.Sub(r.FiredAt) != time.Minute {
			t.Errorf("the run is %s, %s, unknown %v after %s, want it timed out after a minute, outcome unknown", r.State, r.Code, r.Unknown, r.EndedAt.Sub(r.FiredAt))
		}
		// Its late success is a note, each time it is told.
		for range 2 {
			if _, err := n.engine.Complete(t.Context(), r.ID, engine.Result{Message: "at last"}); codeOf(err) != run.CodeRunOver {
				t.Errorf("completing what has timed out: %v, want %s", err, run.CodeRunOver)
			}
		}
		if r := theRun(t, n); r.State != run.StateFailed || strings.Count(r.Message, "late result: Succeeded, at last") != 1 {
			t.Errorf("the run is %s %q, want it failed with one note of the late result", r.State, r.Message)
		}
		leave()
		n.close()
	})
}

func TestALateSuccessSparesTheRetryThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", accepts())
		id, leave := began(t, n, asyncJob(func(j *config.Job) {
			j.Timeout, j.Retry = time.Minute, config.Retry{MaxRetries: 3, Delay: 5 * time.Minute}
		}))
		time.Sleep(2 * time.Minute)
		if l := ledgerOf(t, n.store); len(l.Runs) != 1 || l.Runs[0].Attempt != 2 {
			t.Fatalf("open runs %+v, want the retry of what timed out", l.Runs)
		}
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{Failed: true}); codeOf(err) != run.CodeRunOver {
			t.Errorf("a late failure: %v, want %s", err, run.CodeRunOver)
		}
		if l := ledgerOf(t, n.store); len(l.Runs) != 1 {
			t.Error("a late failure has taken the retry away")
		}
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != run.CodeRunOver {
			t.Errorf("a late success: %v, want %s", err, run.CodeRunOver)
		}
		time.Sleep(10 * time.Minute)
		if l := ledgerOf(t, n.store); len(l.Runs) != 0 || len(n.app.Calls()) != 1 {
			t.Errorf("%d calls, open runs %+v, want no other attempt at work that is done", len(n.app.Calls()), l.Runs)
		}
		leave()
		n.close()
	})
}

// The word of an app on a run that has ended before it was accepted is taken for late, not for uncalled-for,
// also when the version that made the job asynchronous is gone, or the whole job.
func TestALateSuccessOfAVersionThatIsGone(t *testing.T) {
	for name, leaves := range map[string]bool{"the job is synchronous now": false, "the job has left": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, ledger.NewMemory(), "a", &app{answer: func(run.Attempt) run.Outcome {
					return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Message: "no answer"}
				}})
				n.engine.Define([]config.Job{asyncJob()})
				_, leave := n.lead()
				time.Sleep(time.Hour + time.Minute)
				ended := theRun(t, n)
				if ended.State != run.StateFailed || ended.Async {
					t.Fatalf("the run is %s, async %v, want one that failed before it was accepted", ended.State, ended.Async)
				}
				swap(t, n.store, ledger.NameCatalog, func(c *state.Catalog) {
					if leaves {
						delete(c.Jobs, "import")
						return
					}
					v := &c.Jobs["import"].Versions[0]
					v.Number, v.Definition = 2, bytes.Replace(v.Definition, []byte(`"async":true`), []byte(`"async":false`), 1)
				})
				if _, err := n.engine.Complete(t.Context(), ended.ID, engine.Result{}); codeOf(err) != run.CodeRunOver {
					t.Errorf("Complete() = %v, want %s", err, run.CodeRunOver)
				}
				if r := theRun(t, n); !strings.Contains(r.Message, "late result: Succeeded") {
					t.Errorf("the run's message is %q, want the late success noted", r.Message)
				}
				leave()
				n.close()
			})
		})
	}
}

// R150: a wedged run ends.
func TestR150SilenceEndsAnAcceptedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", accepts())
		id, leave := began(t, n, asyncJob(func(j *config.Job) { j.HeartbeatTimeout = 30 * time.Second }))
		for i := range 20 {
			alive, err := n.engine.Heartbeat(t.Context(), id, nil, "")
			if err != nil {
				t.Fatalf("heartbeat %d: %v", i, err)
			}
			if left := time.Until(alive.NextBefore); left < 29*time.Second || left > 31*time.Second {
				t.Fatalf("the next heartbeat is wanted in %s, want 30s", left)
			}
			time.Sleep(20 * time.Second)
		}
		time.Sleep(9 * time.Second)
		if r := theRun(t, n); r.State != run.StateRunning {
			t.Fatalf("the run is %s before its silence was too long", r.State)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := theRun(t, n); r.State != run.StateFailed || r.Code != run.CodeTimeout || !r.Unknown || !strings.Contains(r.Message, "no heartbeat for 30s") {
			t.Errorf("the run is %s, %s, %q, want it ended by its silence", r.State, r.Code, r.Message)
		}
		leave()
		n.close()
	})
}

// A process that stood still has not listened: that is no silence of the app's.
func TestSilenceWhileTheSidecarStandsStillIsForgivenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{Store: ledger.NewSharedMemory()}
		n := start(t, store, "a", accepts(), func(o *engine.Options) { o.NodeTimeout = time.Hour })
		id, leave := began(t, n, asyncJob(func(j *config.Job) { j.HeartbeatTimeout = 5 * time.Second }))
		store.stall.Store(int64(9 * time.Second))
		if _, err := n.engine.Heartbeat(t.Context(), id, nil, "last words"); err != nil {
			t.Fatal(err)
		}
		n.engine.Define([]config.Job{asyncJob(), job("other", "rate 1h")}) // something to write
		time.Sleep(8 * time.Second)
		store.stall.Store(0)
		time.Sleep(3 * time.Second)
		if r := theRun(t, n); r.State != run.StateRunning {
			t.Errorf("the run is %s: its silence was counted while nobody listened", r.State)
		}
		time.Sleep(6 * time.Second)
		if r := theRun(t, n); r.State != run.StateFailed {
			t.Errorf("the run is %s, want it ended by a silence that was listened to", r.State)
		}
		leave()
		n.close()
	})
}

// DESIGN 5.9: what happens together is written together.
func TestManyEndsAreFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{Store: ledger.NewSharedMemory()}
		n := start(t, store, "a", accepts(), func(o *engine.Options) { o.MaxRuns = 100 })
		n.engine.Define([]config.Job{asyncJob(func(j *config.Job) { j.Triggers, j.Overlap = nil, config.OverlapParallel })})
		_, leave := n.lead()
		time.Sleep(time.Second)
		var ids []string
		for range 100 {
			r, err := n.engine.Enqueue(t.Context(), "import", nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		time.Sleep(10 * time.Second)
		store.stall.Store(int64(20 * time.Millisecond)) // as the API server takes
		before := store.writes.Load()
		var group sync.WaitGroup
		for _, id := range ids {
			group.Go(func() {
				if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if wrote := store.writes.Load() - before; wrote > 4 {
			t.Errorf("%d writes for a hundred runs that end at once, want a few", wrote)
		}
		store.stall.Store(0)
		leave()
		n.close()
	})
}

func TestHeartbeatsCostNoWrites(t *testing.T) {
	for _, follows := range []bool{false, true} {
		t.Run(fmt.Sprintf("the node follows %v", follows), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &mortal{Store: ledger.NewSharedMemory()}
				n := start(t, store, "a", accepts())
				id, leave := began(t, n, asyncJob())
				if follows {
					leave()
				}
				time.Sleep(time.Minute)
				before := store.writes.Load()
				for i := range 600 {
					percent := i / 6
					if _, err := n.engine.Heartbeat(t.Context(), id, &percent, strings.Repeat("x", 1000)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if wrote := store.writes.Load() - before; wrote < 5 || wrote > 8 {
					t.Errorf("%d writes of the ledger for 600 heartbeats in a minute, want one every third of the node timeout", wrote)
				}
				p := ledgerOf(t, store).Run(id).Progress
				if p == nil || p.Percent == nil || *p.Percent < 80 || len(p.Text) != run.MaxProgressText {
					t.Errorf("the ledger shows %+v, want about what the app last said, 256 bytes of it", p)
				}
				if p := theRun(t, n).Progress; p == nil || *p.Percent != 99 {
					t.Errorf("the sidecar itself shows %+v, want the last word", p)
				}
				r, err := n.engine.Complete(t.Context(), id, engine.Result{})
				if err != nil || *r.Progress.Percent != 99 {
					t.Errorf("Complete() = %+v, %v, want the last word on its progress kept", r.Progress, err)
				}
				if !follows {
					leave()
				}
				n.close()
			})
		})
	}
}

func TestHowAnAppFailsARun(t *testing.T) {
	retry := config.Retry{MaxRetries: 2, Delay: 5 * time.Second, Statuses: []int{503}}
	tests := map[string]struct {
		result engine.Result
		after  time.Duration // of the retry; 0: none
	}{
		"is retried, whatever statuses are": {engine.Result{Failed: true, Message: "locked", Code: "LOCKED"}, 5 * time.Second},
		"no sooner than it says":            {engine.Result{Failed: true, Code: "LOCKED", Message: "locked", RetryAfter: time.Minute}, time.Minute},
		"for good":                          {engine.Result{Failed: true, Code: "LOCKED", Message: "locked", Final: true}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, ledger.NewMemory(), "a", accepts())
				id, leave := began(t, n, asyncJob(func(j *config.Job) { j.Retry = retry }))
				r, err := n.engine.Complete(t.Context(), id, tt.result)
				if err != nil || r.State != run.StateFailed || r.Code != run.CodeFailed || r.AppCode != "LOCKED" || r.Message != "locked" || r.Unknown {
					t.Fatalf("fail = %+v, %v", r, err)
				}
				again := ledgerOf(t, n.store).Runs
				switch {
				case tt.after == 0 && len(again) > 0:
					t.Errorf("retried: %+v", again)
				case tt.after > 0 && (len(again) != 1 || again[0].Attempt != 2 || again[0].DueAt.Sub(r.EndedAt) != tt.after):
					t.Errorf("open runs %+v, want the second attempt after %s", again, tt.after)
				}
				if same, err := n.engine.Complete(t.Context(), id, engine.Result{Failed: true}); err != nil || same.Message != "locked" {
					t.Errorf("failing again: %q, %v, want the first answer", same.Message, err)
				}
				if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != run.CodeRunOver {
					t.Errorf("completing what has failed: %v, want %s", err, run.CodeRunOver)
				}
				if tt.after > 0 && len(ledgerOf(t, n.store).Runs) != 1 {
					t.Error("the retry is gone after a word that did not count")
				}
				leave()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = n.engine.Drain(ctx)
				n.stop()
				n.awaitEnd()
			})
		})
	}
}

func TestAReplacedRunIsOverForItsApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", accepts())
		id, leave := began(t, n, asyncJob(func(j *config.Job) { j.Overlap, j.Timeout = config.OverlapReplace, 3*time.Hour }))
		if _, err := n.engine.Heartbeat(t.Context(), id, nil, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the next one is due
		synctest.Wait()
		if _, err := n.engine.Heartbeat(t.Context(), id, nil, ""); codeOf(err) != run.CodeRunOver || !strings.Contains(err.Error(), "Canceled") {
			t.Errorf("a heartbeat of what was replaced: %v, want %s that names the state", err, run.CodeRunOver)
		}
		if got := len(n.app.Calls()); got != 2 {
			t.Errorf("%d calls, want the next one to have begun", got)
		}
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != run.CodeRunOver {
			t.Errorf("completing what was replaced: %v, want %s", err, run.CodeRunOver)
		}
		for _, r := range ledgerOf(t, n.store).Runs {
			if _, err := n.engine.Complete(t.Context(), r.ID, engine.Result{}); err != nil {
				t.Error(err)
			}
		}
		leave()
		n.close()
	})
}

func TestWhatIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{work: time.Minute})
		n.engine.Define([]config.Job{job("import", "rate 1h", func(j *config.Job) { j.Timeout = 5 * time.Minute })})
		_, leave := n.lead()
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		id := theRun(t, n).ID
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != run.CodeRunNotAwaited {
			t.Errorf("completing a run that is not async: %v, want %s", err, run.CodeRunNotAwaited)
		}
		// A heartbeat is harmless, and shows how far the work is.
		fifty := 50
		if alive, err := n.engine.Heartbeat(t.Context(), id, &fifty, "half"); err != nil || !alive.NextBefore.IsZero() {
			t.Errorf("a heartbeat of a run that is not async: %+v, %v", alive, err)
		}
		if p := theRun(t, n).Progress; p == nil || *p.Percent != 50 || p.Text != "half" {
			t.Errorf("progress %+v, want 50, half", p)
		}
		time.Sleep(2 * time.Minute)
		if r := theRun(t, n); r.State != run.StateSucceeded || r.Async {
			t.Errorf("the run is %s, async %v", r.State, r.Async)
		}
		for _, id := range []string{id, "nobody"} {
			want := map[string]run.Code{"nobody": run.CodeRunNotFound}[id]
			if want == "" {
				want = run.CodeRunNotAwaited
			}
			if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != want {
				t.Errorf("completing %s: %v, want %s", id, err, want)
			}
		}
		if _, err := n.engine.Heartbeat(t.Context(), "nobody", nil, ""); codeOf(err) != run.CodeRunNotFound {
			t.Errorf("a heartbeat of no run: %v, want %s", err, run.CodeRunNotFound)
		}
		queued, err := n.engine.Enqueue(t.Context(), "import", nil)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		if _, err := n.engine.Complete(t.Context(), queued.ID, engine.Result{}); codeOf(err) != run.CodeRunNotAwaited {
			t.Errorf("completing what waits: %v, want %s", err, run.CodeRunNotAwaited)
		}
		n.close()
	})
}
