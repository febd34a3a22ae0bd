package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

// R103: the next leader starts nothing that runs already, and hears of its end.
func TestR103AnAcceptedRunOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", accepts()), start(t, store, "b", accepts())
		j := asyncJob(func(j *config.Job) { j.Recovery = config.RecoveryRerun })
		b.engine.Define([]config.Job{j})
		id, leave := began(t, a, j)
		leave()
		_, leave = b.lead()
		time.Sleep(5 * time.Minute) // ten node timeouts
		synctest.Wait()
		if r := theRun(t, b); r.State != run.StateRunning || r.Node != "a" {
			t.Fatalf("under another leader the run is %s at %s, want it running at a", r.State, r.Node)
		}
		if r, err := a.engine.Complete(t.Context(), id, engine.Result{}); err != nil || r.State != run.StateSucceeded {
			t.Errorf("Complete() = %s, %v", r.State, err)
		}
		if got := len(a.app.Calls()) + len(b.app.Calls()); got != 1 {
			t.Errorf("%d calls, want 1", got)
		}
		time.Sleep(time.Second)
		if s := b.engine.Status(); len(s.Jobs) != 1 || s.Jobs[0].LastSuccess.IsZero() {
			t.Error("the leader does not know of the success that another node was told")
		}
		leave()
		a.close()
		b.close()
	})
}

func TestAnyReplicaIsToldTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", accepts()), start(t, store, "b", accepts())
		id, leave := began(t, a, asyncJob())
		if _, err := b.engine.Heartbeat(t.Context(), id, nil, ""); codeOf(err) != run.CodeNoScheduler || !strings.Contains(err.Error(), "a") {
			t.Errorf("a heartbeat at another node: %v, want %s that names the node", err, run.CodeNoScheduler)
		}
		r, err := b.engine.Complete(t.Context(), id, engine.Result{Message: "told b"})
		if err != nil || r.State != run.StateSucceeded || r.Node != "a" || r.FirstStartedAt.IsZero() {
			t.Fatalf("Complete() at another node = %+v, %v", r, err)
		}
		time.Sleep(11 * time.Second) // by the next word of its own it knows
		if s := a.engine.Status(); s.InFlight != 0 {
			t.Errorf("%d runs in flight at the node that sent it, want none", s.InFlight)
		}
		if _, err := a.engine.Heartbeat(t.Context(), id, nil, ""); codeOf(err) != run.CodeRunOver {
			t.Errorf("a heartbeat after that: %v, want %s", err, run.CodeRunOver)
		}
		for _, n := range []*node{a, b} {
			if again, err := n.engine.Complete(t.Context(), id, engine.Result{}); err != nil || again.Message != "told b" {
				t.Errorf("completing again at %s: %q, %v", n.engine.Status().Node, again.Message, err)
			}
		}
		leave()
		a.close()
		b.close()
	})
}

// The same at a node that only follows, which looks at the ledger when it has something to say.
func TestAFollowerLearnsThatItsRunHasEndedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", accepts()), start(t, store, "b", accepts())
		id, leave := began(t, a, asyncJob(func(j *config.Job) { j.Retry = config.Retry{MaxRetries: 1, Delay: time.Hour} }))
		leave()
		if _, err := b.engine.Complete(t.Context(), id, engine.Result{Failed: true, Message: "first"}); err != nil {
			t.Fatal(err)
		}
		// The word that comes to a before it knows counts for nothing, and takes no retry away.
		if _, err := a.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != run.CodeRunOver {
			t.Errorf("completing what has failed: %v, want %s", err, run.CodeRunOver)
		}
		l := ledgerOf(t, store)
		if len(l.Runs) != 1 || l.Runs[0].Attempt != 2 {
			t.Errorf("open runs %+v, want the retry", l.Runs)
		}
		if len(l.Finished) != 1 || l.Finished[0].Message != "first" {
			t.Errorf("ended runs %+v, want the first word alone", l.Finished)
		}
		a.close()
		b.close()
	})
}

func TestAWordIsQuickerThanTheNodeThatSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		var b *node
		slow := accepts()
		slow.work = 2 * time.Second
		a := start(t, store, "a", slow)
		b = start(t, store, "b", accepts())
		a.engine.Define([]config.Job{asyncJob()})
		_, leave := a.lead()
		time.Sleep(time.Hour + time.Second) // sent, not answered
		synctest.Wait()
		id := ledgerOf(t, store).Runs[0].ID
		r, err := b.engine.Complete(t.Context(), id, engine.Result{})
		if err != nil || r.State != run.StateSucceeded {
			t.Errorf("Complete() at another node before the 202 = %s, %v", r.State, err)
		}
		time.Sleep(time.Minute)
		if r := theRun(t, b); r.State != run.StateSucceeded {
			t.Errorf("the run is %s", r.State)
		}
		leave()
		a.close()
		b.close()
	})
}

