package election

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// The names that this program gives to things on a Lease.
const (
	// TermAnnotation holds the fencing term of the holder, or of the one before while it is new.
	TermAnnotation = "leasecron.io/term"
	// AppLabel names the workload whose Lease it is. It goes before the common label.
	AppLabel     = "leasecron.io/app"
	appNameLabel = "app.kubernetes.io/name"
)

// How much the moments are spread at which several candidates reach for the Lease. A released one
// is waited for, so it is little.
const (
	spreadReleased = 10 * time.Millisecond
	spreadExpired  = 50 * time.Millisecond
)

// sighting is what is known of the Lease object.
type sighting struct {
	known   bool                  // it was looked for at least once
	lease   *coordinationv1.Lease // as last seen, never changed; nil: it does not exist
	changed time.Time             // when its record was last seen to change, by this process's monotonic clock
	seen    time.Time             // when it was last seen at all
	watched bool                  // the watch is up
	spread  float64               // in [0,1), drawn anew with each change
}

// holder is who holds the Lease by the record, whether or not that has run out.
func (s sighting) holder() string {
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// runsOut is when the holder's time is over, counted by the holder's duration from the last change
// that was seen. What the record says about times of day is never looked at: whose clock was it?
func (s sighting) runsOut(own time.Duration) time.Time {
	d := own
	if s.lease != nil && s.lease.Spec.LeaseDurationSeconds != nil {
		d = time.Duration(*s.lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return s.changed.Add(min(max(d, time.Second), maxDuration))
}

// foreign returns an error if the Lease is labelled for a workload other than app.
func (s sighting) foreign(app string) error {
	if s.lease == nil || app == "" {
		return nil
	}
	owner := cmp.Or(s.lease.Labels[AppLabel], s.lease.Labels[appNameLabel], app)
	if owner != app {
		return fmt.Errorf("%w: Lease %s/%s is labelled for %q, this is %q; give each workload a Lease of its own",
			ErrForeign, s.lease.Namespace, s.lease.Name, owner, app)
	}
	return nil
}

// term is the fencing term that the Lease carries; 0: none, or not a number.
func (s sighting) term() int64 {
	if s.lease == nil {
		return 0
	}
	n, err := strconv.ParseInt(s.lease.Annotations[TermAnnotation], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// move is what a candidate does next about the Lease.
type move struct {
	at     time.Time // when to take it; zero: not before something changes
	reason string    // why not now
	err    error     // why not now, if someone has to do something about it
}

// next decides. Same sighting, same answer.
func (s sighting) next(identity, app string, own time.Duration) move {
	spread := func(d time.Duration) time.Duration { return time.Duration(s.spread * float64(d)) }
	switch holder := s.holder(); {
	case !s.known:
		return move{reason: "the Lease has not been read yet"}
	case s.lease == nil:
		return move{err: ErrMissing}
	case s.foreign(app) != nil:
		return move{err: s.foreign(app)}
	case holder == "":
		return move{at: s.changed.Add(spread(spreadReleased)), reason: "the Lease was released"}
	case holder == identity:
		// The record of a term that is over, or of an attempt whose answer was lost: nobody leads by it.
		return move{at: s.changed, reason: "the Lease is still this process's own"}
	default:
		return move{at: s.runsOut(own).Add(spread(spreadExpired)), reason: fmt.Sprintf(
			"%s holds the Lease until it fails to renew it for %v", holder, s.runsOut(own).Sub(s.changed))}
	}
}

// sight keeps the latest sighting, whoever had it: watch, poll or the answer to a write.
type sight struct {
	changed chan struct{} // receives after each change

	mu   sync.Mutex
	s    sighting
	term int64 // the greatest that the Lease ever carried, whatever has become of the object since
}

func newSight() *sight { return &sight{changed: make(chan struct{}, 1)} }

func (t *sight) get() sighting {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.s
}

// greatestTerm is the greatest fencing term that the Lease ever carried as far as this process has seen,
// also before it was deleted or emptied.
func (t *sight) greatestTerm() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term
}

// see takes in the object as it was at some moment up to now. What is older than what is known is
// dropped, as a watch may lag behind the answer to a write; except that instead of what the API
// server has just refused as outdated (refused is its resourceVersion) anything counts: after a
// restored backup the versions begin anew.
func (t *sight) see(lease *coordinationv1.Lease, refused string) {
	at := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.term = max(t.term, sighting{lease: lease}.term())
	if old := t.s.lease; old != nil && lease != nil && old.ResourceVersion != refused {
		if order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, old.ResourceVersion); err == nil && order < 0 {
			return
		}
	}
	if !t.s.known || !sameRecord(t.s.lease, lease) {
		t.s.changed, t.s.spread = at, rand.Float64() //nolint:gosec // spreads load, hides nothing
	}
	t.s.known, t.s.lease, t.s.seen = true, lease, at
	t.notify()
}

// watch notes whether the watch is up.
func (t *sight) watch(up bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s.watched != up {
		t.s.watched = up
		t.notify()
	}
}

func (t *sight) notify() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// sameRecord reports whether two objects hold one and the same election record: an edit of their
// labels does not prove that the holder lives.
func sameRecord(a, b *coordinationv1.Lease) bool {
	if a == nil || b == nil {
		return a == b
	}
	s, t := a.Spec, b.Spec
	return a.UID == b.UID &&
		equal(s.HolderIdentity, t.HolderIdentity) &&
		equal(s.LeaseDurationSeconds, t.LeaseDurationSeconds) &&
		equal(s.LeaseTransitions, t.LeaseTransitions) &&
		s.AcquireTime.Equal(t.AcquireTime) &&
		s.RenewTime.Equal(t.RenewTime)
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
