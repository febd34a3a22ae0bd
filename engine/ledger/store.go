package ledger

import (
	"context"
	"errors"
)

// Name names one of the documents of an app.
type Name string

// The documents.
const (
	// NameLedger is the hot one: what is decided, what is in flight.
	NameLedger Name = "ledger"
	// NameCatalog changes with the definitions.
	NameCatalog Name = "catalog"
	// NameHistory takes what has ended, in batches.
	NameHistory Name = "history"
	// NameLeases holds the named leases of the app's own work.
	NameLeases Name = "leases"
)

// Names lists every [Name].
func Names() []Name { return []Name{NameLedger, NameCatalog, NameHistory, NameLeases} }

// Version is the opaque version of a stored document. Equal versions mean equal content; nothing
// else can be read from it, least of all an order.
type Version string

// MaxObjectBytes is how large the object that holds a document may be, with all that others keep in
// it: a little less than the 1 MiB at which the API server refuses.
const MaxObjectBytes = 900 << 10

// MaxBytes is how large a document may be, the same in every Store. The catalog and the history may
// be larger than an object, because they are kept compressed in it; how much of that fits depends
// on what they hold.
func (n Name) MaxBytes() int {
	if n.compressed() {
		return 8 << 20
	}
	return MaxObjectBytes
}

// compressed reports whether the document is compressed where room is short.
func (n Name) compressed() bool { return n == NameCatalog || n == NameHistory }

// The errors of a [Store] and of a [Document]. They come wrapped: compare with [errors.Is].
var (
	// ErrMissing: there is no such object, and the Store may not create it.
	ErrMissing = errors.New("document does not exist")
	// ErrConflict: surely not stored, because the document is no longer of the version given.
	ErrConflict = errors.New("document has changed")
	// ErrUnknown: no answer arrived. The write may be stored, may be stored later, or may be lost.
	ErrUnknown = errors.New("no answer: the write may or may not be stored")
	// ErrTooLarge: surely not stored, because the document would exceed its bound.
	ErrTooLarge = errors.New("document is too large")
	// ErrCorrupt: what is stored cannot be read. Nothing is written over it.
	ErrCorrupt = errors.New("document is damaged")
	// ErrNewerFormat: what is stored was written by a newer major version. Nothing is written over it.
	ErrNewerFormat = errors.New("document has a newer format")
	// ErrClosed: the Store was closed.
	ErrClosed = errors.New("store is closed")
)

// Store keeps the documents of one app and changes them only by compare-and-swap.
// It is safe for concurrent use.
type Store interface {
	// Load returns the stored bytes and their version. A document that was never written has no
	// bytes and a valid version. The caller owns data.
	Load(ctx context.Context, name Name) (data []byte, v Version, err error)
	// Replace stores data if the document is still of version from, and returns the new version.
	// Data must differ from all that was ever stored under name, or two writers of the same bytes
	// could both win: a Document sees to that. ErrUnknown leaves open what happened; after any
	// other error data is surely not stored. Replace keeps no reference to data.
	Replace(ctx context.Context, name Name, from Version, data []byte) (Version, error)
	// Watch calls changed with the current version and then after changes, until ctx ends, and
	// returns the cause of that. Changes in quick succession may be reported as one; the caller's
	// own writes may be reported too. A document whose object is gone has the empty version. Only
	// the version travels, not the document.
	Watch(ctx context.Context, name Name, changed func(Version)) error
	// Exclusive reports whether nobody else can write while this Store is open, so that every node
	// named in a document, other than those of this process, is dead.
	Exclusive() bool
	// Close releases what the Store holds.
	Close() error
}
