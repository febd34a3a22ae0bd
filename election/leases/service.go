package leases

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Store keeps the [Table] of an app. It is safe for concurrent use.
type Store interface {
	// Read returns what is stored; the caller owns the value.
	Read(ctx context.Context) (*Table, error)
	// Swap lets change alter the stored table and stores the result. Change is called again after each
	// conflict, so its result must depend on nothing but the table. An error from it ends the swap:
	// nothing is stored, and Swap's error wraps it. A nil error means that the change is stored;
	// any other leaves that open.
	Swap(ctx context.Context, change func(*Table) error) (*Table, error)
}

// Options say whose leases a [Service] gives.
type Options struct {
	Store Store
	Self  Self
	// Timeout bounds one swap or read with all its attempts; 8 s where it is zero.
	Timeout time.Duration
}

// The pace at which a Service asks its store. A client that asks without pause waits for it.
const (
	lookEvery = 50 * time.Millisecond // an acquisition or a read, in the long run
	lookBurst = 100
	staleRead = time.Second // what is shown may be this old
	pollEvery = time.Second // while an acquisition waits
)

// Service gives the leases of an app, in one sidecar. It is safe for concurrent use. Requests that
// come while the store is asked are carried out together, by the next swap.
type Service struct {
	store   Store
	self    Self
	timeout time.Duration
	pace    *rate.Limiter
	origin  time.Time

	turn    chan struct{} // held by whoever swaps
	reading chan struct{} // held by whoever reads
	work    sync.WaitGroup
	life    context.Context
	end     context.CancelFunc

	mu      sync.Mutex
	queue   []*pending
	view    View
	table   *Table // as last seen; nil: never
	seenAt  time.Time
	changed chan struct{} // closed when something new has been seen
	trouble error         // why the store last failed; nil after it did not
	stats   Stats
}

// Stats count what one process did.
type Stats struct {
	Held     int   // leases that it granted and that are valid now
	Acquired int64 // leases that it granted
	Lost     int64 // renewals that it refused
}

// Stats returns what the service did so far. It asks nothing of the store.
func (s *Service) Stats() Stats {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Held = s.view.held(now)
	return stats
}

// New returns the leases of an app. It asks nothing of the store.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Self.Node == "" {
		return nil, errors.New("leases: Store and Self.Node are required")
	}
	s := &Service{
		store: o.Store, self: o.Self, timeout: cmp.Or(o.Timeout, 8*time.Second),
		pace: rate.NewLimiter(rate.Every(lookEvery), lookBurst), origin: time.Now(),
		turn: make(chan struct{}, 1), reading: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends what is under way and waits for its end. Leases stay held: the app may go on to work.
func (s *Service) Close() {
	s.mu.Lock() // nothing begins after this
	s.end()
	s.mu.Unlock()
	s.work.Wait()
}

// AcquireRequest asks for a lease.
type AcquireRequest struct {
	Name   string
	Holder string        // what to call whoever holds it
	TTL    time.Duration // whole seconds, MinTTL to MaxTTL
	Wait   time.Duration // how long to wait while somebody else holds it, up to MaxWait
	// Key makes the request repeatable: while the lease is held, the same key from the same pod gives
	// the same token. Empty: each request is one of its own.
	Key string
}

// Lease is one lease as one sidecar sees it.
type Lease struct {
	Name string
	// Held: somebody holds it, for all that this sidecar knows. Nothing else is set where nobody does.
	Held                  bool
	Holder                string
	Node                  string // the sidecar through which it was acquired
	Token                 int64
	TTL                   time.Duration
	AcquiredAt, RenewedAt time.Time // by the clock of that sidecar's machine
	// Valid is how long the holder may go on, where it was granted by this process: from now, by
	// this machine's clock.
	Valid time.Duration
	// FreeIn is how long it takes until this sidecar may grant it to another, unless it is renewed.
	FreeIn time.Duration
	// Repeated: the request had been carried out before.
	Repeated bool
}

// Acquire takes a lease that nobody holds. It fails with an [*InvalidError], a [*HeldError],
// [ErrFull], [ErrKeyReused], [ErrTooLate] or a [*StoreError]. After an error that is
// [StoreError.Unknown] the lease may be held, by nobody who knows, until its time to live has
// passed; with a Key the request can be repeated.
func (s *Service) Acquire(ctx context.Context, r AcquireRequest) (Lease, error) {
	if err := r.check(); err != nil {
		return Lease{}, err
	}
	c := command{op: opAcquire, name: r.Name, holder: r.Holder, ttl: r.TTL, request: requestID(r.Key)}
	until := time.Now().Add(r.Wait)
	for {
		news := s.news() // taken before, so that nothing is missed
		out, err := s.try(ctx, c)
		held, refused := errors.AsType[*HeldError](err)
		if left := time.Until(until); refused && left > 0 {
			if s.await(ctx, held, left, news) {
				continue
			}
		}
		if err != nil {
			return Lease{}, err
		}
		l := s.show(r.Name, &out.entry)
		l.Repeated = out.repeated
		if l.Valid <= 0 {
			return Lease{}, ErrTooLate
		}
		return l, nil
	}
}

// try asks for a lease once, at the pace of the service.
func (s *Service) try(ctx context.Context, c command) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.pace.Wait(ctx); err != nil {
		return outcome{}, &StoreError{Err: fmt.Errorf("too many requests at once: %w", err)}
	}
	return s.submit(ctx, c)
}

