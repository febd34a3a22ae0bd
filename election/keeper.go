package election

import (
	"context"
	"time"
)

// Keeper is the elector's side of a [Lease]: what an elector outside of this package makes for each
// term that it wins, and the only way to make one there. Its methods may be called at any time by any
// goroutine; none of them waits.
//
// An elector makes a Keeper when it has won, passes Context and Lease to lead in a goroutine of its
// own, extends the Keeper with each renewal and ends it when the term has to end otherwise. The Lease
// ends itself when its time has come, whatever hangs.
type Keeper struct{ lease *Lease }

// KeeperOptions say what is known of a term when it is won.
type KeeperOptions struct {
	// Sent is when the write was sent that won the term, as time.Now gave it: a term counts from before
	// the write, not from its answer. Required unless Lasts is 0.
	Sent time.Time
	// Lasts is for how long after Sent the term goes on without a renewal: less than the others wait
	// before they take over. 0: until it is ended.
	Lasts time.Duration
	// AnnotatedTerm is the greatest fencing term that the election record carries; 0: none.
	AnnotatedTerm int64
}

// NewKeeper begins a term. It takes over the values of ctx but not its end, because a term ends in an
// order of its own. A term whose time is over already is not valid for a moment.
func NewKeeper(ctx context.Context, opts KeeperOptions) *Keeper {
	if opts.Lasts <= 0 {
		return &Keeper{newLease(ctx, nil, opts.AnnotatedTerm)}
	}
	return &Keeper{newLease(ctx, new(instantOf(opts.Sent).add(opts.Lasts)), opts.AnnotatedTerm)}
}

// Lease is what lead gets.
func (k *Keeper) Lease() *Lease { return k.lease }

// Context is lead's: it ends with the term, and its cause says why.
func (k *Keeper) Context() context.Context { return k.lease.ctx }

// Extend has the term go on until lasts after a renewal was sent. An answer that came too late brings
// nothing back: once the term is over Extend returns an [ErrNotLeading] with the reason.
func (k *Keeper) Extend(sent time.Time, lasts time.Duration) error {
	if k.lease.until.Load() == nil {
		return k.lease.Check()
	}
	return k.lease.extend(instantOf(sent).add(lasts))
}

// End ends the term: the Lease is invalid when it returns. The first cause counts, be it one of this
// package's errors, wrapped or not, or the cause of the end of Run's context.
func (k *Keeper) End(cause error) { k.lease.end(cause) }

// Cause is why the term ended; nil while it goes on.
func (k *Keeper) Cause() error { return k.lease.cause() }

// Told receives once lead has set the fencing term: it belongs into the election record now, beside
// the next renewal, so that the next leader finds it as its AnnotatedTerm.
func (k *Keeper) Told() <-chan struct{} { return k.lease.renew }

// WithDefaults checks the options and fills in what is missing, for the constructor of an elector.
func (o Options) WithDefaults() (Options, error) {
	err := o.setDefaults()
	return o, err
}
