package leases

import (
	"context"
	"errors"
	"slices"
	"time"
)

// pending is a command that waits for its outcome.
type pending struct {
	command
	done chan outcome // takes one
}

// errUnchanged ends a swap that has nothing to write.
var errUnchanged = errors.New("nothing to change")

var errClosed = errors.New("this sidecar is stopping")

// submit has a command carried out by the next swap, together with all others that wait for one.
// Once ctx ends it waits no longer: the command is surely not carried out if no swap has taken it.
func (s *Service) submit(ctx context.Context, c command) (outcome, error) {
	p := &pending{command: c, done: make(chan outcome, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	turn := s.turn
	for {
		select {
		case turn <- struct{}{}:
			turn = nil // its outcome is coming, by this swap or the one before
			if !s.start(func() { s.flush(); <-s.turn }) {
				<-s.turn
				return outcome{}, &StoreError{Unknown: !s.withdraw(p), Err: errClosed}
			}
		case out := <-p.done:
			return out, out.err
		case <-ctx.Done():
			return outcome{}, &StoreError{Unknown: !s.withdraw(p), Err: context.Cause(ctx)}
		}
	}
}

// start runs f, unless the service was closed.
func (s *Service) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// withdraw takes a command back that no swap has taken.
func (s *Service) withdraw(p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, p)
	if i < 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// flush carries out what waits, by one swap.
func (s *Service) flush() {
	s.mu.Lock()
	batch := s.queue
	s.queue = nil
	s.mu.Unlock()
	if len(batch) == 0 {
		return // the swap before has taken all
	}
	commands := make([]command, len(batch))
	for i, p := range batch {
		commands[i] = p.command
	}
	ctx, cancel := context.WithTimeout(s.life, s.timeout)
	defer cancel()

	start := s.now() // validity counts from before anything is sent
	var outcomes []outcome
	var seen *Table
	table, err := s.store.Swap(ctx, func(t *Table) error {
		at := time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		seen = t.clone()
		s.sight(seen, at)
		var changed bool
		if outcomes, changed = apply(t, commands, s.self, &s.view, start); !changed {
			return errUnchanged
		}
		return nil
	})
	switch {
	case errors.Is(err, errUnchanged):
		// The table was read in this swap. Should an earlier attempt of it have been stored and
		// written over meanwhile, what was decided by the table as it is holds all the same.
		s.observe(seen, nil)
	case err != nil:
		s.observe(nil, err)
		failed := &StoreError{Unknown: true, Err: err}
		for _, p := range batch {
			p.done <- outcome{err: failed}
		}
		return
	default:
		s.observe(table, nil)
	}
	s.settle(commands, outcomes, start)
	for i, p := range batch {
		p.done <- outcomes[i]
	}
}

// settle takes note of what the swap has granted.
func (s *Service) settle(commands []command, outcomes []outcome, start Moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range outcomes {
		c, o := &commands[i], &outcomes[i]
		switch {
		case o.granted:
			s.view.granted(c.name, o.entry.Token, start.Add(o.entry.TTL()))
			if c.op == opAcquire && !o.repeated {
				s.stats.Acquired++
			}
		case c.op == opRenew:
			s.stats.Lost++
			if lost, ok := errors.AsType[*LostError](o.err); ok && !lost.Expired {
				s.view.gaveUp(c.name, c.token)
			}
		case c.op == opRelease:
			s.view.gaveUp(c.name, c.token)
		}
	}
}

// observe takes note of a table that was read or written, or of an error of the store.
func (s *Service) observe(t *Table, err error) {
	at := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
	if t == nil {
		return
	}
	s.table, s.seenAt = t, at
	s.sight(t, at)
}

// sight adds a table to the view. The caller holds s.mu.
func (s *Service) sight(t *Table, at time.Time) {
	if s.view.Observe(t, at.Sub(s.origin)) {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// news is closed when something new has been seen.
func (s *Service) news() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
