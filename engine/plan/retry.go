package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/leasecron/leasecron/config"
)

// MaxRetryDelay caps every wait before a retry.
const MaxRetryDelay = 30 * 24 * time.Hour

// defaultRetryDelay is the wait where the job names none.
const defaultRetryDelay = time.Second

// RetryDelay returns how long the n-th retry (from 1) waits: fixed, or doubling up to MaxDelay,
// plus or minus jitter hashed from the failed run, never less than what the app asked for with
// Retry-After; all capped at 30 days.
func RetryDelay(r config.Retry, n int, retryAfter time.Duration, failedRun string) time.Duration {
	delay := r.Delay
	if delay <= 0 {
		delay = defaultRetryDelay
	}
	limit := MaxRetryDelay
	if r.MaxDelay > 0 {
		limit = min(limit, r.MaxDelay)
	}
	if r.Backoff == config.BackoffExponential {
		for i := 1; i < n && delay < limit; i++ {
			delay *= 2
		}
		delay = min(delay, limit)
	}
	delay = min(delay, MaxRetryDelay)
	if r.Jitter > 0 {
		delay += time.Duration(float64(delay) * r.Jitter * unit(failedRun))
	}
	return min(max(delay, min(retryAfter, limit), 0), MaxRetryDelay)
}

// unit hashes s to a number in [-1, 1).
func unit(s string) float64 {
	sum := sha256.Sum256([]byte(s))
	return float64(binary.BigEndian.Uint64(sum[:8]))/math.MaxUint64*2 - 1
}
