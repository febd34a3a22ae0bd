package electiontest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
)

// The times of the variable's election.
const (
	lasts      = 2 * time.Second         // others wait that long after a renewal
	stopsAfter = 1500 * time.Millisecond // the holder does not
	renewEvery = 500 * time.Millisecond
)

// variable is an election record that candidates of one process share: what etcd or a database is for
// electors in earnest.
type variable struct {
	mu       sync.Mutex
	holder   string
	term     int64
	acquired time.Time
	renewed  time.Time
	changed  chan struct{} // closed and replaced at each change
}

func newVariable() *variable { return &variable{changed: make(chan struct{})} }

// update changes the record if change says so.
func (v *variable) update(change func(v *variable) bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !change(v) {
		return false
	}
	close(v.changed)
	v.changed = make(chan struct{})
	return true
}

func (v *variable) get() (holder string, term int64, acquired, renewed time.Time, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.holder, v.term, v.acquired, v.renewed, v.changed
}

// elector is an elector on such a record, written with nothing but what package election exports.
type elector struct {
	opts    election.Options
	record  *variable
	lease   atomic.Pointer[election.Lease]
	waiting atomic.Pointer[string]
	turn    atomic.Int64
	away    atomic.Bool // the record cannot be reached
	pause   time.Duration
}

var _ election.Elector = (*elector)(nil)

func newElector(t testing.TB, record *variable, opts election.Options) *elector {
	t.Helper()
	opts, err := opts.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &elector{opts: opts, record: record}
}

func (e *elector) wait(why string) { e.waiting.Store(&why) }

func (e *elector) Run(ctx context.Context, lead election.Lead) error {
	from := time.Now()
	for ctx.Err() == nil {
		e.turn.Store(time.Now().UnixNano())
		holder, _, _, renewed, changed := e.record.get() // the record is seen even where it cannot be written
		due := from
		switch err := e.opts.Eligible(); {
		case err != nil:
			e.wait(fmt.Sprintf("%v: %v", election.ErrIneligible, err))
			due = time.Now().Add(renewEvery)
		case holder != "" && holder != e.opts.Identity && time.Now().Before(renewed.Add(lasts)):
			e.wait(holder + " holds it")
			due = renewed.Add(lasts)
		case time.Now().Before(from):
			e.wait("pausing after a term that was given up")
		case e.away.Load():
			e.wait("the record cannot be reached")
			due = time.Now().Add(renewEvery)
		default:
			sent := time.Now()
			if e.record.update(func(v *variable) bool { return e.take(v, sent, renewed) }) {
				from = time.Now().Add(e.term(ctx, sent, lead))
				continue
			}
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-e.opts.Changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return context.Cause(ctx)
}

// take makes this process the holder, unless somebody was faster.
func (e *elector) take(v *variable, sent, seen time.Time) bool {
	if !v.renewed.Equal(seen) {
		return false
	}
	v.holder, v.acquired, v.renewed = e.opts.Identity, sent, sent
	return true
}

// term leads one term and answers with the pause before the next.
func (e *elector) term(ctx context.Context, sent time.Time, lead election.Lead) time.Duration {
	_, term, _, _, _ := e.record.get()
	k := election.NewKeeper(ctx, election.KeeperOptions{Sent: sent, Lasts: stopsAfter, AnnotatedTerm: term})
	e.lease.Store(k.Lease())
	e.observe(election.TermWon{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Lease().Resign(lead(k.Context(), k.Lease()))
	}()

	e.keep(ctx, k)

	e.observe(election.TermEnded{Err: k.Cause(), Lost: errors.Is(k.Cause(), election.ErrExpired) || errors.Is(k.Cause(), election.ErrTaken)})
	select { // the release waits for lead, but not for ever
	case <-done:
	case <-time.After(e.opts.HandBack):
	}
	e.record.update(func(v *variable) bool {
		if e.away.Load() || v.holder != e.opts.Identity {
			return false
		}
		v.holder = ""
		return true
	})
	<-done // two terms must not run at once
	if !errors.Is(k.Cause(), election.ErrResigned) {
		return 0
	}
	e.pause = max(time.Second, 2*e.pause)
	return e.pause
}

// keep renews until the term is over, and ends it when it must.
func (e *elector) keep(ctx context.Context, k *election.Keeper) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for k.Lease().Valid() {
		e.turn.Store(time.Now().UnixNano())
		_, _, _, _, changed := e.record.get()
		select {
		case <-k.Context().Done():
		case <-ctx.Done():
			k.End(context.Cause(ctx))
		case <-e.opts.Changed:
		case <-k.Told():
			e.renew(k)
		case <-tick.C:
			e.renew(k)
		case <-changed:
			if holder, _, _, _, _ := e.record.get(); holder != e.opts.Identity {
				k.End(election.ErrTaken)
			}
		}
		if err := e.opts.Eligible(); err != nil {
			k.End(fmt.Errorf("%w: %w", election.ErrIneligible, err))
		}
	}
}

func (e *elector) renew(k *election.Keeper) {
	if e.away.Load() {
		return
	}
	sent := time.Now()
	if !e.record.update(func(v *variable) bool {
		if v.holder != e.opts.Identity {
			return false
		}
		v.renewed, v.term = sent, max(v.term, k.Lease().Term())
		return true
	}) {
		k.End(election.ErrTaken)
		return
	}
	_ = k.Extend(sent, stopsAfter) // too late is too late: the term has ended then
}

func (e *elector) observe(event election.Event) {
	if e.opts.Observer != nil {
		e.opts.Observer.Observe(event)
	}
}

func (e *elector) Status() election.Status {
	holder, term, acquired, renewed, _ := e.record.get()
	s := election.Status{Identity: e.opts.Identity, Holder: holder, Term: term, AcquiredAt: acquired, RenewedAt: renewed, SeenAt: time.Now(), Lease: "a variable"}
	if n := e.turn.Load(); n != 0 {
		s.LastTurn = time.Unix(0, n)
	}
	lease := e.lease.Load()
	if s.Leading = lease != nil && lease.Valid(); s.Leading {
		s.Holder, s.Term = s.Identity, lease.Term()
	} else if why := e.waiting.Load(); why != nil {
		s.Waiting = *why
	}
	if !s.Leading && (s.Holder == s.Identity || time.Since(renewed) > lasts) {
		s.Holder = ""
	}
	return s
}

// TestAnElectorOfAnotherPackage shows that the suite and what package election exports are enough to
// write an elector on another store.
func TestAnElectorOfAnotherPackage(t *testing.T) {
	t.Parallel()
	electiontest.Run(t, func(t *testing.T) electiontest.Harness {
		t.Helper()
		record := newVariable()
		return electiontest.Harness{
			Rivals: true, Remembers: true,
			Usurp: func(testing.TB) string {
				record.update(func(v *variable) bool {
					v.holder, v.renewed = "usurper_1", time.Now()
					return true
				})
				return "usurper_1"
			},
			Isolate: func(_ testing.TB, e election.Elector) func() {
				mine := e.(*elector) // it is what New returns
				mine.away.Store(true)
				return func() { mine.away.Store(false) }
			},
			New: func(t testing.TB, opts election.Options) election.Elector {
				t.Helper()
				return newElector(t, record, opts)
			},
		}
	})
}