func TestARestartInItsPodTakesOverWhatTheAppHasAccepted(t *testing.T) {
	for _, leads := range []bool{true, false} {
		t.Run(fmt.Sprintf("the successor leads %v", leads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				way := &mortal{Store: shared}
				app := accepts()
				app.workOf = func(at run.Attempt) time.Duration {
					if at.Run.Key.Job == "sync" {
						return time.Hour
					}
					return 0
				}
				first := start(t, way, "a-1", app, in("pod-a"))
				b := start(t, shared, "b", accepts(), in("pod-b"))
				j := asyncJob(func(j *config.Job) { j.Recovery, j.HeartbeatTimeout = config.RecoveryRerun, time.Minute })
				sync := job("sync", "rate 1h", func(j *config.Job) { j.Timeout = 2 * time.Minute })
				b.engine.Define([]config.Job{j, sync})
				first.engine.Define([]config.Job{j, sync})
				_, leave := first.lead()
				time.Sleep(time.Hour + time.Second)
				leave()
				id := ""
				for _, r := range ledgerOf(t, shared).Runs {
					if r.Async {
						id = r.ID
					}
				}
				if id == "" || len(ledgerOf(t, shared).Runs) != 2 {
					t.Fatalf("open runs %+v, want the accepted one and the other", ledgerOf(t, shared).Runs)
				}
				if !leads {
					_, leave = b.lead()
				}
				time.Sleep(30 * time.Second)
				first.kill(way)
				successor := accepts()
				second := start(t, shared, "a-2", successor, in("pod-a"))
				if leads {
					_, leave = second.lead()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				l := ledgerOf(t, shared)
				if r := l.Run(id); r == nil || r.Node != "a-2" || r.State != run.StateRunning || r.Term != 1 {
					t.Fatalf("the accepted run is %+v, want it with the successor", r)
				}
				if len(l.Runs) != 1 {
					t.Errorf("open runs %+v, want the one that was accepted: nobody gets the answer of the other", l.Runs)
				}
				time.Sleep(55 * time.Second) // silence counts anew
				if _, err := second.engine.Heartbeat(t.Context(), id, nil, ""); err != nil {
					t.Errorf("a heartbeat to the successor: %v", err)
				}
				time.Sleep(50 * time.Second)
				if r, err := second.engine.Complete(t.Context(), id, engine.Result{Message: "after all"}); err != nil || r.State != run.StateSucceeded {
					t.Errorf("Complete() at the successor = %s, %v", r.State, err)
				}
				if calls := len(successor.Calls()); calls != 0 {
					t.Errorf("%d further calls, want none", calls)
				}
				leave()
				second.close()
				b.close()
				first.awaitEnd()
			})
		})
	}
}

func TestTheTimeoutOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := ledger.NewSharedMemory()
		way := &mortal{Store: shared}
		first := start(t, way, "a-1", accepts(), in("pod-a"))
		_, leave := began(t, first, asyncJob())
		time.Sleep(5 * time.Minute)
		leave()
		first.kill(way)
		second := start(t, shared, "a-2", accepts(), in("pod-a"))
		time.Sleep(14*time.Minute + 58*time.Second)
		if r := theRun(t, second); r.State != run.StateRunning {
			t.Fatalf("before its timeout the run is %s", r.State)
		}
		time.Sleep(5 * time.Second)
		if r := theRun(t, second); r.State != run.StateFailed || r.Code != run.CodeTimeout {
			t.Errorf("20 minutes after its start the run is %s %s", r.State, r.Code)
		}
		second.close()
		first.awaitEnd()
	})
}

