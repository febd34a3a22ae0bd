package leases_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

// bubble is one table whose store fails on demand, in simulated time.
type bubble struct {
	t     *testing.T
	table ledger.Store
}

func inBubble(t *testing.T, test func(b bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(bubble{t, ledger.NewSharedMemory()}) })
}

// sidecar is one process with faults of its own.
func (b bubble) sidecar(pod string) (*leases.Service, *ledgertest.Faults) {
	b.t.Helper()
	faults := ledgertest.NewFaults(b.table)
	s, err := leases.New(leases.Options{Store: tableIn(faults), Self: leases.Self{Node: pod + "_a", Place: "uid-of-" + pod}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.Close)
	return s, faults
}

func (b bubble) acquire(s *leases.Service, name string, ttl time.Duration) leases.Lease {
	b.t.Helper()
	l, err := s.Acquire(b.t.Context(), leases.AcquireRequest{Name: name, Holder: "worker", TTL: ttl})
	if err != nil {
		b.t.Fatalf("Acquire(%s) = %v", name, err)
	}
	return l
}

// What becomes of one write must not show, as long as there is a clear answer in the end.
func TestFaultsOfTheStoreDoNotShow(t *testing.T) {
	for name, faults := range map[string][]ledgertest.Fault{
		"the answer is lost":              {ledgertest.DropAnswer},
		"the request is lost":             {ledgertest.DropRequest},
		"one after the other":             {ledgertest.DropRequest, ledgertest.DropAnswer, ledgertest.DropRequest},
		"the write is late and overtaken": {ledgertest.Late},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				t := b.t
				here, f := b.sidecar("shop-0")
				there, _ := b.sidecar("shop-1")
				f.Script(faults...)
				mine := b.acquire(here, "rebuild", 30*time.Second)
				f.Land()
				f.Script(faults...)
				if l, err := here.Renew(t.Context(), "rebuild", mine.Token); err != nil || l.Token != mine.Token {
					t.Errorf("Renew() = %+v, %v", l, err)
				}
				f.Land()
				if l, err := there.Get(t.Context(), "rebuild"); err != nil || l.Token != mine.Token {
					t.Errorf("another sidecar sees %+v, %v, want token %d", l, err, mine.Token)
				}
				f.Script(faults...)
				if err := here.Release(t.Context(), "rebuild", mine.Token); err != nil {
					t.Errorf("Release() = %v", err)
				}
				f.Land()
				if next := b.acquire(there, "rebuild", 30*time.Second); next.Token <= mine.Token {
					t.Errorf("token %d after %d", next.Token, mine.Token)
				}
			})
		})
	}
}

// An acquisition without an answer is found again by its key, also by a sidecar that was restarted.
func TestAnUnansweredAcquisitionIsRepeatable(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		here, f := b.sidecar("shop-0")
		b.acquire(here, "mails", time.Minute) // so that the next write needs no read
		r := leases.AcquireRequest{Name: "rebuild", Holder: "worker", TTL: time.Minute, Key: "0193a1b2"}
		f.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.DropAnswer })
		f.FailReads(errors.New("away"))
		_, err := here.Acquire(t.Context(), r)
		if e, ok := errors.AsType[*leases.StoreError](err); !ok || !e.Unknown {
			t.Fatalf("Acquire() = %v, want an unknown outcome", err)
		}
		f.FailReads(nil)
		f.Decide(nil)
		first, err := here.Acquire(t.Context(), r)
		if err != nil || !first.Repeated || first.Valid < 59*time.Second {
			t.Fatalf("the same key gives %+v, %v, want what was stored", first, err)
		}
		again, _ := b.sidecar("shop-0")
		second, err := again.Acquire(t.Context(), r)
		if err != nil || second.Token != first.Token || !second.Repeated {
			t.Errorf("after a restart the same key gives %+v, %v, want token %d", second, err, first.Token)
		}
	})
}

func TestAStoreThatHangs(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, f := b.sidecar("shop-0")
		mine := b.acquire(s, "rebuild", 5*time.Second)
		f.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Hang })
		time.Sleep(2 * time.Second)
		begin := time.Now()
		_, err := s.Renew(t.Context(), "rebuild", mine.Token)
		// The app has to know by then, whatever the store does.
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("Renew() returned after %s, the lease was over after 3 s", took)
		}
		if lost, ok := errors.AsType[*leases.LostError](err); !ok || !lost.Expired {
			t.Errorf("Renew() = %v, want it expired", err)
		}
		begin = time.Now()
		_, err = s.Acquire(t.Context(), leases.AcquireRequest{Name: "mails", Holder: "worker", TTL: time.Minute})
		if e, ok := errors.AsType[*leases.StoreError](err); !ok {
			t.Errorf("Acquire() = %v (unknown %v), want an error of the store", err, e)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("Acquire() returned after %s", took)
		}
		if s.Trouble() == nil {
			t.Error("no trouble")
		}
		f.Decide(nil)
		b.acquire(s, "mails", time.Minute)
		if s.Trouble() != nil {
			t.Errorf("trouble after all is well: %v", s.Trouble())
		}
	})
}

