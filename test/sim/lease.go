package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine"
)

// lease is one term in the hands of an engine.
type lease struct {
	node      *node
	ctx       context.Context //nolint:containedctx // the term is this context's life
	cancel    context.CancelCauseFunc
	annotated int64
	renew     chan struct{}

	mu     sync.Mutex
	until  instant
	timer  *time.Timer
	number int64
}

var _ engine.Lease = (*lease)(nil)

func newLease(n *node, until instant, annotated int64) *lease {
	l := &lease{node: n, annotated: annotated, until: until, renew: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.timer = time.AfterFunc(until.mono-n.mono(), l.expire)
	context.AfterFunc(l.ctx, func() { l.timer.Stop() })
	return l
}

// expire ends the term when its time has come. In a process that stood still this is one of many
// things that happen at once when it goes on, and not always the first of them.
func (l *lease) expire() {
	if l.node.gate("expiry") != nil {
		l.end(errDead)
		return
	}
	l.mu.Lock()
	left := l.until.mono - l.node.mono()
	l.mu.Unlock()
	if left > 0 {
		l.timer.Reset(left)
		return
	}
	_ = l.Check()
}

// Check implements [engine.Lease].
func (l *lease) Check() error {
	if l.ctx.Err() == nil {
		l.mu.Lock()
		over := l.node.now().reached(l.until)
		l.mu.Unlock()
		if !over {
			return nil
		}
		l.end(errLeaseExpired)
	}
	return fmt.Errorf("not leading: %w", context.Cause(l.ctx))
}

// AnnotatedTerm implements [engine.Lease].
func (l *lease) AnnotatedTerm() int64 { return l.annotated }

// SetTerm implements [engine.Lease].
func (l *lease) SetTerm(term int64) {
	l.mu.Lock()
	l.number = term
	l.mu.Unlock()
	select {
	case l.renew <- struct{}{}:
	default:
	}
}

// Resign implements [engine.Lease].
func (l *lease) Resign(reason error) { l.end(fmt.Errorf("%w: %w", errLeaseResigned, reason)) }

func (l *lease) term() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.number
}

func (l *lease) end(cause error) { l.cancel(cause) }

func (l *lease) extend(until instant) error {
	if err := l.Check(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.mono > l.until.mono {
		l.until = until
		l.timer.Reset(until.mono - l.node.mono())
	}
	return nil
}
