//nolint:thelper // these are tests, which Run names
package leasestest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election/leases"
)

func contention(t *testing.T, b Backend) {
	all := []*leases.Service{b.sidecar(t, "shop-0"), b.sidecar(t, "shop-1"), b.sidecar(t, "shop-2")}
	var mu sync.Mutex
	var last int64
	inside, rounds := 0, 0
	var group sync.WaitGroup
	for i := range 9 {
		group.Go(func() {
			s := all[i%len(all)]
			for range 2 {
				r := ask("rebuild", fmt.Sprintf("worker-%d", i), time.Minute)
				r.Wait = leases.MaxWait
				l, err := s.Acquire(t.Context(), r)
				if err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
				mu.Lock()
				if inside++; inside != 1 || l.Token <= last {
					t.Errorf("worker %d is in with token %d after %d, %d at once", i, l.Token, last, inside)
				}
				last = l.Token
				rounds++
				mu.Unlock()
				mu.Lock()
				inside--
				mu.Unlock()
				if err := s.Release(t.Context(), "rebuild", l.Token); err != nil {
					t.Errorf("worker %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	if rounds != 18 {
		t.Errorf("%d of 18 acquisitions", rounds)
	}
}

func full(t *testing.T, b Backend) {
	s := b.sidecar(t, "shop-0")
	var group sync.WaitGroup
	tokens := make([]int64, leases.MaxLeases)
	for i := range tokens {
		group.Go(func() {
			l, err := s.Acquire(t.Context(), ask(fmt.Sprintf("lease-%d", i), "worker", time.Hour))
			if err != nil {
				t.Errorf("lease %d: %v", i, err)
			}
			tokens[i] = l.Token
		})
	}
	group.Wait()
	if _, err := s.Acquire(t.Context(), ask("one-more", "worker", time.Minute)); !errors.Is(err, leases.ErrFull) {
		t.Fatalf("the lease after %d = %v, want %v", leases.MaxLeases, err, leases.ErrFull)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != leases.MaxLeases {
		t.Errorf("List() = %d leases, %v", len(all), err)
	}
	for i := range 2 {
		if err := s.Release(t.Context(), fmt.Sprintf("lease-%d", i), tokens[i]); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, s, ask("one-more", "worker", time.Hour))
	brief := acquire(t, s, ask("brief", "worker", 3*time.Second))
	waitUntil(t, time.Now().Add(brief.Valid)) // what has expired makes room
	acquire(t, s, ask("and-another", "worker", time.Minute))
}

func hostile(t *testing.T, b Backend) {
	s := b.sidecar(t, "shop-0")
	tests := map[string]struct {
		field  string
		change func(*leases.AcquireRequest)
	}{
		"no name":                     {"name", func(r *leases.AcquireRequest) { r.Name = "" }},
		"a path":                      {"name", func(r *leases.AcquireRequest) { r.Name = "../ledger" }},
		"too long a name":             {"name", func(r *leases.AcquireRequest) { r.Name = fmt.Sprintf("%0129d", 0) }},
		"no holder":                   {"holder", func(r *leases.AcquireRequest) { r.Holder = "" }},
		"a holder that forges a line": {"holder", func(r *leases.AcquireRequest) { r.Holder = "a\nb" }},
		"no time to live":             {"ttlSeconds", func(r *leases.AcquireRequest) { r.TTL = 0 }},
		"too short a time to live":    {"ttlSeconds", func(r *leases.AcquireRequest) { r.TTL = time.Millisecond }},
		"too long a time to live":     {"ttlSeconds", func(r *leases.AcquireRequest) { r.TTL = leases.MaxTTL + time.Second }},
		"a part of a second":          {"ttlSeconds", func(r *leases.AcquireRequest) { r.TTL = 1500 * time.Millisecond }},
		"a wait without end":          {"waitSeconds", func(r *leases.AcquireRequest) { r.Wait = time.Hour }},
		"a wait into the past":        {"waitSeconds", func(r *leases.AcquireRequest) { r.Wait = -1 }},
		"a key of several lines":      {"key", func(r *leases.AcquireRequest) { r.Key = "a\r\nb" }},
	}
	for name, tt := range tests {
		r := ask("rebuild", "worker", time.Minute)
		tt.change(&r)
		_, err := s.Acquire(t.Context(), r)
		if invalid, ok := errors.AsType[*leases.InvalidError](err); !ok || invalid.Field != tt.field {
			t.Errorf("%s: Acquire() = %v, want an error of %s", name, err, tt.field)
		}
	}
	for _, token := range []int64{-1, 0, leases.MaxToken + 1} {
		_, err := s.Renew(t.Context(), "rebuild", token)
		if _, ok := errors.AsType[*leases.InvalidError](err); !ok {
			t.Errorf("Renew() with token %d = %v", token, err)
		}
		if _, ok := errors.AsType[*leases.InvalidError](s.Release(t.Context(), "rebuild", token)); !ok {
			t.Errorf("Release() with token %d is not refused", token)
		}
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("List() = %+v, %v, want none", all, err)
	}
}
