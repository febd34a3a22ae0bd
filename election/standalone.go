package election

import (
	"context"
	"fmt"
	"time"
)

// Standalone is the elector of a single instance: it leads whenever it may.
type Standalone struct{ *candidate }

var _ Elector = (*Standalone)(nil)

// NewStandalone returns an elector without competitors.
func NewStandalone(opts Options) (*Standalone, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	c := newCandidate(opts)
	c.pauses = pauses{first: time.Second, max: time.Minute}
	return &Standalone{c}, nil
}

// askEvery is how often eligibility is looked at without being told that it changed.
const askEvery = 5 * time.Second

// Run leads until ctx ends.
func (s *Standalone) Run(ctx context.Context, lead Lead) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		s.turned()
		err := s.opts.Eligible()
		if err == nil {
			if !s.sleep(ctx, s.term(ctx, tick.C, lead)) {
				return context.Cause(ctx)
			}
			continue
		}
		s.ineligible(ctx, err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.opts.Changed:
		case <-tick.C:
		}
	}
}

// term leads one term and answers with the pause before the next.
func (s *Standalone) term(ctx context.Context, tick <-chan time.Time, lead Lead) time.Duration {
	lease := newLease(ctx, nil, 0)
	done := s.begin(ctx, lease, lead)
	for lease.Valid() {
		s.turned()
		select {
		case <-lease.ctx.Done():
		case <-ctx.Done():
			lease.end(context.Cause(ctx))
		case <-s.opts.Changed:
			s.check(lease)
		case <-tick:
			s.check(lease)
		}
	}
	pause := s.ended(ctx, lease)
	if !s.handedBack(done) {
		s.await(ctx, done)
	}
	return pause
}

// check ends the term of one who may not lead any more.
func (c *candidate) check(lease *Lease) {
	if err := c.opts.Eligible(); err != nil {
		lease.end(fmt.Errorf("%w: %w", ErrIneligible, err))
	}
}

// sleep pauses after a term, taking care that the loop shows progress, and reports whether ctx goes on.
func (s *Standalone) sleep(ctx context.Context, d time.Duration) bool {
	until := time.Now().Add(d)
	for {
		s.turned()
		left := time.Until(until)
		if left <= 0 || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		s.wait(ctx, pausing)
		timer := time.NewTimer(min(left, askEvery))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Status says what is known at this moment.
func (s *Standalone) Status() Status {
	status := Status{Identity: s.opts.Identity, Lease: "standalone", Waiting: s.waitingFor(), LastTurn: s.lastTurn()}
	if lease := s.leading(); lease != nil {
		status.Holder, status.Leading, status.Term = s.opts.Identity, true, lease.Term()
		status.AcquiredAt = lease.began
		status.RenewedAt = time.Now()
		status.SeenAt = status.RenewedAt
	}
	return status
}
