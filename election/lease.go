package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNotLeading is what Check's errors wrap, with the reason.
var ErrNotLeading = errors.New("not leading")

// Lease is the leadership of one term, in the hands of the one who won it. Its methods may be called
// at any time by any goroutine; none of them waits.
type Lease struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	began     time.Time
	annotated int64
	term      atomic.Int64
	renew     chan struct{} // asks the elector to renew at once

	mu    sync.Mutex // so that an extension does not race with another
	until atomic.Pointer[instant]
	timer *time.Timer // ends the term at until, whatever else hangs
}

// newLease returns a lease that ends with end, or when until has come (nil: never). It takes over
// values from ctx but not its end, because a term ends in an order of its own.
func newLease(ctx context.Context, until *instant, annotated int64) *Lease {
	l := &Lease{began: time.Now(), annotated: annotated, renew: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if until != nil {
		l.until.Store(until)
		l.timer = time.AfterFunc(until.mono-now().mono, func() { _ = l.Check() })
	}
	return l
}

// Check returns nil while the term goes on, else an ErrNotLeading with the reason. It reads the
// clocks anew each time, so that a process that was stopped finds out before it acts. Call it as the
// last step before each callback.
func (l *Lease) Check() error {
	if l.ctx.Err() == nil {
		until := l.until.Load()
		if until == nil || !now().reached(*until) {
			return nil
		}
		l.end(ErrExpired)
	}
	return fmt.Errorf("%w: %w", ErrNotLeading, context.Cause(l.ctx))
}

// Valid reports whether the term goes on: Check without the reason.
func (l *Lease) Valid() bool { return l.Check() == nil }

// Term is the fencing term that SetTerm has set, 0 before.
func (l *Lease) Term() int64 { return l.term.Load() }

// SetTerm tells the elector the fencing term that the ledger gave to this leadership. It is written
// into the election record at once, beside the next renewal. Terms only grow: a smaller one is ignored.
func (l *Lease) SetTerm(term int64) {
	for {
		old := l.term.Load()
		if term <= old {
			return
		}
		if l.term.CompareAndSwap(old, term) {
			break
		}
	}
	select {
	case l.renew <- struct{}{}:
	default: // asked for already
	}
}

// AnnotatedTerm is the greatest fencing term of the leaders before that this process has seen in the
// election record, when this term was won or earlier; 0: none is known. The next term must be greater.
func (l *Lease) AnnotatedTerm() int64 { return l.annotated }

// Resign gives the term up: the Lease is invalid when it returns. The elector releases the record once
// lead has returned, and campaigns again after a pause that grows from one such term to the next.
func (l *Lease) Resign(reason error) {
	if reason == nil {
		l.end(ErrResigned)
		return
	}
	l.end(fmt.Errorf("%w: %w", ErrResigned, reason))
}

// cause is why the term ended; nil while it goes on.
func (l *Lease) cause() error { return context.Cause(l.ctx) }

// end ends the term; the first cause counts.
func (l *Lease) end(cause error) { l.cancel(cause) }

// extend moves the end of the term, unless the term is over. An answer that came too late changes
// nothing.
func (l *Lease) extend(until instant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Check(); err != nil {
		return err
	}
	if old := l.until.Load(); until.mono > old.mono {
		l.until.Store(&until)
		l.timer.Reset(until.mono - now().mono)
	}
	return nil
}

// instant is one moment on two clocks. The monotonic one cannot be set but may stand still while the
// machine is suspended; the wall clock goes on then but may be set. What expires does so by whichever
// comes first.
type instant struct {
	mono time.Duration // since origin
	wall time.Time
}

var origin = time.Now()

func now() instant { return instantOf(time.Now()) }

// instantOf needs a time with a monotonic reading, as time.Now gives it.
func instantOf(t time.Time) instant {
	return instant{mono: t.Sub(origin), wall: t.Round(0)}
}

func (i instant) add(d time.Duration) instant {
	return instant{mono: i.mono + d, wall: i.wall.Add(d)}
}

// reached reports whether either clock shows limit or later.
func (i instant) reached(limit instant) bool {
	return i.mono >= limit.mono || !i.wall.Before(limit.wall)
}
