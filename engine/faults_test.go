package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// plantRun puts a claimed run of a node into the ledger.
func plantRun(t *testing.T, store ledger.Store, r run.Run) {
	t.Helper()
	_, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Swap(t.Context(), func(l *state.Ledger) error {
		now := time.Now().UTC()
		r.Version, r.Cause, r.State, r.Attempt, r.ScheduledAt, r.DueAt, r.Term = 1, run.CauseSchedule, run.StatePending, 1, now, now, 1
		l.Runs = append(l.Runs, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestARestartInTheSamePodFindsItsPredecessorsRunsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		plantRun(t, store, run.Run{ID: "mine", Occurrence: "o1", Key: run.Key{Job: "a", Trigger: "default"}, Node: "old", Place: "pod-1"})
		plantRun(t, store, run.Run{ID: "theirs", Occurrence: "o2", Key: run.Key{Job: "b", Trigger: "default"}, Node: "other", Place: "pod-2"})
		n := start(t, store, "new", &app{}, func(o *engine.Options) { o.Place = "pod-1" })
		_, leave := n.lead()
		time.Sleep(time.Second)
		synctest.Wait()
		l := ledgerOf(t, store)
		if l.Run("mine") != nil {
			t.Error("the run of the process that was in this pod before is still open")
		}
		if l.Run("theirs") == nil {
			t.Error("the run of a process in another pod was declared lost without any silence")
		}
		leave()
		n.close()
	})
}

func TestSilenceAddsUpOverFlappingLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		plantRun(t, store, run.Run{ID: "lost", Occurrence: "o", Key: run.Key{Job: "slow", Trigger: "default"}, Node: "dead"})
		a, b := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		jobs := []config.Job{job("tick", "rate 1s")} // something that swaps
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		began := time.Now()
		for i := 0; ledgerOf(t, store).Run("lost") != nil; i++ {
			if time.Since(began) > 2*time.Minute {
				t.Fatal("no leader lives long enough to find the lost run, and none of them counts on")
			}
			_, leave := []*node{a, b}[i%2].lead()
			time.Sleep(10 * time.Second) // each leads for a third of the node timeout
			leave()
		}
		if took := time.Since(began); took < 29*time.Second || took > 50*time.Second {
			t.Errorf("found after %s, want about the node timeout of 30s", took)
		}
		a.close()
		b.close()
	})
}

func TestAnUnknownOutcomeWaitsForReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		a := &app{answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Retryable: true, Message: "no answer"}
		}}
		n := start(t, store, "a", a)
		n.engine.Define([]config.Job{job("careful", "rate 10s", func(j *config.Job) {
			j.Recovery, j.Retry = config.RecoveryReview, config.Retry{MaxRetries: 3, Delay: time.Second}
		})})
		_, leave := n.lead()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(a.Calls()); got != 1 {
			t.Errorf("%d calls while the outcome is not known, want 1: it counts as unfinished", got)
		}
		l := ledgerOf(t, store)
		if len(l.Runs) != 1 || l.Runs[0].State != run.StateNeedsReview {
			t.Fatalf("open runs %+v, want one that needs review", l.Runs)
		}
		id := l.Runs[0].ID
		if _, err := n.engine.Resolve(t.Context(), id, run.StateSucceeded, "checked by hand"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(a.Calls()); got != 2 {
			t.Errorf("%d calls after the review, want the next one", got)
		}
		var refused *run.Error
		if _, err := n.engine.Resolve(t.Context(), id, run.StateFailed, ""); !errors.As(err, &refused) || refused.Code != run.CodeRunNotFound {
			t.Errorf("resolving twice: %v, want %s", err, run.CodeRunNotFound)
		}
		leave()
		n.close()
	})
}

