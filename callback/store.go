package callback

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Store remembers occurrences, so that the work of one is done once however many attempts and
// senders there are. Its methods may be called concurrently.
//
// [MemoryStore] serves one process. Replicas of an app that share a database want a Store there,
// since a retry or recovery may reach another replica; the example of this type shows one.
type Store interface {
	// Claim takes the occurrence of run for it, or says who came before. Of several callers at
	// once exactly one gets [Claimed]. An error lets the attempt fail with 503, to be retried.
	Claim(ctx context.Context, run *Run) (Claim, error)
	// Finish keeps the message with which the claimed work succeeded, at most 1 KiB.
	Finish(ctx context.Context, run *Run, message string) error
	// Forget gives a claim up after a failure, so that the next attempt may pass.
	Forget(ctx context.Context, run *Run) error
}

// ClaimState is what a store knows about an occurrence.
type ClaimState int

const (
	// Claimed means that nobody has it, and the caller has it now.
	Claimed ClaimState = iota + 1
	// InProgress means that another delivery is working on it.
	InProgress
	// Done means that the work has been done.
	Done
)

// Claim is a store's answer.
type Claim struct {
	State ClaimState
	// Message of the success, with Done.
	Message string
	// Released, with InProgress: closed when it is worth asking again. A store that cannot tell
	// leaves it nil and is asked again once a second.
	Released <-chan struct{}
}

// ErrStoreFull says that as many occurrences are in progress as a [MemoryStore] may hold.
var ErrStoreFull = errors.New("too many occurrences are in progress")

const (
	defaultMaxEntries = 10_000
	defaultMaxAge     = 24 * time.Hour
)

// MemoryOptions bound a [MemoryStore].
type MemoryOptions struct {
	MaxEntries int           // occurrences kept; default 10,000, with messages at most some 10 MB
	MaxAge     time.Duration // of what is done; default 24 h
}

// MemoryStore keeps occurrences in this process. What is done is forgotten, the oldest first, at
// the bounds of its options; what is in progress never is.
type MemoryStore struct {
	maxEntries int
	maxAge     time.Duration

	mu      sync.Mutex
	entries map[string]*memoryEntry // by occurrence
	done    *list.List              // of *memoryEntry, in the order in which they were done
}

type memoryEntry struct {
	occurrence string
	runID      string
	message    string
	doneAt     time.Time     // zero: in progress
	released   chan struct{} // closed at the end
	place      *list.Element // in done
}

var _ Store = (*MemoryStore)(nil)

// NewMemoryStore returns an empty store.
func NewMemoryStore(o MemoryOptions) *MemoryStore {
	s := &MemoryStore{
		maxEntries: o.MaxEntries, maxAge: o.MaxAge,
		entries: make(map[string]*memoryEntry), done: list.New(),
	}
	if s.maxEntries <= 0 {
		s.maxEntries = defaultMaxEntries
	}
	if s.maxAge <= 0 {
		s.maxAge = defaultMaxAge
	}
	return s
}

// Claim implements [Store].
func (s *MemoryStore) Claim(_ context.Context, run *Run) (Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(time.Now())
	if e, ok := s.entries[run.Occurrence]; ok {
		if e.place == nil {
			return Claim{State: InProgress, Released: e.released}, nil
		}
		return Claim{State: Done, Message: e.message}, nil
	}
	for len(s.entries) >= s.maxEntries {
		oldest := s.done.Front()
		if oldest == nil {
			return Claim{}, ErrStoreFull
		}
		s.drop(oldest)
	}
	s.entries[run.Occurrence] = &memoryEntry{occurrence: run.Occurrence, runID: run.ID, released: make(chan struct{})}
	return Claim{State: Claimed}, nil
}

// Finish implements [Store].
func (s *MemoryStore) Finish(_ context.Context, run *Run, message string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.held(run)
	if e == nil {
		return nil
	}
	e.message, e.doneAt = clip(message), time.Now()
	e.place = s.done.PushBack(e)
	close(e.released)
	return nil
}

// Forget implements [Store].
func (s *MemoryStore) Forget(_ context.Context, run *Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.held(run); e != nil {
		delete(s.entries, run.Occurrence)
		close(e.released)
	}
	return nil
}

// held returns the entry that the run has claimed and neither finished nor given up.
func (s *MemoryStore) held(run *Run) *memoryEntry {
	e, ok := s.entries[run.Occurrence]
	if !ok || e.runID != run.ID || e.place != nil {
		return nil
	}
	return e
}

func (s *MemoryStore) expire(now time.Time) {
	for first := s.done.Front(); first != nil; first = s.done.Front() {
		if e, _ := first.Value.(*memoryEntry); now.Sub(e.doneAt) < s.maxAge {
			return
		}
		s.drop(first)
	}
}

func (s *MemoryStore) drop(place *list.Element) {
	if e, ok := s.done.Remove(place).(*memoryEntry); ok {
		delete(s.entries, e.occurrence)
	}
}
