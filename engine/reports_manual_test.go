package engine_test

// Reports on runs by hand, one-shots and overlap.

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// R003: nothing is dropped beyond a count; limit is a rate (DESIGN), and window bounds by age.
func TestR003CatchUpDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		jobs := []config.Job{job("minutely", "* * * * *", func(j *config.Job) {
			j.Overlap = config.OverlapParallel
			j.Triggers[0].Misfire = config.Misfire{Policy: config.MisfireCatchUp, Grace: time.Minute, Limit: 100, Window: 24 * time.Hour}
		})}
		leadFor(t, store, &app{}, jobs, 30*time.Second)
		time.Sleep(300 * time.Minute)
		second := start(t, store, "b", &app{})
		second.engine.Define(jobs)
		_, leave := second.lead()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := len(occurrences(t, second.app)); got != 300 {
			t.Errorf("%d of 300 missed instants ran", got)
		}
		leave()
		second.close()
	})
}

// R014: one run for all; DESIGN: it is called after the first missed instant and says what it covers.
// R028: whatever happened before.
func TestR014OneRunForAMissedNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		jobs := []config.Job{job("hourly", "rate 1h")}
		leadFor(t, store, &app{}, jobs, time.Minute)
		began := time.Now()
		time.Sleep(8*time.Hour + 30*time.Minute)
		second := start(t, store, "b", &app{})
		second.engine.Define(jobs)
		_, leave := second.lead()
		time.Sleep(time.Second)
		synctest.Wait()
		calls := second.app.Calls()
		if len(calls) != 1 || calls[0].Run.Coalesced != 8 ||
			calls[0].Run.ScheduledAt.Sub(began).Round(time.Hour) != time.Hour || calls[0].Run.CoveredUntil.Sub(began).Round(time.Hour) != 9*time.Hour {
			t.Errorf("calls %+v, want one that covers the eight instants", calls)
		}
		leave()
		second.close()
	})
}

// R017: an instant that is passed over is an event, of which the metric, the log line and the
// Kubernetes Event are made.
func TestR017AMissIsLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		var seen events
		jobs := []config.Job{job("hourly", "rate 1h", func(j *config.Job) { j.Triggers[0].Misfire.Policy = config.MisfireSkip })}
		leadFor(t, store, &app{}, jobs, time.Minute)
		time.Sleep(time.Hour + 10*time.Minute)
		second := start(t, store, "b", &app{}, func(o *engine.Options) { o.Observer = &seen })
		second.engine.Define(jobs)
		_, leave := second.lead()
		time.Sleep(time.Second)
		synctest.Wait()
		missed := 0
		for _, e := range seen.all() {
			if m, ok := e.(engine.Missed); ok && m.Reason == run.ReasonMisfire && m.Key.Job == "hourly" {
				missed += m.Count
			}
		}
		if missed != 1 {
			t.Errorf("%d instants were said to be missed, want 1", missed)
		}
		leave()
		second.close()
	})
}

// R147: overlap is each job's own.
func TestR147OverlapIsPerJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{work: 50 * time.Second})
		skip := func(j *config.Job) { j.Overlap, j.Timeout = config.OverlapSkip, time.Hour }
		n.engine.Define([]config.Job{job("a", "* * * * *", skip), job("b", "* * * * *", skip)})
		_, leave := n.lead()
		time.Sleep(5*time.Minute + 30*time.Second)
		synctest.Wait()
		if a, b := callsOf("a", n.app), callsOf("b", n.app); a < 5 || b != a {
			t.Errorf("a ran %d times and b %d, want both, each minute", a, b)
		}
		time.Sleep(time.Minute)
		leave()
		n.close()
	})
}

// R149: an app that is down for an hour leaves no heap of runs.
func TestR149AppDownForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", &app{answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Retryable: true}
		}})
		n.engine.Define([]config.Job{job("minutely", "* * * * *", func(j *config.Job) {
			j.Overlap, j.Retry = config.OverlapSkip, config.Retry{MaxRetries: 2, Delay: 40 * time.Second}
		})})
		_, leave := n.lead()
		for range 60 {
			time.Sleep(time.Minute)
			synctest.Wait()
			if open := len(ledgerOf(t, store).Runs); open > 1 {
				t.Fatalf("%d runs are open, want at most one", open)
			}
		}
		leave()
		n.close()
	})
}

// R151: runs by hand are in the same history and obey its limit.
func TestR151RunsByHandAreHistoryToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", &app{})
		n.engine.Define([]config.Job{job("byhand", "manual", func(j *config.Job) { j.HistoryLimit = 10 })})
		_, leave := n.lead()
		time.Sleep(time.Second)
		for range 20 {
			if _, err := n.engine.Enqueue(t.Context(), "byhand", nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(15 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		runs, err := n.engine.Runs(t.Context(), "byhand", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if r.Cause != run.CauseManual {
				t.Errorf("a run by hand has the cause %s", r.Cause)
			}
		}
		if len(runs) != 10 {
			t.Errorf("%d runs are kept of 20, want 10", len(runs))
		}
		leave()
		n.close()
	})
}

