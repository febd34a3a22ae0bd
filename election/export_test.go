package election

import (
	"testing"
	"time"
)

// Reached reports whether a limit is reached when, since it was set, so much time has passed on the
// monotonic clock and so much on the wall clock, of lasts.
func Reached(monotonic, wall, lasts time.Duration) bool {
	set := now()
	limit := set.add(lasts)
	return instant{mono: set.mono + monotonic, wall: set.wall.Add(wall)}.reached(limit)
}

// NewLease returns a lease that lasts, as an elector makes it.
func NewLease(tb testing.TB, lasts time.Duration) *Lease {
	tb.Helper()
	l := newLease(tb.Context(), new(now().add(lasts)), 0)
	tb.Cleanup(func() { l.end(ErrResigned) })
	return l
}

// Extend is what a renewal that was sent after ago does.
func (l *Lease) Extend(ago, lasts time.Duration) error { return l.extend(now().add(lasts - ago)) }