func TestALateResultIsANoteAndCancelsARecoveryNobodyTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a := start(t, store, "a", &app{work: 40 * time.Second})
		a.engine.Define([]config.Job{job("slow", "rate 1h", func(j *config.Job) {
			j.Timeout, j.Recovery = time.Hour, config.RecoveryRerun
		})})
		_, leave := a.lead()
		time.Sleep(time.Hour + time.Second)
		leave()
		// Some leader declares it lost although it lives, and enqueues the recovery.
		_, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Swap(t.Context(), func(l *state.Ledger) error {
			r := l.Runs[0]
			l.Remove(r.ID)
			r.State = run.StateLost
			l.Finished = append(l.Finished, r)
			again := r
			again.ID, again.Cause, again.State, again.Node, again.Attempt = "recovery", run.CauseRecovery, run.StateQueued, "", 2
			l.Runs = append(l.Runs, again)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		l := ledgerOf(t, store)
		if len(l.Runs) != 0 {
			t.Errorf("open runs %+v, want the recovery canceled: the work was done", l.Runs)
		}
		lost := 0
		for _, r := range l.Finished {
			if r.State == run.StateLost && strings.Contains(r.Message, "late result") {
				lost++
			}
			if r.State == run.StateSucceeded {
				t.Errorf("run %s came back to life: %+v", r.ID, r)
			}
		}
		if lost != 1 {
			t.Errorf("%d lost runs carry the note of their late success, want 1", lost)
		}
		a.close()
	})
}

func TestScopeInstanceNeedsNobody(t *testing.T) { // R127
	synctest.Test(t, func(t *testing.T) {
		var nodes []*node
		var leave []func()
		for _, name := range []string{"a", "b"} {
			n := start(t, ledger.NewMemory(), name, &app{}, func(o *engine.Options) { o.Instance = true })
			n.engine.Define([]config.Job{job("refresh", "rate 10s", func(j *config.Job) { j.Scope = config.ScopeInstance })})
			_, l := n.lead()
			nodes, leave = append(nodes, n), append(leave, l)
			time.Sleep(3 * time.Second) // the second joins later and is on the same grid
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		occurrences := map[string]bool{}
		for _, n := range nodes {
			calls := n.app.Calls()
			if len(calls) < 3 {
				t.Errorf("%d calls in 30 seconds of rate 10s", len(calls))
			}
			for _, c := range calls {
				if c.Run.ScheduledAt.Unix()%10 != 0 {
					t.Errorf("instant %s does not count from the Unix epoch", c.Run.ScheduledAt)
				}
				if c.FencingTerm != 0 {
					t.Errorf("fencing token %d in a run that no leader sends", c.FencingTerm)
				}
				if occurrences[c.Run.Occurrence] {
					t.Error("two instances share an occurrence")
				}
				occurrences[c.Run.Occurrence] = true
			}
		}
		for i, n := range nodes {
			leave[i]()
			n.close()
		}
	})
}

func TestDataThatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		n := start(t, store, "a", &app{work: time.Hour})
		n.engine.Define([]config.Job{job("by-hand", "manual", func(j *config.Job) { j.Timeout = 2 * time.Hour })})
		_, leave := n.lead()
		time.Sleep(time.Second)
		big := []byte(`{"a":"` + strings.Repeat("x", 200<<10) + `"}`)
		var full *run.Error
		accepted := 0
		for range 5 {
			_, err := n.engine.Enqueue(t.Context(), "by-hand", big)
			if errors.As(err, &full) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			accepted++
		}
		if accepted != 2 || full == nil || full.Code != run.CodeLedgerFull {
			t.Errorf("accepted %d of 200 KiB each, then %v; want 2 within 512 KiB, then %s", accepted, full, run.CodeLedgerFull)
		}
		if _, err := n.engine.Enqueue(t.Context(), "by-hand", []byte(`{"a":"`+strings.Repeat("x", 300<<10)+`"}`)); err == nil {
			t.Error("accepted 300 KiB for one run")
		}
		leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = n.engine.Drain(ctx)
		n.stop()
		n.awaitEnd()
	})
}

