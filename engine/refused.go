package engine

import (
	"errors"
	"time"
)

// refusal is a row of writes that a document did not take. It is told once, when it is sure to last, and
// tried again at growing intervals.
type refusal struct {
	since time.Time // of the first of them; zero: the last write succeeded
	until time.Time // not to be tried again before
	wait  time.Duration
	told  bool
}

const (
	// A document that is too large stays so until something has changed, and asking costs: all of it is
	// put together and compressed.
	firstTooLargeWait = 5 * time.Second
	maxTooLargeWait   = 5 * time.Minute
)

// fail notes a write that was refused, and reports whether that is to be told now: at once where
// asking again gives the same answer, else after some time.
func (r *refusal) fail(err error, after time.Duration, jitter func(time.Duration) time.Duration) bool {
	now := time.Now()
	if r.since.IsZero() {
		r.since = now
	}
	first, longest := firstBackoff, maxBackoff
	if errors.Is(err, ErrTooLarge) {
		first, longest, after = firstTooLargeWait, maxTooLargeWait, 0
	}
	r.wait = min(max(2*r.wait, first), longest)
	r.until = now.Add(r.wait/2 + jitter(r.wait/2+1))
	if r.told || now.Sub(r.since) < after {
		return false
	}
	r.told = true
	return true
}

// succeed ends the row and reports whether it had been told.
func (r *refusal) succeed() bool {
	told := r.told
	*r = refusal{}
	return told
}
