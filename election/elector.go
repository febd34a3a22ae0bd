package election

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"
)

// Elector decides who leads.
type Elector interface {
	// Run campaigns until ctx ends and calls lead in a goroutine of its own for each term that is
	// won, never two at a time. lead plans and acts until its context ends, then hands back what it
	// has not begun and returns soon: the release waits for it, up to Options.HandBack. A lead that
	// returns earlier gives its term up, as Lease.Resign does.
	//
	// When ctx ends the term is handed over, and Run returns the cause of ctx's end. Only after that may
	// it be called again: with Options.Eligible saying no it then follows the others and takes nothing.
	Run(ctx context.Context, lead Lead) error
	// Status says what is known at this moment. It may be called at any time.
	Status() Status
}

// Lead does the work of one term.
type Lead func(ctx context.Context, lease *Lease) error

// Why a term ended; what Check and the cause of lead's context wrap.
var (
	// ErrExpired: no renewal succeeded in time, by the monotonic or by the wall clock.
	ErrExpired = errors.New("the lease was not renewed in time")
	// ErrTaken: another process has written itself into the election record.
	ErrTaken = errors.New("another process took the lease")
	// ErrEmptied: somebody has removed this process from the election record and named nobody instead.
	ErrEmptied = errors.New("the holder of the lease was emptied")
	// ErrMissing: the election record does not exist, or was deleted and made anew.
	ErrMissing = errors.New("the lease object does not exist")
	// ErrForeign: the election record belongs to another workload.
	ErrForeign = errors.New("the lease object belongs to another workload")
	// ErrIneligible: this sidecar may not lead for now, as Options.Eligible says.
	ErrIneligible = errors.New("not eligible to lead")
	// ErrUndecided: Options.Eligible cannot tell yet. An error of it that wraps this is no news to an operator.
	ErrUndecided = errors.New("not known yet")
	// ErrResigned: the work of the term gave it up.
	ErrResigned = errors.New("the term was given up")
)

// lost reports whether a term that ended with err was taken away rather than given up.
func lost(err error) bool {
	return errors.Is(err, ErrExpired) || errors.Is(err, ErrTaken) || errors.Is(err, ErrEmptied) || errors.Is(err, ErrMissing)
}

// Status is what an elector knows at one moment.
type Status struct {
	Identity string // of this process
	Holder   string // who leads, as far as known; empty: nobody
	Leading  bool   // this process does, by the same check that guards every callback
	Term     int64  // the fencing term of Holder; 0: not known

	Lease      string    // what the candidates compete for
	LeaseUID   string    // of that object; empty: not known, or there is none
	AcquiredAt time.Time // by the holder's clock
	RenewedAt  time.Time // by the holder's clock
	SeenAt     time.Time // when the above was last confirmed, by this process's clock

	Waiting  string    // why this process does not lead; empty while it does
	LastTurn time.Time // when the elector's loop last made progress: seconds ago, or it is stuck
}

// HolderName is the pod of the holder: its identity without the random part.
func (s Status) HolderName() string {
	if i := strings.LastIndexByte(s.Holder, '_'); i >= 0 {
		return s.Holder[:i]
	}
	return s.Holder
}

// NewIdentity returns an identity for this process: the pod's name and a random part, because a
// pod's name may come back and must not be taken for its predecessor.
func NewIdentity(pod string) string {
	return pod + "_" + strings.ToLower(rand.Text()[:10])
}

// Event is something that happened in an elector. Observers switch on its type.
type Event interface{ isEvent() }

// Observer is told every event by the goroutine in which it happened: it must not block and must
// not call back into the elector.
type Observer interface{ Observe(event Event) }

// The events.
type (
	// HolderChanged says that another holder than before was seen; empty: nobody.
	HolderChanged struct{ Holder string }
	// TermWon says that this process leads.
	TermWon struct{}
	// TermEnded says that it does not any more, and why. Lost: the term was taken away, not given up.
	TermEnded struct {
		Err  error
		Lost bool
	}
	// Obstructed says that this process cannot compete before someone does something about it: the
	// Lease does not exist, belongs to another workload, or may not be used. It is repeated at growing
	// intervals.
	Obstructed struct{ Err error }
	// Renewed says how one attempt to renew the Lease ended.
	Renewed struct {
		Took time.Duration
		Err  error
	}
)

func (HolderChanged) isEvent() {}
func (TermWon) isEvent()       {}
func (TermEnded) isEvent()     {}
func (Obstructed) isEvent()    {}
func (Renewed) isEvent()       {}
