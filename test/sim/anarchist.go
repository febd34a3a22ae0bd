package sim

import (
	"context"
	"errors"
	"time"
)

// forever is later than any simulation.
const forever = 1000 * time.Hour

var errRevoked = errors.New("the adversary took the lease")

// anarchist is an election that means nothing: it gives its node a valid Lease whenever the dice
// say so, whoever else has one. Safety must not rest on it. Once the faults have ended it becomes an
// election of the simplest kind: whoever holds its Lease keeps it until it gives it up, and only
// one does.
type anarchist struct{ node *node }

// run implements [elector].
func (a *anarchist) run(ctx context.Context) {
	n := a.node
	for ctx.Err() == nil {
		r := n.world.dice.roll("reign", n.life)
		sleep(ctx, between(r, 10*time.Millisecond, 20*time.Second))
		reign := between(r, 200*time.Millisecond, 60*time.Second)
		if n.gate("reign") != nil || ctx.Err() != nil {
			return
		}
		if n.world.isQuiet() && !n.world.throne(n) {
			continue
		}
		until := n.now().add(forever)
		l := newLease(n, until, 0)
		n.world.logf(n.name, "is given a lease")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = n.engine.Lead(l.ctx, l)
		}()
		timer := time.NewTimer(reign)
		for l.ctx.Err() == nil {
			select {
			case <-l.ctx.Done():
			case <-ctx.Done():
				l.end(n.whyRetreat())
			case <-n.dead:
				l.end(errDead)
			case <-timer.C:
				if n.world.isQuiet() && n.world.throne(n) {
					continue // the timer is not set again: it stays until it resigns
				}
				l.end(errRevoked)
			}
		}
		timer.Stop()
		n.world.logf(n.name, "lease over: %v", context.Cause(l.ctx))
		<-done
		n.world.abdicate(n)
		if errors.Is(context.Cause(l.ctx), errLeaseResigned) {
			sleep(ctx, between(r, 100*time.Millisecond, 5*time.Second))
		}
	}
}

// throne gives the one Lease of quiet times to a node, or reports that another has it.
func (w *world) throne(n *node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.king == nil {
		w.king = n
	}
	return w.king == n
}

func (w *world) abdicate(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.king == n {
		w.king = nil
	}
}
