package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/state"
)

// Port is a [Document] as the engine wants it: without versions, which only this package reads.
type Port[T any] struct{ document *Document[T] }

var (
	_ engine.Ledger  = Port[state.Ledger]{}
	_ engine.Catalog = Port[state.Catalog]{}
	_ engine.History = Port[state.History]{}
)

// NewPort returns the document of that name in a store, for the engine.
func NewPort[T any](store Store, name Name, options ...Option) Port[T] {
	return Port[T]{NewDocument[T](store, name, options...)}
}

// Read implements [engine.Document].
func (p Port[T]) Read(ctx context.Context) (*T, error) {
	value, _, err := p.document.Read(ctx)
	return value, asEngines(err)
}

// Swap implements [engine.Document].
func (p Port[T]) Swap(ctx context.Context, change func(*T) error) (*T, error) {
	value, _, err := p.document.Swap(ctx, asOurs(change))
	return value, asEngines(err)
}

// SwapOnce implements [engine.Document].
func (p Port[T]) SwapOnce(ctx context.Context, change func(*T) error) (*T, error) {
	value, _, err := p.document.SwapOnce(ctx, asOurs(change))
	return value, asEngines(err)
}

func asOurs[T any](change func(*T) error) func(*T) error {
	return func(v *T) error {
		err := change(v)
		if errors.Is(err, engine.ErrNoChange) {
			return ErrNoChange
		}
		return err
	}
}

func asEngines(err error) error {
	out := err
	switch {
	case errors.Is(err, ErrTooLarge) && errors.Is(err, ErrUnknown): // too large now; what came before may be stored
		return fmt.Errorf("%w: %w: %w", engine.ErrUnknown, engine.ErrTooLarge, err)
	case errors.Is(err, ErrTooLarge):
		out = fmt.Errorf("%w: %w", engine.ErrTooLarge, err)
	case errors.Is(err, ErrNewerFormat):
		out = fmt.Errorf("%w: %w", engine.ErrNewerFormat, err)
	}
	if errors.Is(err, ErrUnknown) { // as well: an earlier try of the same swap may have got no answer
		out = fmt.Errorf("%w: %w", engine.ErrUnknown, out)
	}
	return out
}

// Watch implements [engine.Document]. What this process wrote itself is no news.
func (p Port[T]) Watch(ctx context.Context, changed func()) error {
	return p.document.WatchOthers(ctx, changed)
}

// Size implements [engine.Document].
func (p Port[T]) Size() int { return p.document.Size() }
