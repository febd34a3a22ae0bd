package engine_test

// Faults that users of other schedulers reported, by the number of the report. Where it says
// DESIGN, the report wanted something else and the test pins this project's rule.

import (
	"context"
	"fmt"
	"sync/atomic"
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

// stepped is a wall clock that a test sets.
type stepped struct{ offset atomic.Int64 }

func (s *stepped) now() time.Time       { return time.Now().Add(time.Duration(s.offset.Load())) }
func (s *stepped) step(d time.Duration) { s.offset.Add(int64(d)) }

func occurrences(t *testing.T, apps ...*app) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for _, a := range apps {
		for _, c := range a.Calls() {
			seen[fmt.Sprintf("%s %s attempt %d", c.Run.Key, c.Run.ScheduledAt.Format(time.RFC3339Nano), c.Run.Attempt)]++
		}
	}
	for what, n := range seen {
		if n > 1 {
			t.Errorf("%s was started %d times", what, n)
		}
	}
	return seen
}

func TestR008ClockJumpsForwardAnHour(t *testing.T) {
	for policy, want := range map[config.MisfirePolicy]int{config.MisfireRunOnce: 1, config.MisfireSkip: 0} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &stepped{}
				n := start(t, ledger.NewMemory(), "a", &app{}, func(o *engine.Options) { o.Now = clock.now })
				n.engine.Define([]config.Job{job("tick", "rate 5s", func(j *config.Job) { j.Triggers[0].Misfire.Policy = policy })})
				_, leave := n.lead()
				time.Sleep(31 * time.Second)
				before := len(n.app.Calls())
				clock.step(time.Hour)
				time.Sleep(59*time.Second + 900*time.Millisecond)
				synctest.Wait()
				// DESIGN: those within grace fire under skip; run-once coalesces all that is due.
				extra := len(n.app.Calls()) - before - 12
				if policy == config.MisfireSkip {
					want = 12
				}
				if extra < want-1 || extra > want+1 {
					t.Errorf("%d runs more than the regular ones after the jump, want %d", extra, want)
				}
				occurrences(t, n.app)
				leave()
				n.close()
			})
		})
	}
}

func TestR026AFreezeLongerThanThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledgertest.NewFaults(ledger.NewMemory())
		n := start(t, store, "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1s")})
		_, leave := n.lead()
		time.Sleep(5500 * time.Millisecond)
		store.Delay(3 * time.Second)
		time.Sleep(4 * time.Second)
		store.Delay(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(occurrences(t, n.app)); got < 68 {
			t.Errorf("%d instants ran in 69 seconds, want all: late within grace is not missed", got)
		}
		leave()
		n.close()
	})
}

func TestR029KilledBetweenStateAndSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		jobs := []config.Job{job("daily", "rate 1h")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, _ = a.lead()
		time.Sleep(time.Hour - 20*time.Millisecond) // committed ahead, not sent
		if ledgerOf(t, store).Claimed("a") != 1 {
			t.Fatal("nothing was committed ahead")
		}
		plantDeath(t, store) // what a kill leaves behind: a claim of a node that says nothing any more
		a.app.refuse.Store(true)
		_, leave := b.lead()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		all, err := b.engine.Runs(t.Context(), "daily", 100)
		if err != nil {
			t.Fatal(err)
		}
		records := 0
		for _, r := range all {
			if r.Key.Job == "daily" {
				records++
				if r.State != run.StateLost {
					t.Errorf("the instant ended as %s, want %s", r.State, run.StateLost)
				}
			}
		}
		if records != 1 {
			t.Errorf("%d records of the instant, want exactly one", records)
		}
		leave()
		b.close()
		a.stop()
		a.awaitEnd()
	})
}