func TestAnAcceptedRunOfAnotherPodIsLostAndItsLateEndANote(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		t.Run(fmt.Sprintf("its record is in the history %v", flushed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				way := &mortal{Store: shared}
				a := start(t, way, "a", accepts(), in("pod-a"))
				j := asyncJob(func(j *config.Job) { j.Recovery = config.RecoveryRerun })
				id, leave := began(t, a, j)
				leave()
				a.kill(way)
				// The only slot is taken, so that the recovery waits.
				b := start(t, shared, "b", accepts(), in("pod-b"), func(o *engine.Options) { o.MaxRuns = 1 })
				b.engine.Define([]config.Job{j, job("busy", "manual", func(j *config.Job) { j.Async, j.Timeout = true, time.Hour })})
				_, leave = b.lead()
				time.Sleep(time.Second)
				if _, err := b.engine.Enqueue(t.Context(), "busy", nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(35 * time.Second)
				l := ledgerOf(t, shared)
				if l.Run(id) != nil || len(l.Runs) != 2 {
					t.Fatalf("after the node timeout the open runs are %+v, want the busy one and the recovery", l.Runs)
				}
				if flushed {
					time.Sleep(15 * time.Second)
					if l := ledgerOf(t, shared); len(l.Finished) != 0 {
						t.Fatalf("still in the ledger: %+v", l.Finished)
					}
				}
				for range 2 {
					if _, err := b.engine.Complete(t.Context(), id, engine.Result{Message: "all imported"}); codeOf(err) != run.CodeRunOver || !strings.Contains(err.Error(), "Lost") {
						t.Errorf("completing what is lost: %v, want %s that names the state", err, run.CodeRunOver)
					}
				}
				if flushed {
					time.Sleep(15 * time.Second)
				}
				var lost, canceled int
				runs, err := b.engine.Runs(t.Context(), "import", 10)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range runs {
					switch {
					case r.ID == id && r.State == run.StateLost && strings.Count(r.Message, "late result: Succeeded, all imported") == 1:
						lost++
					case r.Cause == run.CauseRecovery && r.State == run.StateCanceled:
						canceled++
					default:
						t.Errorf("run %+v", r)
					}
				}
				if lost != 1 || canceled != 1 {
					t.Errorf("%d lost runs with one note, %d canceled recoveries, want one of each", lost, canceled)
				}
				leave()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = b.engine.Drain(ctx)
				b.stop()
				b.awaitEnd()
				a.awaitEnd()
			})
		})
	}
}

func TestAStopLeavesAcceptedRunsToTheNextProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		first := start(t, store, "a-1", accepts(), in("pod-a"))
		id, leave := began(t, first, asyncJob(func(j *config.Job) { j.Recovery = config.RecoveryRerun }))
		leave()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		began := time.Now()
		if err := first.engine.Drain(ctx); err != nil {
			t.Errorf("Drain() = %v", err)
		}
		if took := time.Since(began); took < 24*time.Second || took > 27*time.Second {
			t.Errorf("drained in %s, want the grace to be given to the app", took)
		}
		time.Sleep(5 * time.Minute) // after a drain the process lives until it is told to end
		if _, err := first.engine.Heartbeat(t.Context(), id, nil, ""); err != nil {
			t.Errorf("a heartbeat to a drained sidecar: %v", err)
		}
		if r := ledgerOf(t, store).Run(id); r == nil || r.State != run.StateRunning {
			t.Fatalf("after the stop the run is %+v, want it open for whoever comes", r)
		}
		first.stop()
		first.awaitEnd()
		second := start(t, store, "a-2", accepts(), in("pod-a"))
		time.Sleep(time.Second)
		if r, err := second.engine.Complete(t.Context(), id, engine.Result{}); err != nil || r.State != run.StateSucceeded {
			t.Errorf("Complete() at the successor = %s, %v", r.State, err)
		}
		second.close()
	})
}

func TestAnAppThatIsGoneTakesWhatItAcceptedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewSharedMemory(), "a", accepts(), in("pod-a"))
		id, leave := began(t, n, asyncJob(func(j *config.Job) { j.Recovery = config.RecoveryRerun }))
		leave()
		if err := n.engine.Forsake(t.Context()); err != nil {
			t.Error(err)
		}
		l := ledgerOf(t, n.store)
		if l.Run(id) != nil || len(l.Runs) != 1 || l.Runs[0].Cause != run.CauseRecovery {
			t.Errorf("open runs %+v, want the recovery at once", l.Runs)
		}
		n.close()
	})
}

// DESIGN 5.17: the result is kept while the ledger is away, and written when it is back.
func TestTheEndIsKeptWhileTheLedgerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{Store: ledger.NewSharedMemory()}
		n := start(t, store, "a", accepts())
		id, leave := began(t, n, asyncJob())
		leave()
		store.dead.Store(true)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := n.engine.Complete(ctx, id, engine.Result{Message: "kept"})
			if err == nil || codeOf(err) != "" {
				t.Errorf("Complete() without a ledger = %v, want an error that leaves it open", err)
			}
			cancel()
		}
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{Failed: true}); codeOf(err) != run.CodeRunOver {
			t.Errorf("something else meanwhile: %v, want %s", err, run.CodeRunOver)
		}
		store.dead.Store(false)
		time.Sleep(10 * time.Second)
		if r := theRun(t, n); r.State != run.StateSucceeded || r.Message != "kept" {
			t.Errorf("the run is %s %q, want what was said while the ledger was away", r.State, r.Message)
		}
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); err != nil {
			t.Errorf("the same once more: %v", err)
		}
		n.close()
	})
}