func TestALedgerThatIsFullForACrowdStillRunsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		n := start(t, store, "a", &app{work: 100 * time.Millisecond}, func(o *engine.Options) {
			o.Ledger = ledger.NewPort[state.Ledger](store, ledger.NameLedger, ledger.WithMaxBytes(48<<10)) // room for some 80 runs
		})
		var jobs []config.Job
		for i := range 300 {
			jobs = append(jobs, job(fmt.Sprintf("job-%03d", i), "30 * * * *"))
		}
		n.engine.Define(jobs)
		_, leave := n.lead()
		time.Sleep(35 * time.Minute)
		synctest.Wait()
		seen := map[string]int{}
		for _, c := range n.app.Calls() {
			seen[c.Run.Key.Job]++
		}
		if len(seen) != 300 {
			t.Errorf("%d of 300 jobs ran", len(seen))
		}
		for name, times := range seen {
			if times != 1 {
				t.Errorf("%s ran %d times", name, times)
			}
		}
		leave()
		n.close()
	})
}

func TestAClaimWhoseAnswerComesAfterTheTermIsHandedBack(t *testing.T) {
	for name, fault := range map[string]ledgertest.Fault{"the answer is late": ledgertest.Pass, "the answer is lost": ledgertest.DropAnswer} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				faults := ledgertest.NewFaults(shared)
				a, b := start(t, faults, "a", &app{}), start(t, shared, "b", &app{})
				jobs := []config.Job{job("tick", "rate 10s")}
				a.engine.Define(jobs)
				b.engine.Define(jobs)
				_, leave := a.lead()
				time.Sleep(9 * time.Second)
				faults.Delay(time.Second)
				faults.Script(fault)
				time.Sleep(980 * time.Millisecond) // the claim is stored and not answered
				if ledgerOf(t, shared).Claimed("a") != 1 {
					t.Fatal("nothing was claimed")
				}
				leave()
				faults.Delay(0)
				time.Sleep(5 * time.Second)
				_, leaveB := b.lead()
				time.Sleep(time.Second)
				synctest.Wait()
				if got := len(a.app.Calls()) + len(b.app.Calls()); got != 1 {
					t.Errorf("the instant was sent %d times, want once, by the new leader", got)
				}
				leaveB()
				a.close()
				b.close()
			})
		})
	}
}

func TestARefusedAttemptWhoseLeadershipEndsIsHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		a := &app{down: 8 * time.Second}
		n := start(t, store, "a", a)
		n.engine.Define([]config.Job{job("by-hand", "manual")})
		_, leave := n.lead()
		time.Sleep(time.Second)
		if _, err := n.engine.Enqueue(t.Context(), "by-hand", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		leave() // the app cannot be reached, so this node stops leading while the attempt still tries
		time.Sleep(time.Minute)
		l := ledgerOf(t, store)
		if len(l.Runs) != 1 || l.Runs[0].State != run.StateQueued {
			t.Fatalf("open runs %+v, want the one that was never sent waiting again", l.Runs)
		}
		_, leave = n.lead()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(a.Calls()); got != 1 {
			t.Errorf("%d calls, want 1 once somebody leads again", got)
		}
		leave()
		n.close()
	})
}

func TestTheDeadlineBoundsTheFirstAttemptToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{work: time.Hour, answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Retryable: true}
		}}
		n := start(t, ledger.NewMemory(), "a", a)
		n.engine.Define([]config.Job{job("a", "rate 1h", func(j *config.Job) { j.Timeout, j.Deadline = time.Minute, 2*time.Second })})
		_, leave := n.lead()
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if calls := a.Calls(); len(calls) != 1 || calls[0].Timeout != 2*time.Second {
			t.Errorf("calls %+v, want one with the deadline of 2s as its timeout", calls)
		}
		time.Sleep(time.Minute)
		leave()
		n.close()
	})
}