// plantDeath gives the claims of node a to a node that does not exist.
func plantDeath(t *testing.T, store ledger.Store) {
	t.Helper()
	_, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Swap(t.Context(), func(l *state.Ledger) error {
		for i := range l.Runs {
			l.Runs[i].Node = "dead"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestR075ALostTermTakesTimersRetriesQueuedRunsAndRecoveriesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		fails := func(at run.Attempt) run.Outcome {
			if at.Run.Key.Job == "flaky" {
				return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 503, Retryable: true}
			}
			return run.Outcome{State: run.StateSucceeded}
		}
		a := &app{answer: fails, workOf: func(at run.Attempt) time.Duration {
			if at.Run.Key.Job == "slow" {
				return 20 * time.Second
			}
			return time.Millisecond
		}}
		n := start(t, store, "a", a, func(o *engine.Options) { o.MaxRuns = 2 })
		n.engine.Define([]config.Job{
			job("tick", "rate 1s"),
			job("flaky", "rate 15s", func(j *config.Job) { j.Retry = config.Retry{MaxRetries: 4, Delay: 3 * time.Second} }),
			job("slow", "rate 4s", func(j *config.Job) { j.Overlap, j.Timeout = config.OverlapParallel, time.Minute }), // fills both slots: the rest queues
			job("lost", "rate 1h", func(j *config.Job) { j.Recovery = config.RecoveryRerun }),
		})
		plantRun(t, store, run.Run{ID: "x", Occurrence: "o", Key: run.Key{Job: "lost", Trigger: "default"}, Node: "dead"})
		l, _ := n.lead()
		time.Sleep(24*time.Second + 500*time.Millisecond)
		if open := ledgerOf(t, store); len(open.Runs) < 4 {
			t.Errorf("only %d runs are open, so little is shown: %+v", len(open.Runs), open.Runs)
		}
		l.Resign(engine.ErrTermOver) // taken away: the process lives, and its app too
		lost := time.Now()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, c := range n.app.Calls() {
			if c.at.After(lost) {
				t.Errorf("%s, cause %s, attempt %d, was started %s after the term was lost", c.Run.Key, c.Run.Cause, c.Run.Attempt, c.at.Sub(lost))
			}
		}
		if claimed := ledgerOf(t, store).Claimed("a"); claimed != 0 {
			t.Errorf("%d runs are still given to the node that lost its term", claimed)
		}
		n.close()
	})
}

func TestR098R101ManyChangesOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		nodes := []*node{start(t, store, "a", &app{}), start(t, store, "b", &app{}), start(t, store, "c", &app{})}
		for _, n := range nodes {
			n.engine.Define([]config.Job{job("tick", "rate 10s"), job("hourly", "rate 1h")})
		}
		var first time.Time
		for i := range 130 { // more than an hour, another leader each half minute
			_, leave := nodes[i%3].lead()
			time.Sleep(30 * time.Second)
			leave()
		}
		synctest.Wait()
		seen := occurrences(t, nodes[0].app, nodes[1].app, nodes[2].app)
		ticks, hourly := 0, 0
		for _, n := range nodes {
			for _, c := range n.app.Calls() {
				switch c.Run.Key.Job {
				case "tick":
					ticks++
					if first.IsZero() {
						first = c.Run.ScheduledAt
					}
					if c.Run.ScheduledAt.Sub(first)%(10*time.Second) != 0 {
						t.Errorf("instant %s is off the grid", c.Run.ScheduledAt)
					}
				case "hourly":
					hourly++
				}
			}
		}
		if want := 130*3 - 1; ticks < want || hourly != 1 {
			t.Errorf("%d ticks and %d hourly runs (of %d), want %d and 1", ticks, hourly, len(seen), want)
		}
		for _, n := range nodes {
			n.close()
		}
	})
}

func TestR100AWeeklyIntervalAndDailyDeploys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a := &app{}
		for day := range 15 {
			n := start(t, store, fmt.Sprintf("pod-%d", day), a)
			n.engine.Define([]config.Job{job("weekly", "rate 168h")})
			_, leave := n.lead()
			time.Sleep(24 * time.Hour)
			leave()
			n.close()
		}
		if got := len(occurrences(t, a)); got != 2 {
			t.Errorf("%d runs in 15 days of rate 7d, want 2", got)
		}
	})
}

func TestR104ARecoveredRunCountsForOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "b", &app{work: 5 * time.Minute})
		n.engine.Define([]config.Job{job("a", "rate 1m", func(j *config.Job) {
			j.Overlap, j.Recovery, j.Timeout = config.OverlapSkip, config.RecoveryRerun, time.Hour
		})})
		plantRun(t, store, run.Run{ID: "x", Occurrence: "o", Key: run.Key{Job: "a", Trigger: "default"}, Node: "dead"})
		_, leave := n.lead()
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		calls := n.app.Calls()
		if len(calls) != 1 || calls[0].Run.Cause != run.CauseRecovery {
			t.Errorf("calls %+v, want the recovered run alone", calls)
		}
		skipped := 0
		history, err := ledger.NewPort[state.History](store, ledger.NameHistory).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range append(ledgerOf(t, store).Skipped, history.Jobs["a"].Skips...) {
			if s.Reason == run.ReasonOverlap {
				skipped += s.Count
			}
		}
		if skipped < 2 {
			t.Errorf("%d instants skipped for overlap, want those that came while it ran", skipped)
		}
		time.Sleep(5 * time.Minute)
		leave()
		n.close()
	})
}

func TestR107AnErrorAtEachStoreCall(t *testing.T) {
	for _, fault := range []ledgertest.Fault{ledgertest.DropRequest, ledgertest.DropAnswer, ledgertest.Refuse, ledgertest.Late, ledgertest.Hang} {
		for call := range 12 {
			t.Run(fmt.Sprintf("fault %d at call %d", fault, call), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := ledgertest.NewFaults(ledger.NewMemory())
					n := start(t, store, "a", &app{})
					n.engine.Define([]config.Job{job("tick", "rate 2s"), job("other", "every 3s")})
					script := make([]ledgertest.Fault, call+1)
					script[call] = fault
					store.Script(script...)
					l, leave := n.lead()
					time.Sleep(40 * time.Second)
					store.Land()
					time.Sleep(20 * time.Second)
					synctest.Wait()
					l.mu.Lock()
					resigned := l.resigned
					l.mu.Unlock()
					if resigned != nil {
						t.Errorf("one fault ended the term: %v", resigned)
					}
					count := map[string]int{}
					for _, c := range n.app.Calls() {
						if time.Since(c.at) < 15*time.Second {
							count[c.Run.Key.Job]++
						}
					}
					if count["tick"] < 6 || count["other"] < 3 {
						t.Errorf("in the last 15 seconds %v ran: a trigger stands still", count)
					}
					occurrences(t, n.app)
					leave()
					n.close()
				})
			})
		}
	}
}

func TestR114NoFurtherAttemptByAnOldLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		fails := func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 503, Retryable: true}
		}
		a, b := start(t, store, "a", &app{answer: fails}), start(t, store, "b", &app{answer: fails})
		jobs := []config.Job{job("flaky", "rate 1h", func(j *config.Job) { j.Retry = config.Retry{MaxRetries: 4, Delay: 30 * time.Second} })}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		l, _ := a.lead()
		time.Sleep(time.Hour + 10*time.Second) // the first attempt has failed, the retry waits
		l.mu.Lock()
		l.err = engine.ErrTermOver // frozen, in effect: nothing of it is valid any more
		l.mu.Unlock()
		_, leave := b.lead()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := len(a.app.Calls()); got != 1 {
			t.Errorf("the old leader made %d attempts, want the first alone", got)
		}
		if got := len(b.app.Calls()); got != 4 {
			t.Errorf("the new leader made %d attempts, want the 4 retries", got)
		}
		occurrences(t, a.app, b.app)
		leave()
		l.Resign(context.Canceled)
		a.close()
		b.close()
	})
}

func TestR118ASlowClockRunsNothingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		slow := &stepped{}
		slow.step(-3 * time.Second)
		a := start(t, store, "a", &app{work: 5 * time.Millisecond})
		b := start(t, store, "b", &app{work: 5 * time.Millisecond}, func(o *engine.Options) { o.Now = slow.now })
		jobs := []config.Job{job("tick", "rate 10s")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		for range 20 {
			_, leave := a.lead()
			time.Sleep(10*time.Second + 100*time.Millisecond)
			leave()
			_, leave = b.lead()
			time.Sleep(5 * time.Second)
			leave()
		}
		synctest.Wait()
		if got := len(occurrences(t, a.app, b.app)); got < 29 {
			t.Errorf("%d instants ran in five minutes of rate 10s", got)
		}
		a.close()
		b.close()
	})
}

