package leases

import (
	"errors"
	"fmt"
	"time"
)

// The errors that a request may end with, besides [InvalidError], [HeldError], [LostError] and
// [StoreError].
var (
	// ErrFull: as many leases are held as there may be.
	ErrFull = fmt.Errorf("all %d leases of the app are held: release some, or take fewer names", MaxLeases)
	// ErrKeyReused: the key of an acquisition belongs to one with another holder or time to live.
	ErrKeyReused = errors.New("the key belongs to an acquisition with another holder or time to live")
	// ErrTooLate: the lease was granted, but the answer came after its time.
	ErrTooLate = errors.New("the store answered after the lease's time to live had passed: take a longer one")
	// ErrTokensUsedUp: the table holds a token that leaves no greater one.
	ErrTokensUsedUp = errors.New("the stored token is too large, somebody has written it: set lastToken to the current Unix time in milliseconds")
)

// HeldError says who holds a lease that was asked for.
type HeldError struct {
	Name   string
	Holder string
	Node   string
	Token  int64
	TTL    time.Duration
	// FreeIn is how long it takes until this sidecar may grant it, unless it is renewed.
	FreeIn time.Duration
}

// Error names the holder, and the time it may take.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %s, taken through %s with token %d; unless it is renewed or released, it is free in %s",
		e.Name, e.Holder, e.Node, e.Token, roundUp(e.FreeIn))
}

// LostError says why a lease cannot be renewed: whoever holds it by that token must stop.
type LostError struct {
	Name  string
	Token int64
	// Expired: its time was over before the renewal.
	Expired bool
	// Elsewhere: it was acquired in another pod, by whose sidecar it has to be renewed.
	Elsewhere bool
	// Holder is who holds it now, empty if nobody does.
	Holder string
	Node   string
	// HolderToken is that holder's.
	HolderToken int64
}

// Error says what became of the lease and what to do.
func (e *LostError) Error() string {
	const stop = "; stop the work, and acquire the lease anew"
	switch {
	case e.Elsewhere:
		return fmt.Sprintf("lease %q was acquired by %s through %s and can be renewed in that pod only", e.Name, e.Holder, e.Node)
	case e.Expired:
		return fmt.Sprintf("lease %q with token %d has expired"+stop, e.Name, e.Token)
	case e.Holder == "":
		return fmt.Sprintf("lease %q with token %d is over, and nobody holds it"+stop, e.Name, e.Token)
	}
	return fmt.Sprintf("lease %q with token %d is over: %s holds it, through %s with token %d"+stop,
		e.Name, e.Token, e.Holder, e.Node, e.HolderToken)
}

// StoreError says that the store did not do what was asked.
type StoreError struct {
	// Unknown: it may have done it all the same, or may still do it.
	Unknown bool
	Err     error
}

// Error says whether anything may have changed.
func (e *StoreError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("the store of the leases gave no clear answer, the change may have been made: %v", e.Err)
	}
	return fmt.Sprintf("the store of the leases did not answer, nothing was changed: %v", e.Err)
}

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
