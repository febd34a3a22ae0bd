package engine_test

import (
	"errors"
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

// A node that lives says so three times in each node timeout. What leaders have not heard in between
// does not add up: it works on for as long as its job may.
func TestSilenceBetweenHeartbeatsDoesNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		short := func(o *engine.Options) { o.NodeTimeout = 12 * time.Second }
		a, b := start(t, store, "a", &app{workOf: func(a run.Attempt) time.Duration {
			if a.Run.Key.Job == "long" {
				return 50 * time.Second
			}
			return 0
		}}, short), start(t, store, "b", &app{}, short)
		jobs := []config.Job{job("long", "once 2000-01-01T00:00:10Z", func(j *config.Job) { j.Timeout, j.Recovery = 10*time.Minute, config.RecoveryRerun }), job("tick", "rate 1s")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(10*time.Second + 500*time.Millisecond)
		leave()
		_, leaveB := b.lead() // it swaps every second, and writes beside the run what it has not heard
		time.Sleep(2 * time.Minute)
		runs, err := b.engine.Runs(t.Context(), "long", 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != 1 || runs[0].State != run.StateSucceeded {
			t.Errorf("runs %+v, want one that succeeded", runs)
		}
		leaveB()
		a.close()
		b.close()
	})
}

func TestAJitteredRunIsNotSentBeforeItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		n.engine.Define([]config.Job{job("spread", "rate 30s jitter=20s")})
		_, leave := n.lead()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		calls := n.app.Calls()
		if len(calls) < 38 {
			t.Fatalf("%d calls in twenty minutes of rate 30s", len(calls))
		}
		var most time.Duration
		for _, c := range calls {
			delayed := c.at.Sub(c.Run.ScheduledAt)
			most = max(most, delayed)
			if delayed < 0 || delayed > 20*time.Second+time.Millisecond || c.at.Before(c.Run.DueAt) {
				t.Errorf("the run of %s, due %s, was sent %s", c.Run.ScheduledAt, c.Run.DueAt, c.at)
			}
		}
		if most < 10*time.Second {
			t.Errorf("no call came later than %s after its instant: where is the jitter?", most)
		}
		leave()
		n.close()
	})
}

func TestAnEditThatLeavesTheScheduleLeavesItsCourse(t *testing.T) {
	edits := func(text string) (was, is config.Job) {
		return job("a", text), job("a", text, func(j *config.Job) { j.Timeout = 10 * time.Second })
	}
	t.Run("a rate keeps its base", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := start(t, ledger.NewMemory(), "a", &app{})
			was, is := edits("rate 10s")
			n.engine.Define([]config.Job{was})
			_, leave := n.lead()
			time.Sleep(7 * time.Second)
			for range 5 { // more often than it is due
				n.engine.Define([]config.Job{is})
				was, is = is, was
				time.Sleep(7 * time.Second)
			}
			synctest.Wait()
			calls := n.app.Calls() // in 42 seconds
			if len(calls) != 4 {
				t.Errorf("%d calls in 42 seconds of rate 10s with an edit every 7, want 4", len(calls))
			}
			for i := 1; i < len(calls); i++ {
				if gap := calls[i].Run.ScheduledAt.Sub(calls[i-1].Run.ScheduledAt); gap != 10*time.Second {
					t.Errorf("instant %d comes %s after the one before, want 10s", i, gap)
				}
			}
			leave()
			n.close()
		})
	})
	t.Run("a limit keeps its count", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := start(t, ledger.NewMemory(), "a", &app{})
			was, is := edits("every 1s x5")
			n.engine.Define([]config.Job{was})
			_, leave := n.lead()
			time.Sleep(3*time.Second + 500*time.Millisecond)
			n.engine.Define([]config.Job{is})
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := len(n.app.Calls()); got != 5 {
				t.Errorf("%d calls over an edit that does not concern the schedule, want 5", got)
			}
			leave()
			n.close()
		})
	})
}

func TestARetryMayNotOverrunTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{work: time.Hour, answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Retryable: true}
		}}
		store := ledger.NewMemory()
		n := start(t, store, "a", a)
		n.engine.Define([]config.Job{job("a", "rate 1h", func(j *config.Job) {
			j.Timeout, j.Deadline, j.Retry = time.Minute, 90*time.Second, config.Retry{MaxRetries: 9, Delay: 5 * time.Second}
		})})
		_, leave := n.lead()
		time.Sleep(time.Hour + 10*time.Minute)
		synctest.Wait()
		calls := a.Calls()
		if len(calls) != 2 || calls[0].Timeout != time.Minute {
			t.Fatalf("calls %+v, want two, the first with its timeout of 1m", calls)
		}
		if ends := calls[1].at.Add(calls[1].Timeout).Sub(calls[0].at); ends > 90*time.Second || ends < 89*time.Second {
			t.Errorf("the retry may last until %s after the first start, want until the deadline of 1m30s", ends)
		}
		leave()
		n.close()
	})
}

func TestWithoutATrustedClockNothingIsDecided(t *testing.T) { // DESIGN 5.18
	synctest.Test(t, func(t *testing.T) {
		var doubtful atomic.Bool
		store := ledger.NewMemory()
		n := start(t, store, "a", &app{}, func(o *engine.Options) {
			o.ClockCheck = func() error {
				if doubtful.Load() {
					return errors.New("the clock is off by an hour")
				}
				return nil
			}
		})
		n.engine.Define([]config.Job{job("tick", "rate 1s"), job("long", "rate 10s")})
		_, leave := n.lead()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		doubtful.Store(true)
		calls, before := len(n.app.Calls()), ledgerOf(t, store)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		after := ledgerOf(t, store)
		if got := len(n.app.Calls()) - calls; got != 0 || !after.Watermark.Equal(before.Watermark) || len(after.Runs)+len(after.Skipped) != 0 {
			t.Errorf("%d calls, decided up to %s after %s, open %v, skipped %v; want nothing decided", got, after.Watermark, before.Watermark, after.Runs, after.Skipped)
		}
		doubtful.Store(false)
		time.Sleep(11 * time.Second)
		if got := len(n.app.Calls()) - calls; got < 30 {
			t.Errorf("%d calls after the clock was set right, want what was due meanwhile", got)
		}
		leave()
		n.close()
	})
}

func TestALeaderLeavesTheCatalogOfANewerTermAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1h")})
		l, leave := n.lead()
		time.Sleep(time.Second)
		// A successor has written the catalog; what it did to the ledger before this one has not seen yet.
		swap(t, store, ledger.NameCatalog, func(c *state.Catalog) { c.Term = 99 })
		n.engine.Define([]config.Job{job("tick", "rate 1s")})
		time.Sleep(time.Second)
		catalog, err := ledger.NewPort[state.Catalog](store, ledger.NameCatalog).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v := catalog.Jobs["tick"].Newest(); catalog.Term != 99 || v.Number != 1 {
			t.Errorf("the catalog is of term %d, the job in version %d; want both as the newer term left them", catalog.Term, v.Number)
		}
		l.mu.Lock()
		resigned := l.resigned
		l.mu.Unlock()
		if !errors.Is(resigned, engine.ErrTermOver) {
			t.Errorf("the leader resigned with %v, want %v", resigned, engine.ErrTermOver)
		}
		leave()
		n.close()
	})
}
