package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/election"
)

func TestALeaseRunsOutByWhicheverClockIsFirst(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		monotonic, wall time.Duration
		want            bool
	}{
		"at once":                                 {0, 0, false},
		"a moment before":                         {10*time.Second - 1, 10*time.Second - 1, false},
		"exactly then":                            {10 * time.Second, 10 * time.Second, true},
		"the machine was suspended":               {time.Second, 40 * time.Second, true},
		"the wall clock was set back":             {10 * time.Second, -time.Hour, true},
		"the wall clock was set back, in time":    {9 * time.Second, -time.Hour, false},
		"the wall clock was set forward":          {time.Second, time.Hour, true},
		"the wall clock stands still (no excuse)": {11 * time.Second, 0, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := election.Reached(tt.monotonic, tt.wall, 10*time.Second); got != tt.want {
				t.Errorf("reached = %v after %v on the monotonic and %v on the wall clock, want %v", got, tt.monotonic, tt.wall, tt.want)
			}
		})
	}
}

func TestALeaseEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := election.NewLease(t, 10*time.Second)
		for range 5 { // each renewal took a second
			time.Sleep(5 * time.Second)
			if err := l.Extend(time.Second, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(9*time.Second - 1)
		synctest.Wait()
		if err := l.Check(); err != nil {
			t.Errorf("Check a moment before the end = %v", err)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if err := l.Check(); !errors.Is(err, election.ErrExpired) || !errors.Is(err, election.ErrNotLeading) {
			t.Errorf("Check at the end = %v, want ErrExpired: it counts from when the renewal was sent", err)
		}
	})
}

// R076
func TestAnAnswerThatComesTooLateExtendsNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wait, ago time.Duration
		want      bool
	}{
		"in time":                         {9 * time.Second, 4 * time.Second, true},
		"a moment after the end":          {10 * time.Second, 4 * time.Second, false},
		"in time, but sent very long ago": {9 * time.Second, 12 * time.Second, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := election.NewLease(t, 10*time.Second)
				time.Sleep(tt.wait)
				if err := l.Extend(tt.ago, 10*time.Second); (err == nil) != tt.want {
					t.Errorf("an answer after %v to what was sent %v before: %v, want it to count: %v", tt.wait, tt.ago, err, tt.want)
				}
				if l.Valid() != tt.want {
					t.Errorf("Valid = %v, want %v", l.Valid(), tt.want)
				}
			})
		})
	}
}

func TestAnOlderAnswerDoesNotShortenALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := election.NewLease(t, 10*time.Second)
		if err := l.Extend(8*time.Second, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if !l.Valid() {
			t.Error("the lease was cut short")
		}
	})
}

func TestTheFirstReasonOfAnEndCounts(t *testing.T) {
	t.Parallel()
	l := election.NewLease(t, time.Hour)
	first := errors.New("first")
	l.Resign(first)
	l.Resign(errors.New("second"))
	if err := l.Check(); !errors.Is(err, first) || !errors.Is(err, election.ErrResigned) {
		t.Errorf("Check = %v, want the first reason", err)
	}
	if err := l.Extend(0, time.Hour); err == nil || l.Valid() {
		t.Error("a lease that was given up was extended")
	}
}

func TestALeaseMayBeUsedByMany(t *testing.T) {
	t.Parallel()
	l := election.NewLease(t, time.Hour)
	var users sync.WaitGroup
	for i := range 16 {
		users.Go(func() {
			for n := range 200 {
				l.SetTerm(int64(i*200 + n))
				_ = l.Extend(0, time.Hour)
				_, _ = l.Valid(), l.Term()
			}
			if i == 15 {
				l.Resign(context.Canceled)
			}
		})
	}
	users.Wait()
	if l.Term() != 15*200+199 || l.Valid() {
		t.Errorf("Term = %d, Valid = %v; want the greatest, and the end to stand", l.Term(), l.Valid())
	}
}

func BenchmarkCheck(b *testing.B) {
	l := election.NewLease(b, time.Hour)
	for b.Loop() {
		if err := l.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