// The API server away: nothing is granted, what is held stays valid for as long as it was granted.
func TestTheStoreIsAway(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, f := b.sidecar("shop-0")
		mine := b.acquire(s, "rebuild", time.Minute)
		away := errors.New("away")
		f.FailReads(away)
		f.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Refuse })
		if _, err := s.Renew(t.Context(), "rebuild", mine.Token); !errors.Is(err, ledgertest.ErrRefused) && !errors.Is(err, away) {
			t.Errorf("Renew() = %v", err)
		} else if _, ok := errors.AsType[*leases.StoreError](err); !ok {
			t.Errorf("Renew() = %T, want an error of the store", err)
		}
		time.Sleep(30 * time.Second)
		if _, err := s.List(t.Context()); !errors.Is(err, away) {
			t.Errorf("List() = %v", err)
		}
		f.FailReads(nil)
		f.Decide(nil)
		l, err := s.Get(t.Context(), "rebuild")
		if err != nil || l.Valid < 25*time.Second || l.Valid > 30*time.Second {
			t.Errorf("Get() = %+v, %v, want half a minute left", l, err)
		}
		if l, err := s.Renew(t.Context(), "rebuild", mine.Token); err != nil || l.Valid < 59*time.Second {
			t.Errorf("Renew() when it is back = %+v, %v", l, err)
		}
	})
}

// A grant that is answered after its time is no grant.
func TestAnAnswerThatComesTooLate(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, f := b.sidecar("shop-0")
		f.Delay(2 * time.Second)
		_, err := s.Acquire(t.Context(), leases.AcquireRequest{Name: "rebuild", Holder: "worker", TTL: time.Second})
		if !errors.Is(err, leases.ErrTooLate) {
			t.Errorf("Acquire() = %v, want %v", err, leases.ErrTooLate)
		}
		f.Delay(time.Second)
		l := b.acquire(s, "mails", 10*time.Second)
		if l.Valid > 9*time.Second { // the write took a second
			t.Errorf("valid for %s: it counts from the answer", l.Valid)
		}
	})
}

// Who waits for a holder that is gone gets the lease when its time is over by what was seen, not later.
func TestATakeoverIsExact(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		gone, _ := b.sidecar("shop-0")
		b.acquire(gone, "rebuild", 20*time.Second)
		time.Sleep(7 * time.Second)
		s, _ := b.sidecar("shop-1")
		begin := time.Now()
		r := leases.AcquireRequest{Name: "rebuild", Holder: "next", TTL: time.Minute, Wait: leases.MaxWait}
		if _, err := s.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(begin), 20*time.Second+20*time.Millisecond; took != want {
			t.Errorf("taken over after %s, want %s", took, want)
		}
	})
}

// A waiting request whose client has gone takes nothing.
func TestWhoHasGoneGetsNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, _ := b.sidecar("shop-0")
		mine := b.acquire(s, "rebuild", time.Minute)
		ctx, leave := context.WithCancel(t.Context())
		var granted atomic.Bool
		var group sync.WaitGroup
		group.Go(func() {
			_, err := s.Acquire(ctx, leases.AcquireRequest{Name: "rebuild", Holder: "gone", TTL: time.Minute, Wait: leases.MaxWait})
			granted.Store(err == nil)
		})
		time.Sleep(3 * time.Second)
		leave()
		synctest.Wait()
		if err := s.Release(t.Context(), "rebuild", mine.Token); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		if l, err := s.Get(t.Context(), "rebuild"); err != nil || l.Held || granted.Load() {
			t.Errorf("the lease is %+v, %v, granted %v", l, err, granted.Load())
		}
	})
}

func TestClosedServicesRefuse(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, f := b.sidecar("shop-0")
		f.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Hang })
		got := make(chan error, 1)
		go func() {
			_, err := s.Acquire(t.Context(), leases.AcquireRequest{Name: "rebuild", Holder: "w", TTL: time.Minute})
			got <- err
		}()
		synctest.Wait()
		s.Close() // returns, and leaves nothing behind: the bubble would not end
		if err := <-got; err == nil {
			t.Error("granted while closing")
		}
		if _, err := s.Acquire(t.Context(), leases.AcquireRequest{Name: "rebuild", Holder: "w", TTL: time.Minute}); err == nil {
			t.Error("granted after closing")
		}
	})
}

func TestStats(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, _ := b.sidecar("shop-0")
		want := func(what string, want leases.Stats) {
			t.Helper()
			if got := s.Stats(); got != want {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
		}
		mine := b.acquire(s, "rebuild", 10*time.Second)
		b.acquire(s, "mails", time.Minute)
		want("two acquired", leases.Stats{Held: 2, Acquired: 2})
		time.Sleep(11 * time.Second)
		want("one expired", leases.Stats{Held: 1, Acquired: 2})
		for range 2 {
			if _, err := s.Renew(t.Context(), "rebuild", mine.Token); err == nil {
				t.Error("renewed")
			}
		}
		want("and was not renewed", leases.Stats{Held: 1, Acquired: 2, Lost: 2})
		mine = b.acquire(s, "rebuild", 10*time.Second)
		if err := s.Release(t.Context(), "rebuild", mine.Token); err != nil {
			t.Error(err)
		}
		want("released", leases.Stats{Held: 1, Acquired: 3, Lost: 2})
	})
}
