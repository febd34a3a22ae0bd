package electiontest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
)

// patience is how long what must happen may take on a busy machine, beside what the rules allow it.
const patience = 20 * time.Second

// Field is where candidates compete. It fails the test when two of them lead at one moment.
type Field struct {
	mu     sync.Mutex
	leases map[*election.Lease]string
}

// NewField returns a field without candidates.
func NewField() *Field { return &Field{leases: make(map[*election.Lease]string)} }

func (f *Field) enter(tb testing.TB, lease *election.Lease, who string) {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for other, name := range f.leases {
		if other.Valid() {
			tb.Errorf("%s leads while %s still does", who, name)
		}
	}
	f.leases[lease] = who
}

// Candidate runs an elector with a lead that a test can look into.
type Candidate struct {
	Elector election.Elector

	terms  chan *Term
	cancel context.CancelCauseFunc
	done   chan struct{}
	err    error
}

// Term is one call of lead. It goes on until its context ends, or Return or Hang says otherwise.
type Term struct {
	Lease *election.Lease
	Ctx   context.Context //nolint:containedctx // it is what the test looks at

	began  time.Time
	hang   chan struct{}
	result chan error
	left   chan struct{}
}

// WonAfter is the time from earlier to the call of lead.
func (t *Term) WonAfter(earlier time.Time) time.Duration { return t.began.Sub(earlier) }

// ErrStop is why Stop ends a candidate.
var ErrStop = errors.New("stopped by the test")

// Start runs elector in field until the test ends, or Stop.
func (f *Field) Start(tb testing.TB, elector election.Elector) *Candidate {
	tb.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(tb.Context()))
	c := &Candidate{Elector: elector, terms: make(chan *Term, 64), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = elector.Run(ctx, func(ctx context.Context, lease *election.Lease) error {
			f.enter(tb, lease, elector.Status().Identity)
			term := &Term{Lease: lease, Ctx: ctx, began: time.Now(), hang: make(chan struct{}), result: make(chan error, 1), left: make(chan struct{})}
			defer close(term.left)
			c.terms <- term
			select {
			case <-ctx.Done():
			case err := <-term.result:
				return err
			case <-term.hang:
				return <-term.result
			}
			return nil
		})
	}()
	tb.Cleanup(func() { c.Stop(tb) })
	return c
}

// Stop ends Run and waits for its return.
func (c *Candidate) Stop(tb testing.TB) {
	tb.Helper()
	c.cancel(ErrStop)
	select {
	case <-c.done:
	case <-time.After(patience):
		tb.Fatalf("%s: Run did not return within %v of its context's end", c.Elector.Status().Identity, patience)
	}
}

// Err is what Run returned. It is called after Stop.
func (c *Candidate) Err() error { return c.err }

// Cancel ends Run's context and does not wait.
func (c *Candidate) Cancel() { c.cancel(ErrStop) }

// Lead waits for the next term of this candidate.
func (c *Candidate) Lead(tb testing.TB) *Term {
	tb.Helper()
	return First(tb, c).Term
}

// Won is a term and who won it.
type Won struct {
	*Candidate
	*Term
}

// First waits for the next term of any of these candidates.
func First(tb testing.TB, candidates ...*Candidate) Won {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		for _, c := range candidates {
			select {
			case term := <-c.terms:
				return Won{c, term}
			case <-time.After(time.Millisecond):
			}
		}
	}
	tb.Fatalf("nobody won a term within %v", patience)
	return Won{}
}

// Quiet fails the test if one of these candidates wins a term within d.
func Quiet(tb testing.TB, d time.Duration, candidates ...*Candidate) {
	tb.Helper()
	deadline := time.Now().Add(d)
	for time.Now().Before(deadline) {
		for _, c := range candidates {
			select {
			case <-c.terms:
				tb.Fatalf("%s won a term, want nobody to within %v", c.Elector.Status().Identity, d)
			case <-time.After(time.Millisecond):
			}
		}
	}
}

// Hang makes lead ignore the end of its context until Return, or the end of the test.
func (t *Term) Hang(tb testing.TB) {
	tb.Helper()
	close(t.hang)
	tb.Cleanup(func() { t.Return(nil) })
}

// Return makes lead return with err.
func (t *Term) Return(err error) {
	select {
	case t.result <- err:
	default: // it was told before
	}
}

// Ended waits for the end of the term and returns why it ended.
func (t *Term) Ended(tb testing.TB) error {
	tb.Helper()
	select {
	case <-t.Ctx.Done():
	case <-time.After(patience):
		tb.Fatalf("the term did not end within %v", patience)
	}
	if t.Lease.Valid() {
		tb.Error("the lease is valid after its context's end")
	}
	return context.Cause(t.Ctx)
}

// Until waits for a condition.
func Until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", patience, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}
