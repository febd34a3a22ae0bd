package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

// renewal is how one call to renew the Lease ended.
type renewal struct {
	sent instant
	took time.Duration
	err  error
}

// term leads one term that is held since the moment given, and answers with the pause before the next.
func (k *Kubernetes) term(ctx context.Context, held instant, lead Lead) (pause time.Duration) {
	lease := newLease(ctx, new(held.add(k.opts.RenewDeadline)), k.sight.greatestTerm())
	done := k.begin(ctx, lease, lead)
	k.noticeHolder(k.sight.get())

	k.keep(ctx, lease, held)

	pause = k.ended(ctx, lease)
	returned := k.handedBack(done)
	if !lost(lease.cause()) {
		k.release(ctx)
	}
	k.noticeHolder(k.sight.get())
	if !returned {
		k.await(ctx, done)
	}
	return pause
}

// keep renews the Lease until the term is over, and ends the term when it must. No call of its own
// can delay that: the lease ends itself when its time has come, and calls run beside the loop.
func (k *Kubernetes) keep(ctx context.Context, lease *Lease, held instant) {
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var (
		interval = k.opts.renewEvery()
		renewed  = make(chan renewal, 1)
		calling  bool
		failures int
		timer    = time.NewTimer(held.mono + interval - now().mono)
	)
	defer timer.Stop()
	defer func() { // the record is written by one call at a time: the release comes next
		cancel()
		if calling {
			<-renewed
		}
	}()
	start := func() {
		calling = true
		k.check(lease)
		go func() { renewed <- k.renew(callCtx, lease) }()
	}
	for lease.Valid() {
		k.turned()
		asked, due := lease.renew, timer.C
		if calling {
			asked, due = nil, nil // one at a time; what was asked for meanwhile comes next
		}
		select {
		case <-lease.ctx.Done():
		case <-ctx.Done():
			lease.end(context.Cause(ctx))
		case <-k.opts.Changed:
			k.check(lease)
		case <-k.sight.changed:
			k.verify(lease)
		case <-asked:
			start()
		case <-due:
			start()
		case r := <-renewed:
			calling = false
			k.observe(Renewed{Took: r.took, Err: r.err})
			if r.err == nil {
				failures = 0
				timer.Reset(r.sent.mono + interval - now().mono)
				if err := lease.extend(r.sent.add(k.opts.RenewDeadline)); err != nil {
					return
				}
				continue
			}
			k.verify(lease)
			level := slog.LevelWarn
			if failures > 0 || errors.Is(r.err, errConflict) {
				level = slog.LevelDebug // one line for each row of failures
			}
			k.log.LogAttrs(ctx, level, "renewal failed", logkey.Err(r.err))
			timer.Reset(min(k.backoff(failures, r.err), interval/5))
			failures++
		}
	}
}

// renew sends one renewal.
func (k *Kubernetes) renew(ctx context.Context, lease *Lease) renewal {
	began := time.Now()
	base := k.sight.get().lease
	if !k.record.own(base) {
		return renewal{err: errConflict}
	}
	sent, err := k.record.hold(ctx, base, false, lease.Term())
	return renewal{sent: sent, took: time.Since(began), err: err}
}

// verify ends the term if the Lease is no longer this process's by what was last seen of it.
func (k *Kubernetes) verify(lease *Lease) {
	s := k.sight.get()
	switch {
	case s.lease == nil:
		lease.end(ErrMissing)
	case s.holder() == "":
		lease.end(ErrEmptied)
	case !k.record.own(s.lease):
		lease.end(fmt.Errorf("%w: it names %q", ErrTaken, s.holder()))
	default:
		if err := s.foreign(k.opts.App); err != nil {
			lease.end(err)
		}
	}
}

// release writes that nobody holds the Lease, if this process does, so that the next leader need not
// wait. It tries for as long as three calls may take, whatever has become of ctx.
func (k *Kubernetes) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*k.opts.CallTimeout)
	defer cancel()
	for failures := 0; ; failures++ {
		s := k.sight.get()
		var err error
		if k.record.own(s.lease) {
			err = k.record.free(ctx, s.lease)
		} else {
			// An attempt to take it may have been stored without an answer.
			_, err = k.record.read(ctx, "")
		}
		if err == nil && !k.record.own(k.sight.get().lease) || errors.Is(err, ErrMissing) {
			return
		}
		if err == nil {
			err = errConflict // a renewal whose answer was lost came first
		}
		if ctx.Err() != nil {
			k.log.LogAttrs(ctx, slog.LevelWarn, "release failed, the next leader waits for the lease duration", logkey.Err(err))
			return
		}
		timer := time.NewTimer(k.backoff(failures, err))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}