// Renew extends a lease by its time to live. It fails with an [*InvalidError], a [*LostError] when
// the holder must stop, or a [*StoreError] when it should ask again, as long as the lease is valid.
// It does not outlast that.
func (s *Service) Renew(ctx context.Context, name string, token int64) (Lease, error) {
	if err := checkToken(name, token); err != nil {
		return Lease{}, err
	}
	timeout := s.timeout
	if left, ok := s.remaining(name, token); ok && left > 0 {
		timeout = min(timeout, left)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := s.submit(ctx, command{op: opRenew, name: name, token: token})
	if _, failed := errors.AsType[*StoreError](err); failed {
		if left, ok := s.remaining(name, token); ok && left == 0 {
			err = &LostError{Name: name, Token: token, Expired: true}
		}
	}
	if err != nil {
		return Lease{}, err
	}
	l := s.show(name, &out.entry)
	if l.Valid <= 0 {
		return Lease{}, &LostError{Name: name, Token: token, Expired: true}
	}
	return l, nil
}

// Release gives a lease up. Nothing happens where it is not held by that token any more. It fails with
// an [*InvalidError] or a [*StoreError].
func (s *Service) Release(ctx context.Context, name string, token int64) error {
	if err := checkToken(name, token); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.submit(ctx, command{op: opRelease, name: name, token: token})
	return err
}

// Get returns a lease, which is not held where nobody ever asked for it. What it says may be a
// second old. It fails with an [*InvalidError] or a [*StoreError].
func (s *Service) Get(ctx context.Context, name string) (Lease, error) {
	if err := checkName(name); err != nil {
		return Lease{}, err
	}
	t, err := s.look(ctx, staleRead)
	if err != nil {
		return Lease{}, err
	}
	e, ok := t.Leases[name]
	if !ok {
		return Lease{Name: name}, nil
	}
	return s.show(name, &e), nil
}

// List returns the leases that are held, by name. What it says may be a second old. It fails with a
// [*StoreError].
func (s *Service) List(ctx context.Context) ([]Lease, error) {
	t, err := s.look(ctx, staleRead)
	if err != nil {
		return nil, err
	}
	all := make([]Lease, 0, len(t.Leases))
	for _, name := range slices.Sorted(maps.Keys(t.Leases)) {
		e := t.Leases[name]
		if l := s.show(name, &e); l.Held {
			all = append(all, l)
		}
	}
	return all, nil
}

// Trouble is why the store could not be used when it was last asked; nil if it could.
func (s *Service) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// show is an entry as this process sees it now.
func (s *Service) show(name string, e *Entry) Lease {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Lease{
		Name: name, Held: true, Holder: e.holder(), Node: e.Node, Token: e.Token, TTL: e.TTL(),
		AcquiredAt: e.AcquiredAt, RenewedAt: e.RenewedAt, FreeIn: s.view.FreeIn(name, e, now.Mono),
	}
	l.Valid, _ = s.view.Remaining(name, e.Token, now)
	if l.FreeIn == 0 {
		return Lease{Name: name}
	}
	return l
}

func (s *Service) remaining(name string, token int64) (time.Duration, bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Remaining(name, token, now)
}

// now reads both clocks.
func (s *Service) now() Moment {
	t := time.Now()
	return Moment{Mono: t.Sub(s.origin), Wall: t.Round(0)}
}

// requestID is by what an acquisition is known again. A key is hashed, so that every entry is of
// bounded size and shows nothing of it.
func requestID(key string) string {
	if key == "" {
		return rand.Text()
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