func TestR146AnAttemptThatEndsBadlyBlocksNothing(t *testing.T) {
	endings := map[string]func(run.Attempt) run.Outcome{
		"lost connection": func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Unknown: true}
		},
		"canceled":  func(run.Attempt) run.Outcome { return run.Outcome{State: run.StateCanceled, Code: run.CodeCanceled} },
		"timed out": func(run.Attempt) run.Outcome { return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout} },
		"a panic":   func(run.Attempt) run.Outcome { panic("broken invoker") },
	}
	for name, answer := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, ledger.NewMemory(), "a", &app{answer: answer})
				n.engine.Define([]config.Job{job("a", "rate 10s"), job("b", "every 10s")})
				_, leave := n.lead()
				time.Sleep(time.Minute + time.Second)
				synctest.Wait()
				if got := len(occurrences(t, n.app)); got < 10 {
					t.Errorf("%d runs of two jobs in a minute: one that ends badly blocks the next", got)
				}
				leave()
				n.close()
			})
		})
	}
}

func TestR148R153SerialDoesNotPileUpOrSpin(t *testing.T) {
	for _, policy := range []config.Overlap{config.OverlapSerial, config.OverlapSkip} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledgertest.NewFaults(ledger.NewMemory())
				n := start(t, store, "a", &app{work: 10 * time.Second})
				n.engine.Define([]config.Job{job("slow", "rate 5s", func(j *config.Job) { j.Overlap = policy })})
				_, leave := n.lead()
				time.Sleep(time.Hour)
				synctest.Wait()
				l := ledgerOf(t, store)
				if len(l.Runs) > 1 {
					t.Errorf("%d runs are open after an hour, want at most 1", len(l.Runs))
				}
				if _, writes := store.Asked(); writes > 5*720 {
					t.Errorf("%d writes for 720 instants", writes)
				}
				// An instant at which the run before it ends may go either way.
				if runs := len(occurrences(t, n.app)); runs < 239 {
					t.Errorf("%d runs in an hour, want at least each third instant", runs)
				}
				leave()
				n.close()
			})
		})
	}
}

func TestR150AWedgedRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{work: 1000 * time.Hour, answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true}
		}})
		n.engine.Define([]config.Job{job("wedged", "rate 1m", func(j *config.Job) { j.Overlap = config.OverlapSkip })})
		_, leave := n.lead()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := len(n.app.Calls()); got < 9 {
			t.Errorf("%d attempts in ten minutes: the timeout did not free the job", got)
		}
		leave()
		n.close()
	})
}

func TestR164OneSlowJobHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{workOf: func(at run.Attempt) time.Duration {
			if at.Run.Key.Job == "slow" {
				return 15 * time.Minute
			}
			return 10 * time.Millisecond
		}}
		n := start(t, ledger.NewMemory(), "a", a, func(o *engine.Options) { o.MaxRuns = 60 })
		jobs := []config.Job{job("slow", "* * * * *", func(j *config.Job) { j.Timeout = time.Hour })}
		for i := range 50 {
			jobs = append(jobs, job(fmt.Sprintf("quick-%02d", i), "* * * * *"))
		}
		n.engine.Define(jobs)
		_, leave := n.lead()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		quick := 0
		for _, c := range n.app.Calls() {
			if c.Run.Key.Job == "slow" {
				continue
			}
			quick++
			if late := c.at.Sub(c.Run.ScheduledAt); late > time.Second {
				t.Errorf("%s started %s late behind the slow one", c.Run.Key, late)
			}
		}
		if quick < 450 {
			t.Errorf("%d runs of the quick jobs in ten minutes", quick)
		}
		time.Sleep(6 * time.Minute)
		leave()
		n.close()
	})
}
