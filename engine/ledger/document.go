package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrNoChange is what the function given to [Document.Swap] returns when there is nothing to write.
var ErrNoChange = errors.New("nothing to change")

// Swapped tells an observer about one call of [Document.Swap].
type Swapped struct {
	Name     Name
	Took     time.Duration // reading, waiting and computing included
	Bytes    int           // of the last document sent, before any compression; 0: none was sent
	Attempts int           // how many times the document was sent
	Err      error         // what Swap returned
}

// Option changes a Document from its defaults.
type Option func(*settings)

type settings struct {
	maxBytes    int
	maxAttempts int
	jitter      func(below time.Duration) time.Duration
	observe     func(Swapped)
}

// WithObserver has every swap reported to observe, by the goroutine that swaps, when it ends.
func WithObserver(observe func(Swapped)) Option {
	return func(s *settings) { s.observe = observe }
}

// WithMaxBytes bounds the document, before any compression; a swap beyond it ends with
// [ErrTooLarge] and sends nothing. The default is what the Store takes.
func WithMaxBytes(n int) Option { return func(s *settings) { s.maxBytes = n } }

// WithMaxAttempts bounds how often one swap asks the Store, 100 by default: some 40 s of nothing
// but conflicts or lost answers.
func WithMaxAttempts(n int) Option { return func(s *settings) { s.maxAttempts = n } }

// WithJitter has the waits between attempts chosen by jitter, which answers with a time below the one
// given, instead of at random: for a simulation that has to repeat itself.
func WithJitter(jitter func(below time.Duration) time.Duration) Option {
	return func(s *settings) { s.jitter = jitter }
}

// Document is one typed document in a [Store], safe for concurrent use. T is stored as a JSON
// object together with a format number and the ID of the write; T must not have the members
// "format", "writeId" and "earlierWrites" itself, and must encode what it decoded the same way.
//
// It remembers what it last saw, so that the swaps of a lone writer cost one write and no read.
type Document[T any] struct {
	store Store
	name  Name
	settings

	own own

	mu   sync.Mutex
	last *stored // nil: nothing is known
}

// stored is what a document was at one version. It is never changed once it is made.
type stored struct {
	version  Version
	envelope envelope
	body     []byte // a JSON object without the envelope; nil: never written
	size     int
	// whole: this program wrote or has checked every member, so that nothing has to be carried over.
	whole bool
}

// NewDocument returns the document of that name.
func NewDocument[T any](store Store, name Name, options ...Option) *Document[T] {
	d := &Document[T]{store: store, name: name, settings: settings{
		maxAttempts: 100, observe: func(Swapped) {},
		jitter: rand.N[time.Duration], // spreads writers; nothing to guess
	}}
	for _, o := range options {
		o(&d.settings)
	}
	return d
}

// Read reads the document from the Store. One that was never written is the zero T. The caller
// owns what is returned.
//
// It fails with [ErrMissing], [ErrCorrupt], [ErrNewerFormat], or with what kept the Store from
// answering.
func (d *Document[T]) Read(ctx context.Context) (*T, Version, error) {
	base, err := d.load(ctx)
	if err != nil {
		return nil, "", err
	}
	value, err := d.decode(base)
	if err != nil {
		return nil, "", err
	}
	return value, base.version, nil
}

// Size returns how many bytes the document had, before any compression, when this Document last
// read or wrote it.
func (d *Document[T]) Size() int {
	if last := d.recall(); last != nil {
		return last.size
	}
	return 0
}

// load reads and opens what is stored, and remembers it.
func (d *Document[T]) load(ctx context.Context) (*stored, error) {
	data, version, err := d.store.Load(ctx, d.name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d.name, err)
	}
	base := &stored{version: version, size: len(data), whole: len(data) == 0}
	if len(data) > 0 {
		if base.envelope, base.body, err = open(data); err != nil {
			return nil, fmt.Errorf("read %s: %w", d.name, err)
		}
	}
	d.remember(base)
	return base, nil
}

// decode returns a value of its own: nothing in it is shared with base or with another value.
func (d *Document[T]) decode(base *stored) (*T, error) {
	value := new(T)
	if base.body == nil {
		return value, nil
	}
	unmarshal := func(text []byte) error { return json.Unmarshal(text, value) }
	if own, ok := any(value).(json.Unmarshaler); ok {
		unmarshal = own.UnmarshalJSON // which checks the text itself, so that it is gone through once less
	}
	if err := unmarshal(base.body); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", d.name, ErrCorrupt, err)
	}
	return value, nil
}

// storedForm is what to encode of a value: what it says itself, if it has anything to say about that.
func storedForm(value any) any {
	if v, ok := value.(interface{ Stored() any }); ok {
		return v.Stored()
	}
	return value
}

func (d *Document[T]) recall() *stored {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

func (d *Document[T]) remember(s *stored) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = s
}
