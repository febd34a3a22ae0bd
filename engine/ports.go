package engine

import (
	"context"
	"errors"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Document is one of the documents that the replicas share, changed only by compare-and-swap.
// It is safe for concurrent use.
type Document[T any] interface {
	// Read returns what is stored; the caller owns the value.
	Read(ctx context.Context) (*T, error)
	// Swap lets change alter the freshly read value and stores it; change is called again after
	// each conflict, so its result must depend on nothing but the value. [ErrNoChange] from it
	// leaves the document as it is. A nil error means that the change is stored.
	Swap(ctx context.Context, change func(*T) error) (*T, error)
	// SwapOnce is Swap for a change whose result cannot be known again once others have written on:
	// change is not called again where the result of an earlier call may be stored; the error is
	// [ErrUnknown] then.
	SwapOnce(ctx context.Context, change func(*T) error) (*T, error)
	// Watch calls changed after the document may have changed, until ctx ends.
	Watch(ctx context.Context, changed func()) error
	// Size is the size of the document in bytes when it was last read or written.
	Size() int
}

type (
	// Ledger is the hot document.
	Ledger = Document[state.Ledger]
	// Catalog holds the definitions.
	Catalog = Document[state.Catalog]
	// History holds what has ended.
	History = Document[state.History]
)

// Invoker delivers one attempt to the app and says how it ended. It asks a.MayStart immediately
// before the first byte of the request is written, and returns soon after ctx ends.
type Invoker interface {
	Invoke(ctx context.Context, a run.Attempt) run.Outcome
}

// Lease is the leadership that the election granted, for one term.
type Lease interface {
	// Check returns nil while the holder surely leads. It is cheap: it is asked before every send.
	Check() error
	// AnnotatedTerm is the greatest fencing term that the Lease ever named, as far as is known.
	AnnotatedTerm() int64
	// SetTerm tells the Lease which fencing term the ledger gave.
	SetTerm(term int64)
	// Resign gives the leadership back because of reason. It returns at once.
	Resign(reason error)
}

// The errors of this package that callers compare.
var (
	// ErrNoChange tells a [Document] that a change has nothing to write.
	ErrNoChange = errors.New("nothing to change")
	// ErrUnknown says that a change may be stored, now or later: nothing has answered clearly.
	ErrUnknown = errors.New("the change may or may not be stored")
	// ErrTooLarge says that a document would outgrow what its store takes; nothing was written, unless the
	// error is [ErrUnknown] too.
	ErrTooLarge = errors.New("the document would be too large")
	// ErrNewerFormat says that a document was written by a newer program, which this one cannot read and
	// must not write over.
	ErrNewerFormat = errors.New("the document has a newer format")
	// ErrTermOver says that the ledger names a newer term: somebody else leads.
	ErrTermOver = errors.New("a newer leader has taken over")
	// ErrLedgerFailing says that the ledger could not be written for a whole lease duration.
	ErrLedgerFailing = errors.New("the ledger could not be written for a lease duration")
	// ErrJobNotFound says that there is no job of that name.
	ErrJobNotFound = errors.New("no such job")
	// ErrAlreadyRunning says that the job runs and its overlap policy forbids another run.
	ErrAlreadyRunning = errors.New("the job is already running")
	// ErrDraining says that this sidecar is on its way out.
	ErrDraining = errors.New("this sidecar is drained: it runs nothing any more")
)
