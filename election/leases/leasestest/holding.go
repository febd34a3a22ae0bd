//nolint:thelper // these are tests, which Run names
package leasestest

import (
	"errors"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election/leases"
)

func heldByOne(t *testing.T, b Backend) {
	here, there := b.sidecar(t, "shop-0"), b.sidecar(t, "shop-1")
	if l, err := there.Get(t.Context(), "rebuild"); err != nil || l != (leases.Lease{Name: "rebuild"}) {
		t.Errorf("Get() of a lease that nobody holds = %+v, %v", l, err)
	}
	mine := acquire(t, here, ask("rebuild", "worker", time.Minute))
	wantHeld(t, there, ask("rebuild", "other", time.Minute), mine)
	other := acquire(t, there, ask("mails", "other", time.Minute))
	seen, err := there.List(t.Context())
	if err != nil || len(seen) != 2 || seen[0].Token != other.Token || seen[1].Token != mine.Token {
		t.Errorf("List() = %+v, %v", seen, err)
	}
	if seen[1].Valid != 0 {
		t.Errorf("another sidecar says that the holder may go on for %s: it cannot know", seen[1].Valid)
	}
	if l, err := here.Get(t.Context(), "rebuild"); err != nil || l.Valid <= 0 {
		t.Errorf("Get() at the holder's own sidecar = %+v, %v", l, err)
	}
}

func notReentrant(t *testing.T, b Backend) {
	s := b.sidecar(t, "shop-0")
	mine := acquire(t, s, ask("rebuild", "worker", time.Minute))
	wantHeld(t, s, ask("rebuild", "worker", time.Minute), mine)
}

func renewalNeedsToken(t *testing.T, b Backend) {
	s := b.sidecar(t, "shop-0")
	mine := acquire(t, s, ask("rebuild", "worker", time.Minute))
	for range 3 {
		if l, err := s.Renew(t.Context(), "rebuild", mine.Token); err != nil || l.Token != mine.Token || l.Valid <= 0 {
			t.Fatalf("Renew() = %+v, %v", l, err)
		}
	}
	for _, token := range []int64{1, mine.Token - 1, mine.Token + 1} {
		_, err := s.Renew(t.Context(), "rebuild", token)
		if lost, ok := errors.AsType[*leases.LostError](err); !ok || lost.Holder != "worker" || lost.HolderToken != mine.Token {
			t.Errorf("Renew() with another token = %v, want an error that names the holder", err)
		}
	}
	_, err := s.Renew(t.Context(), "unheard-of", mine.Token)
	if lost, ok := errors.AsType[*leases.LostError](err); !ok || lost.Holder != "" {
		t.Errorf("Renew() of a lease that nobody holds = %v, want it lost to nobody", err)
	}
}

func release(t *testing.T, b Backend) {
	here, there := b.sidecar(t, "shop-0"), b.sidecar(t, "shop-1")
	mine := acquire(t, here, ask("rebuild", "worker", time.Minute))
	wantHeld(t, there, ask("rebuild", "other", time.Minute), mine)
	for range 2 {
		if err := here.Release(t.Context(), "rebuild", mine.Token); err != nil {
			t.Fatalf("Release() = %v", err)
		}
	}
	next := acquire(t, there, ask("rebuild", "other", time.Minute))
	if err := here.Release(t.Context(), "rebuild", mine.Token); err != nil {
		t.Errorf("Release() with a token of the past = %v", err)
	}
	wantHeld(t, here, ask("rebuild", "worker", time.Minute), next)
	_, err := here.Renew(t.Context(), "rebuild", mine.Token)
	if lost, ok := errors.AsType[*leases.LostError](err); !ok || lost.Holder != "other" {
		t.Errorf("Renew() after the release = %v, want it lost to other", err)
	}
	// People end a lease of a pod that is gone from wherever they are.
	if err := here.Release(t.Context(), "rebuild", next.Token); err != nil {
		t.Fatal(err)
	}
	acquire(t, here, ask("rebuild", "worker", time.Minute))
}

func tokensGrow(t *testing.T, b Backend) {
	all := []*leases.Service{b.sidecar(t, "shop-0"), b.sidecar(t, "shop-1")}
	var last int64
	for i := range 6 {
		name := []string{"rebuild", "mails"}[i%2]
		s := all[i/2%2]
		l := acquire(t, s, ask(name, "worker", time.Minute))
		if l.Token <= last {
			t.Errorf("token %d after %d", l.Token, last)
		}
		last = l.Token
		if err := s.Release(t.Context(), name, l.Token); err != nil {
			t.Fatal(err)
		}
	}
}

func repeatable(t *testing.T, b Backend) {
	here, there := b.sidecar(t, "shop-0"), b.sidecar(t, "shop-1")
	r := ask("rebuild", "worker", time.Minute)
	r.Key = "0193a1b2"
	first := acquire(t, here, r)
	again := acquire(t, here, r)
	if first.Repeated || !again.Repeated || again.Token != first.Token {
		t.Errorf("the same request gave %+v, then %+v", first, again)
	}
	changed := r
	changed.Holder = "other"
	if _, err := here.Acquire(t.Context(), changed); !errors.Is(err, leases.ErrKeyReused) {
		t.Errorf("the same key for another holder = %v, want %v", err, leases.ErrKeyReused)
	}
	if !b.Exclusive { // replicas that choose the same key are two holders
		wantHeld(t, there, r, first)
	}
	if err := here.Release(t.Context(), "rebuild", first.Token); err != nil {
		t.Fatal(err)
	}
	if next := acquire(t, here, r); next.Repeated || next.Token <= first.Token {
		t.Errorf("after a release the same request gave %+v, want a new lease", next)
	}
}