// A mixed cluster: an older program leads, which has never heard of asynchronous runs. It takes the
// word of the node that has the run, and what it does not know survives its writes.
func TestAnOlderLeaderLeavesAcceptedRunsAlone(t *testing.T) {
	type older struct {
		ID         string    `json:"id"`
		Occurrence string    `json:"occurrence"`
		Key        run.Key   `json:"key"`
		State      run.State `json:"state"`
		Node       string    `json:"node,omitempty"`
		Term       int64     `json:"term,omitempty"`
		Beat       int64     `json:"beat,omitempty"`
		Silent     int64     `json:"silent,omitempty"`
	}
	type olderLedger struct {
		Term   int64   `json:"term"`
		Holder string  `json:"holder,omitempty"`
		Runs   []older `json:"runs,omitempty"`
	}
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", accepts())
		id, leave := began(t, n, asyncJob())
		seventy := 70
		if _, err := n.engine.Heartbeat(t.Context(), id, &seventy, "boxes"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		leave()
		old := ledger.NewPort[olderLedger](store, ledger.NameLedger)
		for range 3 {
			if _, err := old.Swap(t.Context(), func(l *olderLedger) error {
				l.Term, l.Holder = l.Term+1, "old"
				l.Runs[0].Silent += 1000
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		r := ledgerOf(t, store).Run(id)
		if !r.Async || r.Progress == nil || *r.Progress.Percent != 70 || r.Silent != 3000 {
			t.Errorf("after the writes of an older leader the run is %+v, want it as it was, but for the silence", r)
		}
		time.Sleep(time.Minute)
		if _, err := n.engine.Complete(t.Context(), id, engine.Result{}); err != nil {
			t.Error(err)
		}
		n.close()
	})
}

// Died between the 202 and its record: as if the callback were open.
func TestAnAcceptanceThatWasNotRecordedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := ledger.NewSharedMemory()
		way := &mortal{Store: shared}
		app := accepts()
		app.answer = func(run.Attempt) run.Outcome {
			way.dead.Store(true)
			return run.Outcome{State: run.StateSucceeded, Status: 202}
		}
		first := start(t, way, "a-1", app, in("pod-a"))
		first.engine.Define([]config.Job{asyncJob()})
		_, _ = first.lead()
		time.Sleep(time.Hour + time.Second)
		first.kill(way)
		second := start(t, shared, "a-2", accepts(), in("pod-a"))
		time.Sleep(time.Second)
		r := theRun(t, second)
		if r.State != run.StateLost {
			t.Errorf("the run is %s, want %s", r.State, run.StateLost)
		}
		if _, err := second.engine.Complete(t.Context(), r.ID, engine.Result{}); codeOf(err) != run.CodeRunOver {
			t.Errorf("its end comes late: %v, want %s", err, run.CodeRunOver)
		}
		second.close()
		first.awaitEnd()
	})
}

func TestALateEndResolvesWhatNeedsReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", accepts())
		id, leave := began(t, n, asyncJob(func(j *config.Job) { j.Recovery, j.Timeout = config.RecoveryReview, time.Minute }))
		time.Sleep(2 * time.Minute)
		if r := theRun(t, n); r.State != run.StateNeedsReview {
			t.Fatalf("after the timeout the run is %s, want %s", r.State, run.StateNeedsReview)
		}
		if _, err := n.engine.Heartbeat(t.Context(), id, nil, ""); codeOf(err) != run.CodeRunOver {
			t.Errorf("a heartbeat: %v, want %s", err, run.CodeRunOver)
		}
		if r, err := n.engine.Complete(t.Context(), id, engine.Result{Message: "it was done"}); err != nil || r.State != run.StateSucceeded {
			t.Errorf("Complete() = %s, %v, want it resolved", r.State, err)
		}
		leave()
		n.close()
	})
}

func TestAnInstancesOwnAsynchronousRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", accepts(), func(o *engine.Options) { o.Instance = true })
		n.engine.Define([]config.Job{job("import", "rate 1h", func(j *config.Job) {
			j.Scope, j.Async, j.Timeout = config.ScopeInstance, true, 20*time.Minute
		})})
		_, leave := n.lead()
		time.Sleep(time.Second)
		r := theRun(t, n)
		if _, err := n.engine.Heartbeat(t.Context(), r.ID, nil, ""); err != nil {
			t.Error(err)
		}
		if r, err := n.engine.Complete(t.Context(), r.ID, engine.Result{}); err != nil || r.State != run.StateSucceeded {
			t.Errorf("Complete() = %s, %v", r.State, err)
		}
		time.Sleep(time.Hour) // and what is open when its process goes is lost: nobody remembers it
		leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = n.engine.Drain(ctx)
		lost := 0
		for _, r := range ledgerOf(t, n.store).Finished {
			if r.State == run.StateLost {
				lost++
			}
		}
		if lost != 1 {
			t.Errorf("%d lost runs after the stop, want 1", lost)
		}
		n.stop()
		n.awaitEnd()
	})
}
