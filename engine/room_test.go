package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// bounded gives a node a ledger of that size.
func bounded(store ledger.Store, most int) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Ledger, o.MaxLedgerBytes = ledger.NewPort[state.Ledger](store, ledger.NameLedger, ledger.WithMaxBytes(most)), most
	}
}

// People ask for runs until they are refused, while nobody leads. Whoever leads next claims them, fires
// what is due beside them, and a third takes over, in a ledger as full as they can make it.
func TestRequestsByHandLeaveRoomForTheRest(t *testing.T) {
	for pad := range 4 { // the last byte must not matter
		synctest.Test(t, func(t *testing.T) {
			store := ledger.NewSharedMemory()
			var jobs []config.Job
			for i := range 20 {
				jobs = append(jobs, job(fmt.Sprintf("by-hand-%d%s", i, strings.Repeat("x", pad)), "manual"))
			}
			jobs = append(jobs, job("tick", "rate 10s"))
			a := &app{work: time.Second}
			change := func(o *engine.Options) {
				bounded(store, 60<<10)(o)
				o.Place = "0f0e4c1e-1111-2222-3333-444444444444"
			}
			nodes := []*node{}
			for _, name := range []string{"shop-5d8f7c9b4-xk2lp_abcdefghij", "shop-5d8f7c9b4-zz2lp_abcdefghij"} {
				n := start(t, store, name, a, change)
				n.engine.Define(jobs)
				nodes = append(nodes, n)
			}
			_, leave := nodes[0].lead()
			time.Sleep(time.Second)
			leave()
			accepted := 0
			for i := 0; ; i++ {
				_, err := nodes[0].engine.Enqueue(t.Context(), jobs[i%20].Name, nil)
				if full, ok := errors.AsType[*run.Error](err); ok && full.Code == run.CodeLedgerFull {
					break
				}
				if err != nil || accepted > 1000 {
					t.Fatalf("after %d: %v, want %s", accepted, err, run.CodeLedgerFull)
				}
				accepted++
			}
			l, leave := nodes[0].lead()
			time.Sleep(2 * time.Second)
			leave()
			_, leave = nodes[1].lead()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if got := len(a.Calls()) - callsOf("tick", a); got != accepted {
				t.Errorf("%d of %d runs by hand were sent", got, accepted)
			}
			if got := callsOf("tick", a); got < 12 {
				t.Errorf("%d ticks in two minutes of rate 10s, want all", got)
			}
			if l.resigned != context.Canceled { //nolint:errorlint // the very value
				t.Errorf("the first leader resigned: %v", l.resigned)
			}
			leave()
			for _, n := range nodes {
				n.close()
			}
		})
	}
}

// Runs that wait for a review fill one job's share of the ledger; the job beside it fires on.
func TestRunsInReviewStopTheirOwnJobAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{answer: func(x run.Attempt) run.Outcome {
			if x.Run.Key.Job == "flaky" {
				return run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Retryable: true}
			}
			return run.Outcome{State: run.StateSucceeded, Status: 200}
		}}
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", a)
		n.engine.Define([]config.Job{
			job("flaky", "rate 1s", func(j *config.Job) { j.Overlap, j.Recovery = config.OverlapParallel, config.RecoveryReview }),
			job("tick", "rate 10s"), job("by-hand", "manual"),
		})
		_, leave := n.lead()
		time.Sleep(20*time.Minute + time.Second)
		if got := callsOf("flaky", a); got != 500 {
			t.Errorf("%d calls of the job that nobody reviews, want its share, 500", got)
		}
		if got := callsOf("tick", a); got != 120 {
			t.Errorf("%d calls of the job beside it, want 120", got)
		}
		if _, err := n.engine.Enqueue(t.Context(), "by-hand", nil); err != nil {
			t.Errorf("a run by hand of another job: %v", err)
		}
		var full *run.Error
		if _, err := n.engine.Enqueue(t.Context(), "flaky", nil); !errors.As(err, &full) || full.Code != run.CodeLedgerFull {
			t.Errorf("a run by hand of the job that fills its share: %v, want %s", err, run.CodeLedgerFull)
		}
		time.Sleep(time.Second)
		if _, err := n.engine.Resolve(t.Context(), ledgerOf(t, store).Runs[0].ID, run.StateSucceeded, "looked"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := callsOf("flaky", a); got < 501 {
			t.Errorf("%d calls after a review, want it to go on", got)
		}
		leave()
		n.close()
	})
}

// A ledger in which nothing fits any more is one that cannot be written: the leader says so, and steps down.
func TestALedgerThatTakesNothingEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &refusing{Store: ledger.NewSharedMemory(), name: ledger.NameLedger}
		var logged bytes.Buffer
		n := start(t, store, "a", &app{}, func(o *engine.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		n.engine.Define([]config.Job{job("tick", "rate 1s"), job("tock", "rate 1s")})
		l, _ := n.lead()
		time.Sleep(10 * time.Second)
		store.refuse(ledger.ErrTooLarge)
		time.Sleep(10 * time.Second)
		if lines := strings.Count(logged.String(), "\n"); lines == 0 || lines > 3 {
			t.Errorf("%d warnings in ten seconds, want one or two:\n%s", lines, logged.String())
		}
		if n.engine.Status().LedgerError == "" {
			t.Error("the status does not say that the ledger is not written")
		}
		if l.Check() != nil {
			t.Errorf("gave up after less than a lease: %v", l.resigned)
		}
		time.Sleep(20 * time.Second)
		if !errors.Is(l.resigned, engine.ErrLedgerFailing) {
			t.Errorf("resigned %v, want %v after a lease duration", l.resigned, engine.ErrLedgerFailing)
		}
		store.refuse(nil)
		n.close()
	})
}

// Claims are part of what a swap that is too large does less of.
func TestASwapThatIsTooLargeClaimsLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		const waiting = 40
		var size int
		l := ledger.NewPort[state.Ledger](store, ledger.NameLedger)
		if _, err := l.Swap(t.Context(), func(l *state.Ledger) error {
			now := time.Now().UTC()
			l.Term, l.Watermark = 1, now
			for i := range waiting {
				l.Runs = append(l.Runs, run.Run{
					ID: fmt.Sprintf("%032d", i), Occurrence: fmt.Sprintf("%032d", i), Key: run.Key{Job: fmt.Sprintf("by-hand-%02d", i)}, Version: 1,
					Cause: run.CauseManual, State: run.StateQueued, Priority: 5, Attempt: 1, ScheduledAt: now, DueAt: now, DecidedAt: now,
				})
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		size = l.Size()
		a := &app{work: 50 * time.Millisecond}
		n := start(t, store, "a", a, func(o *engine.Options) { // room for a few claims, not for 32
			bounded(store, size+4000)(o)
			o.Place = strings.Repeat("p", 36)
		})
		var jobs []config.Job
		for i := range waiting {
			jobs = append(jobs, job(fmt.Sprintf("by-hand-%02d", i), "manual"))
		}
		n.engine.Define(jobs)
		lease, leave := n.lead()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := len(a.Calls()); got != waiting {
			t.Errorf("%d of %d runs were sent, resigned %v, %s", got, waiting, lease.resigned, n.engine.Status().LedgerError)
		}
		leave()
		n.close()
	})
}
