package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// catalogTimeout bounds what a turn waits for the catalog, so that time is left for the ledger.
const catalogTimeout = 5 * time.Second

// fewerVersions are how many versions of each job are kept where more do not fit.
var fewerVersions = []int{5, 2, 1}

// catalogSwap is one of the two ways to change the catalog.
type catalogSwap func(ctx context.Context, change func(*state.Catalog) error) (*state.Catalog, error)

// makingRoom changes the catalog. Where it would outgrow its object, old versions that nothing needs are
// dropped first, until it fits or there are none.
func (e *Engine) makingRoom(ctx context.Context, swap catalogSwap, change func(*state.Catalog) error) (*state.Catalog, error) {
	catalog, err := swap(ctx, change)
	if !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknown) {
		return catalog, err
	}
	ledger, readErr := e.o.Ledger.Read(ctx) // what runs and instants name now
	if readErr != nil {
		return nil, fmt.Errorf("%w; what may be dropped from it is not known: %w", err, readErr)
	}
	for _, most := range fewerVersions {
		dropped := 0
		catalog, err = swap(ctx, func(c *state.Catalog) error {
			if err := change(c); err != nil {
				return err
			}
			dropped = plan.DropVersions(c, ledger, most)
			return nil
		})
		if err == nil && dropped > 0 {
			e.log.Info("old versions of job definitions were dropped to make room", slog.Int(logkey.Count, dropped), slog.Int("of_each_at_most", most))
		}
		if !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrUnknown) {
			break
		}
	}
	return catalog, err
}

// followDefinitions brings the desired jobs into force, as far as the catalog can be read and written.
// While it cannot, those in force stay so and planning goes on: an error is one of the term alone.
func (e *Engine) followDefinitions(ctx context.Context, t *term) error {
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	e.mu.Lock()
	want := e.desired
	e.mu.Unlock()
	now := time.Now()
	var err error
	if !now.Before(t.unread.until) {
		if err = e.rereadCatalog(ctx, t); err != nil {
			return e.keepDefinitions(t, &t.unread, err)
		}
		e.definitionsFollow(t, &t.unread)
	}
	if now.Before(t.unwritten.until) && want.sequence == t.refused && (t.unraised == 0 || t.unraised != t.catalog.Revision) {
		return nil
	}
	if err = e.syncDefinitions(ctx, t, want); err != nil {
		t.refused = want.sequence
		return e.keepDefinitions(t, &t.unwritten, err)
	}
	e.definitionsFollow(t, &t.unwritten)
	return nil
}

// keepDefinitions goes on with the definitions in force after the catalog refused something, unless it
// is the term that is over. It tells of it once.
func (e *Engine) keepDefinitions(t *term, row *refusal, err error) error {
	if t.ctx.Err() != nil || resigned(err) != nil {
		return err
	}
	if unsure := cmp.Or(t.lease.Check(), e.o.ClockCheck()); unsure != nil {
		return err
	}
	if t.unraised != 0 && t.unraised == t.catalog.Revision { // of a takeover: those before are not known
		return err
	}
	if t.catalog.Revision < e.view.Load().ledger.CatalogRevision { // written after the takeover read it
		return err
	}
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("the catalog has no room for the newest job definitions, even without old versions; "+
			"define fewer jobs or smaller ones (data, headers and descriptions count), or change fewer at a time: %w", err)
	}
	if row.since.IsZero() {
		e.log.Info("catalog not read or written, trying again", logkey.Err(err)) // whether it is worth more will show
	}
	if row.fail(err, e.o.LeaseDuration, e.o.Jitter) {
		e.log.Error("the newest job definitions are not in force and those before stay so: the catalog does not take them", logkey.Err(err))
		e.emit(CatalogRefused{Err: err})
	}
	if row.told {
		e.publish(func(v *view) { v.refused = err.Error() })
	}
	return nil
}

// definitionsFollow ends a row of refusals.
func (e *Engine) definitionsFollow(t *term, row *refusal) {
	if row.succeed() {
		e.log.Info("the catalog takes the job definitions again")
	}
	if !t.unread.told && !t.unwritten.told && e.view.Load().refused != "" {
		e.publish(func(v *view) { v.refused = "" })
	}
}

// catalogNext is when, by the monotonic clock, the catalog is asked again; zero: it refuses nothing.
func (t *term) catalogNext() time.Time {
	if !t.unread.until.IsZero() {
		return t.unread.until
	}
	return t.unwritten.until
}
