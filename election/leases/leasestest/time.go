//nolint:thelper // these are tests, which Run names
package leasestest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election/leases"
)

func expiry(t *testing.T, b Backend) {
	const ttl = 3 * time.Second
	holder := b.sidecar(t, "shop-0")
	mine := acquire(t, holder, ask("rebuild", "worker", ttl))
	half := time.Now().Add(ttl / 2)
	waitUntil(t, half)
	watcher := b.sidecar(t, "shop-1")
	begin := time.Now()
	wantHeld(t, watcher, ask("rebuild", "other", ttl), mine)
	r := ask("rebuild", "other", ttl)
	r.Wait = 10 * time.Second
	next := acquire(t, watcher, r)
	if took := time.Since(begin); took < ttl {
		t.Errorf("taken over %s after it was first seen, want at least %s", took, ttl)
	}
	if next.Token <= mine.Token {
		t.Errorf("token %d after %d", next.Token, mine.Token)
	}
	_, err := holder.Renew(t.Context(), "rebuild", mine.Token)
	if lost, ok := errors.AsType[*leases.LostError](err); !ok || lost.Holder != "other" || lost.HolderToken != next.Token {
		t.Errorf("Renew() after it was taken over = %v, want it lost to other", err)
	}
}

func ownExpiry(t *testing.T, b Backend) {
	s := b.sidecar(t, "shop-0")
	mine := acquire(t, s, ask("rebuild", "worker", 3*time.Second))
	waitUntil(t, time.Now().Add(mine.Valid))
	_, err := s.Renew(t.Context(), "rebuild", mine.Token)
	if lost, ok := errors.AsType[*leases.LostError](err); !ok || !lost.Expired {
		t.Errorf("Renew() after the time = %v, want it expired", err)
	}
	if l, err := s.Get(t.Context(), "rebuild"); err != nil || l.Held {
		t.Errorf("Get() after the time = %+v, %v", l, err)
	}
	if next := acquire(t, s, ask("rebuild", "worker", time.Minute)); next.Token <= mine.Token {
		t.Errorf("token %d after %d", next.Token, mine.Token)
	}
}

func waits(t *testing.T, b Backend) {
	here, there := b.sidecar(t, "shop-0"), b.sidecar(t, "shop-1")
	for _, waiter := range []*leases.Service{here, there} {
		mine := acquire(t, here, ask("rebuild", "worker", time.Minute))
		got := make(chan error, 1)
		go func() {
			r := ask("rebuild", "other", time.Minute)
			r.Wait = 20 * time.Second
			l, err := waiter.Acquire(t.Context(), r)
			if err == nil {
				err = waiter.Release(t.Context(), "rebuild", l.Token)
			}
			got <- err
		}()
		if err := here.Release(t.Context(), "rebuild", mine.Token); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Errorf("Acquire() that waits = %v", err)
		}
	}
}

func waitIsBounded(t *testing.T, b Backend) {
	s := b.sidecar(t, "shop-0")
	mine := acquire(t, s, ask("rebuild", "worker", time.Minute))
	r := ask("rebuild", "other", time.Minute)
	r.Wait = 300 * time.Millisecond
	begin := time.Now()
	wantHeld(t, s, r, mine)
	if took := time.Since(begin); took < r.Wait {
		t.Errorf("waited %s, want %s", took, r.Wait)
	}
	r.Wait = leases.MaxWait
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ctx, r); err == nil {
		t.Error("Acquire() whose client has gone succeeded")
	}
}

func restart(t *testing.T, b Backend) {
	before := b.sidecar(t, "shop-0")
	mine := acquire(t, before, ask("rebuild", "worker", time.Minute))
	before.Close()

	if other := b.sidecar(t, "shop-1"); !b.Exclusive {
		_, err := other.Renew(t.Context(), "rebuild", mine.Token)
		if lost, ok := errors.AsType[*leases.LostError](err); !ok || !lost.Elsewhere {
			t.Errorf("Renew() in another pod = %v, want it refused", err)
		}
	}
	after := b.sidecar(t, "shop-0")
	wantHeld(t, after, ask("rebuild", "worker", time.Minute), mine)
	if l, err := after.Renew(t.Context(), "rebuild", mine.Token); err != nil || l.Token != mine.Token || l.Valid <= 0 {
		t.Errorf("Renew() after a restart in the same pod = %+v, %v", l, err)
	}
	if err := after.Release(t.Context(), "rebuild", mine.Token); err != nil {
		t.Fatal(err)
	}
}
