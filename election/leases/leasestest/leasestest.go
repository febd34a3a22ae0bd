// Package leasestest holds the conformance suite of the named leases: what they promise, over
// every store that they may be kept in.
package leasestest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/election/leases"
)

// Backend is one table, which is empty.
type Backend struct {
	// Open returns a store on the table: one for each sidecar where several may have it open.
	Open func(t *testing.T) leases.Store
	// Exclusive: one process has the table for itself, and whatever starts after it is its successor.
	Exclusive bool
}

// tests are the suite.
var tests = []struct {
	name string
	test func(*testing.T, Backend)
}{
	{"a lease is held by one", heldByOne},
	{"it is not re-entrant", notReentrant},
	{"a renewal needs the token", renewalNeedsToken},
	{"a release frees at once and may be repeated", release},
	{"tokens grow", tokensGrow},
	{"a key makes an acquisition repeatable", repeatable},
	{"a new sidecar sees a whole time to live before it takes over", expiry},
	{"the holder's time ends by its own sidecar's clock", ownExpiry},
	{"an acquisition waits for a release", waits},
	{"a wait is bounded", waitIsBounded},
	{"a restarted sidecar renews, another pod does not", restart},
	{"of many who contend one wins at a time", contention},
	{"there is an end to how many are held", full},
	{"what is asked for is checked", hostile},
}

// Run runs the suite over a store on the network. Each test asks setup for a table of its own.
func Run(t *testing.T, setup func(t *testing.T) Backend) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, setup(t))
		})
	}
}

// RunInBubble runs the suite over a store of this process, in simulated time.
func RunInBubble(t *testing.T, setup func(t *testing.T) Backend) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.test(t, setup(t)) })
		})
	}
}

// processes tells one from another.
var processes atomic.Int64

// sidecar opens the table in a pod. Each call is another process.
func (b Backend) sidecar(t *testing.T, pod string) *leases.Service {
	t.Helper()
	s, err := leases.New(leases.Options{
		Store: b.Open(t), Self: leases.Self{Node: fmt.Sprintf("%s_%d", pod, processes.Add(1)), Place: "uid-of-" + pod, Exclusive: b.Exclusive},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func ask(name, holder string, ttl time.Duration) leases.AcquireRequest {
	return leases.AcquireRequest{Name: name, Holder: holder, TTL: ttl}
}

func acquire(t *testing.T, s *leases.Service, r leases.AcquireRequest) leases.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire(%+v) = %v", r, err)
	}
	if !l.Held || l.Name != r.Name || l.Holder != r.Holder || l.TTL != r.TTL || l.Valid <= 0 || l.Valid > r.TTL {
		t.Fatalf("Acquire(%+v) = %+v", r, l)
	}
	return l
}

// wantHeld expects that a lease is refused because of that holder's token.
func wantHeld(t *testing.T, s *leases.Service, r leases.AcquireRequest, by leases.Lease) {
	t.Helper()
	l, err := s.Acquire(t.Context(), r)
	held, ok := errors.AsType[*leases.HeldError](err)
	if !ok {
		t.Fatalf("Acquire(%+v) = %+v, %v, want it held by %s", r, l, err, by.Holder)
	}
	if held.Holder != by.Holder || held.Token != by.Token || held.Node != by.Node || held.FreeIn <= 0 {
		t.Fatalf("Acquire(%+v) = %+v, want it held by %+v", r, held, by)
	}
}

// waitUntil waits for a moment that the thing under test counts by as well.
func waitUntil(t *testing.T, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
