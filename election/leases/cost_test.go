package leases_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election/leases"
)

// G5, of the leases: who does not use them pays nothing, and what is used is paid once.
func TestWhatIsAskedOfTheStore(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, f := b.sidecar("shop-0")
		asked := func(what string, mostLoads, mostReplaces int, do func()) {
			t.Helper()
			loads, replaces := f.Asked()
			do()
			moreLoads, moreReplaces := f.Asked()
			if moreLoads -= loads; moreLoads > mostLoads {
				t.Errorf("%s: %d reads, want at most %d", what, moreLoads, mostLoads)
			}
			if moreReplaces -= replaces; moreReplaces > mostReplaces {
				t.Errorf("%s: %d writes, want at most %d", what, moreReplaces, mostReplaces)
			}
		}
		asked("an hour of nothing", 0, 0, func() { time.Sleep(time.Hour) })
		var mine leases.Lease
		asked("the first acquisition", 1, 1, func() { mine = b.acquire(s, "rebuild", time.Minute) })
		asked("a renewal", 0, 1, func() {
			if _, err := s.Renew(t.Context(), "rebuild", mine.Token); err != nil {
				t.Error(err)
			}
		})
		asked("an hour of nothing, with a lease that has expired", 0, 0, func() { time.Sleep(time.Hour) })
		mine = b.acquire(s, "rebuild", time.Hour)
		asked("a thousand reads in ten seconds", 11, 0, func() {
			for range 1000 {
				if _, err := s.List(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		asked("twenty who wait for half a minute", 20+40+20, 0, func() {
			var group sync.WaitGroup
			for i := range 20 {
				group.Go(func() {
					r := leases.AcquireRequest{Name: "rebuild", Holder: fmt.Sprintf("w%d", i), TTL: time.Minute, Wait: leases.MaxWait}
					if _, err := s.Acquire(t.Context(), r); err == nil {
						t.Error("granted")
					}
				})
			}
			group.Wait()
		})
		time.Sleep(time.Minute)
		asked("one who asks without pause for ten seconds", 100+10*20+1, 0, func() {
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
				_, _ = s.Acquire(t.Context(), leases.AcquireRequest{Name: "rebuild", Holder: "w", TTL: time.Minute})
			}
		})
	})
}

// Requests that come at once are carried out together.
func TestRenewalsShareSwaps(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.t
		s, f := b.sidecar("shop-0")
		const n = 50
		tokens := make([]int64, n)
		for i := range tokens {
			tokens[i] = b.acquire(s, fmt.Sprintf("lease-%d", i), time.Minute).Token
		}
		f.Delay(10 * time.Millisecond)
		_, before := f.Asked()
		var group sync.WaitGroup
		for i, token := range tokens {
			group.Go(func() {
				if l, err := s.Renew(t.Context(), fmt.Sprintf("lease-%d", i), token); err != nil || l.Token != token {
					t.Errorf("Renew() = %+v, %v", l, err)
				}
			})
		}
		group.Wait()
		if _, after := f.Asked(); after-before > 3 {
			t.Errorf("%d renewals at once took %d writes", n, after-before)
		}
	})
}
