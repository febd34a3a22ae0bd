package callback

import (
	"context"
	"fmt"
	"sync"
)

// Fence refuses callbacks of leaders that have been overtaken. Its methods may be called
// concurrently.
//
// A token protects what it is compared at. Where replicas of an app write to a shared database,
// compare it there, in the transaction that does the work: the example of this type shows how.
// A [MemoryFence] only knows what this process was sent; that is enough where all sidecars call
// one and the same process.
type Fence interface {
	// Check remembers the token of run as the highest of its job, or returns an error that wraps
	// [ErrStaleToken] if a higher one was seen. Any other error fails the attempt with 500. Runs
	// without a token pass.
	Check(ctx context.Context, run *Run) error
}

const defaultMaxJobs = 10_000

// MemoryFence keeps the highest token of each job in this process. All its callbacks have to come
// from the sidecars of one app, since the tokens of two do not compare.
type MemoryFence struct {
	maxJobs int

	mu      sync.Mutex
	highest map[string]int64 // by job
	floor   int64            // for jobs that are not in highest
}

var _ Fence = (*MemoryFence)(nil)

// NewMemoryFence returns a fence that has seen nothing. It keeps at most 10,000 jobs; beyond
// that it judges those with the lowest tokens together, by the highest of these.
func NewMemoryFence() *MemoryFence {
	return &MemoryFence{maxJobs: defaultMaxJobs, highest: make(map[string]int64)}
}

// Check implements [Fence].
func (f *MemoryFence) Check(_ context.Context, run *Run) error {
	if run.Term == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, ok := f.highest[run.Job]
	if !ok {
		seen = f.floor
	}
	if run.Term < seen {
		return fmt.Errorf("%w (token %d, seen %d)", ErrStaleToken, run.Term, seen)
	}
	if !ok && len(f.highest) >= f.maxJobs {
		f.makeRoom()
	}
	f.highest[run.Job] = run.Term
	return nil
}

// makeRoom drops the job with the lowest token. That leaders count for all jobs together makes
// the floor right: a token below it is an overtaken leader's, whatever the job.
func (f *MemoryFence) makeRoom() {
	var lowest string
	for job, token := range f.highest {
		if lowest == "" || token < f.highest[lowest] {
			lowest = job
		}
	}
	f.floor = max(f.floor, f.highest[lowest])
	delete(f.highest, lowest)
}
