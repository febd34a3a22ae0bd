package election_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
)

func TestStandalone(t *testing.T) {
	t.Parallel()
	electiontest.Run(t, func(*testing.T) electiontest.Harness {
		return electiontest.Harness{New: func(tb testing.TB, opts election.Options) election.Elector {
			tb.Helper()
			e, err := election.NewStandalone(opts)
			if err != nil {
				tb.Fatal(err)
			}
			return e
		}}
	})
}

func TestStandaloneLeadsForDaysWithoutBeingRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := election.NewStandalone(election.Options{Identity: election.NewIdentity("pod"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		var lease *election.Lease
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, l *election.Lease) error {
				lease = l
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !lease.Valid() || !e.Status().Leading {
			t.Error("the lease ran out")
		}
		if age := time.Since(e.Status().LastTurn); age > 5*time.Second {
			t.Errorf("the loop made no progress for %v, want some each 5s", age)
		}
		stop := errors.New("stop")
		cancel(stop)
		if err := <-done; !errors.Is(err, stop) {
			t.Errorf("Run = %v, want the cause of its context's end", err)
		}
	})
}

func TestStandaloneAsksWhetherItMayLeadWithoutBeingTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var barred atomic.Bool
		e, err := election.NewStandalone(election.Options{
			Identity: election.NewIdentity("pod"),
			Logger:   slog.New(slog.DiscardHandler),
			Eligible: func() error {
				if barred.Load() {
					return errors.New("the clock is wrong")
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- e.Run(ctx, func(ctx context.Context, _ *election.Lease) error { <-ctx.Done(); return nil })
		}()
		for range 3 {
			synctest.Wait()
			barred.Store(true)
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if e.Status().Leading {
				t.Error("it leads though it may not")
			}
			barred.Store(false)
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if !e.Status().Leading {
				t.Error("it does not lead though it may")
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want the cause of its context's end", err)
		}
	})
}