// R155: the four policies against what may be due beside a running run. DESIGN: a due one-shot (a
// retry, a recovery, a run by hand) waits under every policy but parallel, and is never skipped or
// replaced; under skip a run by hand is refused.
func TestR155EachPolicyAgainstEachCause(t *testing.T) {
	waits, beside, skipped, replaces, refused := "waits", "beside", "skipped", "replaces", "refused"
	for policy, want := range map[config.Overlap]map[run.Cause]string{
		config.OverlapSerial:   {run.CauseSchedule: waits, run.CauseRetry: waits, run.CauseManual: waits, run.CauseRecovery: waits},
		config.OverlapSkip:     {run.CauseSchedule: skipped, run.CauseRetry: waits, run.CauseManual: refused, run.CauseRecovery: waits},
		config.OverlapParallel: {run.CauseSchedule: beside, run.CauseRetry: beside, run.CauseManual: beside, run.CauseRecovery: beside},
		config.OverlapReplace:  {run.CauseSchedule: replaces, run.CauseRetry: waits, run.CauseManual: waits, run.CauseRecovery: waits},
	} {
		for cause, want := range want {
			t.Run(fmt.Sprintf("%s/%s", policy, cause), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := ledger.NewSharedMemory()
					n := start(t, store, "a", &app{work: 30 * time.Minute})
					text := "manual"
					if cause == run.CauseSchedule {
						text = "rate 10m"
					}
					n.engine.Define([]config.Job{job("a", text, func(j *config.Job) { j.Overlap, j.Timeout = policy, time.Hour })})
					_, leave := n.lead()
					time.Sleep(time.Second)
					if cause != run.CauseSchedule {
						if _, err := n.engine.Enqueue(t.Context(), "a", nil); err != nil {
							t.Fatal(err)
						}
					} else {
						time.Sleep(10 * time.Minute)
					}
					time.Sleep(time.Minute) // it runs
					switch cause {
					case run.CauseSchedule:
						time.Sleep(10 * time.Minute)
					case run.CauseManual:
						if _, err := n.engine.Enqueue(t.Context(), "a", nil); (want == refused) != errors.Is(err, engine.ErrAlreadyRunning) {
							t.Errorf("a run by hand beside a running one: %v, want it %s", err, want)
						}
					default:
						plantOneShot(t, store, cause)
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					got := len(n.app.Calls())
					running := len(ledgerOf(t, store).Runs)
					switch want {
					case waits, skipped, refused:
						if got != 1 {
							t.Errorf("%d calls while the first run goes on, want it alone", got)
						}
						if want == waits && cause != run.CauseSchedule && running != 2 {
							t.Errorf("%d runs are open, want one that runs and one that waits", running)
						}
						if want != waits && running != 1 {
							t.Errorf("%d runs are open, want the running one alone", running)
						}
					case beside, replaces:
						if got != 2 || (want == replaces) != (running == 1) {
							t.Errorf("%d calls, %d open, want the second %s", got, running, want)
						}
					}
					time.Sleep(time.Hour)
					synctest.Wait()
					if got := len(n.app.Calls()); (want == waits) && got < 2 {
						t.Errorf("%d calls an hour later, want what waited to have run", got)
					}
					leave()
					time.Sleep(time.Hour)
					n.close()
				})
			})
		}
	}
}

// R160: a run by hand whose node died is recovered by the job's rule, and still says where it came from.
func TestR160ARunByHandIsRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{work: time.Hour}), start(t, store, "b", &app{})
		jobs := []config.Job{job("byhand", "manual", func(j *config.Job) { j.Recovery, j.Timeout = config.RecoveryRerun, 2*time.Hour })}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(time.Second)
		asked, err := a.engine.Enqueue(t.Context(), "byhand", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		leave()
		plantDeath(t, store)
		_, leave = b.lead()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		calls := b.app.Calls()
		if len(calls) != 1 || calls[0].Run.Cause != run.CauseRecovery || calls[0].Run.Occurrence != asked.Occurrence || calls[0].Run.Attempt != 2 {
			t.Errorf("calls %+v, want the recovery of %s", calls, asked.Occurrence)
		}
		leave()
		a.stop()
		a.awaitEnd()
		b.close()
	})
}

// R162, R163: a run by hand does not use up a once (DESIGN), and a once that ran is over.
func TestR162OnceAndByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", &app{})
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		n.engine.Define([]config.Job{job("once", "once "+at.Format(time.RFC3339))})
		_, leave := n.lead()
		time.Sleep(time.Second)
		if _, err := n.engine.Enqueue(t.Context(), "once", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		var causes []run.Cause
		for _, c := range n.app.Calls() {
			causes = append(causes, c.Run.Cause)
		}
		if len(causes) != 2 || causes[0] != run.CauseManual || causes[1] != run.CauseSchedule {
			t.Errorf("runs %v, want the one by hand and the one at its time", causes)
		}
		if s := n.engine.Status(); !s.Jobs[0].Next.IsZero() || !s.Jobs[0].DueSince.IsZero() {
			t.Errorf("status %+v of a once that is over", s.Jobs[0])
		}
		leave()
		n.close()
	})
}

// plantOneShot enqueues what follows an attempt of another occurrence of job a, due now.
func plantOneShot(t *testing.T, store ledger.Store, cause run.Cause) {
	t.Helper()
	_, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Swap(t.Context(), func(l *state.Ledger) error {
		now := time.Now().UTC()
		l.Runs = append(l.Runs, run.Run{
			ID: "one-shot", Occurrence: "another", Key: run.Key{Job: "a"}, Version: 1, Cause: cause, State: run.StateQueued,
			Attempt: 2, RetryOf: "first", Retries: 1, ScheduledAt: now.Add(-time.Minute), DueAt: now, DecidedAt: now,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// events records what an engine tells.
type events struct {
	mu   sync.Mutex
	seen []engine.Event
}

func (e *events) Observe(event engine.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, event)
}

func (e *events) all() []engine.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.seen)
}
