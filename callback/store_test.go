package callback_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/callback"
)

func runOf(n int) *callback.Run {
	return &callback.Run{ID: fmt.Sprintf("%032x", n), Occurrence: fmt.Sprintf("%032x", n), Job: "job"}
}

func claim(t *testing.T, s callback.Store, run *callback.Run) callback.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), run)
	if err != nil {
		t.Fatalf("Claim(%s) = %v", run.Occurrence, err)
	}
	return c
}

func finish(t *testing.T, s callback.Store, run *callback.Run, message string) {
	t.Helper()
	if err := s.Finish(t.Context(), run, message); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryStoreKeepsWhatIsDoneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := callback.NewMemoryStore(callback.MemoryOptions{MaxAge: time.Hour})
		claim(t, s, runOf(1))
		time.Sleep(2 * time.Hour)
		if c := claim(t, s, runOf(1)); c.State != callback.InProgress {
			t.Errorf("after two hours of work: %+v, want that it is in progress", c)
		}
		finish(t, s, runOf(1), "done")
		time.Sleep(time.Hour - time.Nanosecond)
		if c := claim(t, s, runOf(1)); c.State != callback.Done || c.Message != "done" {
			t.Errorf("within its age: %+v, want done", c)
		}
		time.Sleep(time.Nanosecond)
		if c := claim(t, s, runOf(1)); c.State != callback.Claimed {
			t.Errorf("after its age: %+v, want that it is free", c)
		}
	})
}

func TestMemoryStoreIsBounded(t *testing.T) {
	s := callback.NewMemoryStore(callback.MemoryOptions{MaxEntries: 3})
	for n := range 5 {
		claim(t, s, runOf(n))
		finish(t, s, runOf(n), strings.Repeat("x", 5000))
	}
	for n, want := range map[int]callback.ClaimState{2: callback.Done, 3: callback.Done, 4: callback.Done} {
		c := claim(t, s, runOf(n))
		if c.State != want || len(c.Message) != 1024 {
			t.Errorf("occurrence %d: %d with %d bytes, want it done with 1 KiB", n, c.State, len(c.Message))
		}
	}
	// In progress, it is never dropped: the oldest that is done is, then nobody gets in.
	for n := 10; n < 13; n++ {
		claim(t, s, runOf(n))
	}
	if _, err := s.Claim(t.Context(), runOf(13)); !errors.Is(err, callback.ErrStoreFull) {
		t.Errorf("Claim() of a store full of work = %v, want ErrStoreFull", err)
	}
	if c := claim(t, s, runOf(10)); c.State != callback.InProgress {
		t.Errorf("work in progress is %+v after the store was full", c)
	}
	if err := s.Forget(t.Context(), runOf(11)); err != nil {
		t.Fatal(err)
	}
	claim(t, s, runOf(13))
}

// TestMemoryStoreHeedsTheHolderAlone: what a run says counts only while it has the claim.
func TestMemoryStoreHeedsTheHolderAlone(t *testing.T) {
	s := callback.NewMemoryStore(callback.MemoryOptions{})
	holder, other := runOf(1), runOf(1)
	other.ID = strings.Repeat("f", 32)
	claim(t, s, holder)
	finish(t, s, other, "not mine")
	if err := s.Forget(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	waiting := claim(t, s, other)
	if waiting.State != callback.InProgress {
		t.Fatalf("state %d after somebody else ended it, want that it is in progress", waiting.State)
	}
	select {
	case <-waiting.Released:
		t.Error("released by somebody else")
	default:
	}
	finish(t, s, holder, "mine")
	receive(t, waiting.Released, "the release")
	finish(t, s, holder, "again")
	if err := s.Forget(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, s, other); c.State != callback.Done || c.Message != "mine" {
		t.Errorf("%+v, want done with the first message", c)
	}
}

func TestMemoryStoreGivesAnOccurrenceToOne(t *testing.T) {
	s := callback.NewMemoryStore(callback.MemoryOptions{})
	var got atomic.Int32
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			run := runOf(1)
			run.ID = fmt.Sprintf("%032x", n)
			if c, err := s.Claim(t.Context(), run); err == nil && c.State == callback.Claimed {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if n := got.Load(); n != 1 {
		t.Errorf("%d of 50 got the occurrence, want 1", n)
	}
}

func TestMemoryFence(t *testing.T) {
	f := callback.NewMemoryFence()
	steps := []struct {
		job  string
		term int64
		ok   bool
	}{
		{"a", 5, true},
		{"a", 5, true}, // the same leader goes on
		{"a", 4, false},
		{"b", 4, true}, // each job for itself
		{"a", 7, true},
		{"a", 6, false},
		{"a", 0, true}, // no token
		{"a", 6, false},
		{"a", 1_764_000_000_000, true}, // a ledger in memory starts there
		{"a", 8, false},
	}
	for i, step := range steps {
		err := f.Check(t.Context(), &callback.Run{Job: step.job, Term: step.term})
		if (err == nil) != step.ok || err != nil && !errors.Is(err, callback.ErrStaleToken) {
			t.Errorf("step %d, %s with token %d: %v, want passed %v", i, step.job, step.term, err, step.ok)
		}
	}
}

// TestMemoryFenceIsBounded: with more jobs than it keeps, it is stricter, never laxer.
func TestMemoryFenceIsBounded(t *testing.T) {
	f := callback.NewMemoryFence()
	const most = 10_000
	check := func(job int, term int64) error {
		return f.Check(t.Context(), &callback.Run{Job: fmt.Sprintf("job-%d", job), Term: term})
	}
	for n := range most {
		if err := check(n, int64(10+n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(most, 30_000); err != nil {
		t.Fatalf("one job more: %v", err)
	}
	if err := check(0, 9); !errors.Is(err, callback.ErrStaleToken) {
		t.Errorf("an old token of the job that had to go: %v, want ErrStaleToken", err)
	}
	if err := check(0, 10); err != nil {
		t.Errorf("the newest token of the job that had to go: %v, want nil", err)
	}
}
