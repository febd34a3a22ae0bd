package leases

import (
	"context"
	"math/rand/v2"
	"time"
)

// await waits for the moment at which a lease that is held is worth asking for again, at most that
// long, and reports whether there is one. Everybody who waits shares one read of the store a second:
// with a watch, each sidecar would need two more rights, and a stream for a thing that is seldom used.
func (s *Service) await(ctx context.Context, held *HeldError, left time.Duration, news <-chan struct{}) bool {
	free := time.NewTimer(min(held.FreeIn, left))
	defer free.Stop()
	poll := time.NewTimer(spread())
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-free.C:
			return held.FreeIn <= left
		case <-news:
			if s.worthAsking(held) {
				return true
			}
			news = s.news()
		case <-poll.C:
			// A store that does not answer is asked again; so is one that the pace keeps off.
			_, _ = s.look(ctx, pollEvery/2)
			poll.Reset(spread())
		}
	}
}

// worthAsking reports whether a lease is no longer what kept a request off.
func (s *Service) worthAsking(held *HeldError) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		return true
	}
	e, ok := s.table.Leases[held.Name]
	return !ok || e.Token != held.Token
}

// spread keeps sidecars that wait for one lease from asking at the same moment.
func spread() time.Duration {
	return pollEvery/2 + rand.N(pollEvery) //nolint:gosec // spreads readers; nothing to guess
}

// look returns the table as it was seen at most maxAge ago. Those who ask at once share one read.
func (s *Service) look(ctx context.Context, maxAge time.Duration) (*Table, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, &StoreError{Err: context.Cause(ctx)}
	}
	s.mu.Lock()
	table, age := s.table, time.Since(s.seenAt)
	s.mu.Unlock()
	if table != nil && age < maxAge {
		return table, nil
	}
	if err := s.pace.Wait(ctx); err != nil {
		return nil, &StoreError{Err: err}
	}
	table, err := s.store.Read(ctx)
	if err != nil {
		if ctx.Err() == nil { // else nobody waits for it, and it says nothing of the store
			s.observe(nil, err)
		}
		return nil, &StoreError{Err: err}
	}
	s.observe(table, nil)
	return table, nil
}
