package election_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// What is not known yet is no news: only what keeps a sidecar from leading is.
func TestWhatIsNotKnownYetIsLoggedAtDebug(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var reason atomic.Pointer[error]
		say := func(err error) { reason.Store(&err) }
		say(fmt.Errorf("%w whether the app can be reached", election.ErrUndecided))
		e, err := election.NewStandalone(election.Options{
			Identity: election.NewIdentity("pod"), Eligible: func() error { return *reason.Load() },
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, func(context.Context, *election.Lease) error { return nil }) }()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if want := "not eligible to lead: not known yet whether the app can be reached"; e.Status().Waiting != want {
			t.Errorf("Status().Waiting = %q, want %q", e.Status().Waiting, want)
		}
		say(errors.New("the app cannot be reached: refused"))
		time.Sleep(12 * time.Second)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want the cause of its context's end", err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, want := range [][2]string{{"level=DEBUG", "not known yet"}, {"level=INFO", "cannot be reached: refused"}} {
			if len(lines) != 2 || !strings.Contains(lines[i], want[0]) || !strings.Contains(lines[i], want[1]) {
				t.Fatalf("the log is\n%s\nwant two lines, the first at debug", log.String())
			}
		}
	})
}
