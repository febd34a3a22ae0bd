package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The longest that a run waits for what has to happen once the faults have ended.
const (
	leadWithin   = 30 * time.Second
	settleWithin = 3 * time.Minute
)

// quiet is how long nothing at all goes wrong at the end of a run: what is due then has to fire.
const quiet = 5 * time.Second

// awaitLeader returns for how long since the faults ended nobody led.
func (s *session) awaitLeader(ctx context.Context, ended time.Time) time.Duration {
	s.await(ctx, leadWithin, "a leader after the faults", func() string {
		if slices.ContainsFunc(s.sidecars, leads) {
			return ""
		}
		return "nobody leads"
	})
	return time.Since(ended)
}

// settle waits until every instant before a time is decided and every run of before has ended.
func (s *session) settle(ctx context.Context, until time.Time) {
	s.await(ctx, settleWithin, "every instant decided and every run ended", func() string { return s.open(until) })
}

// open names something that is not settled, or nothing.
func (s *session) open(until time.Time) string {
	l := s.witness.testimony().Ledger
	if !l.Watermark.After(until) {
		return fmt.Sprintf("the watermark is %s", l.Watermark.Format(clock))
	}
	for key, t := range l.Triggers {
		if t.Lags() && t.Cursor.Before(until) {
			return fmt.Sprintf("%s is decided up to %s only", key, t.Cursor.Format(clock))
		}
	}
	for _, r := range l.Runs {
		if r.ScheduledAt.Before(until) {
			return fmt.Sprintf("run %s of %s is %s on %q", r.ID, r.Key, r.State, r.Node)
		}
	}
	return ""
}

// await polls until nothing is open any more, and fails the test when that takes too long.
func (s *session) await(ctx context.Context, within time.Duration, what string, open func() string) {
	s.t.Helper()
	deadline := time.Now().Add(within)
	for {
		why := open()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			s.dump()
			s.t.Fatalf("not within %s: %s: %s", within, what, why)
		}
		if !wait(ctx, 50*time.Millisecond) {
			s.t.Fatalf("interrupted: %v", context.Cause(ctx))
		}
	}
}

// quietStretch waits until nothing is behind, and then lets quiet pass. On a machine so busy that a leader
// loses its term by itself it tries again.
func (s *session) quietStretch(ctx context.Context) span {
	s.t.Helper()
	for range 4 {
		s.await(ctx, settleWithin, "nothing is behind", func() string { return s.open(time.Now().Add(-time.Second)) })
		term := s.witness.testimony().Ledger.Term
		calm := span{From: time.Now().UTC()}
		wait(ctx, quiet)
		calm.Until = time.Now().UTC()
		if s.witness.testimony().Ledger.Term == term {
			return calm
		}
		s.say("the leader changed by itself: another quiet stretch")
	}
	s.t.Fatalf("no leader kept its term for %s, although nothing went wrong any more", quiet)
	return span{}
}
