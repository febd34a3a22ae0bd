package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/state"
)

// A first installation whose catalog takes nothing has no definitions to keep. Its leader stays, and says what is wrong.
func TestAFirstCatalogThatIsRefusedIsToldAndKeepsTheLeader(t *testing.T) {
	for name, why := range map[string]error{"forbidden": errors.New("configmaps is forbidden"), "too large": ledger.ErrTooLarge} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := &observed{}
				store := &refusing{Store: ledger.NewSharedMemory(), name: ledger.NameCatalog}
				store.refuse(why)
				n := start(t, store, "a", &app{}, func(o *engine.Options) { o.Observer = events })
				n.engine.Define([]config.Job{job("tick", "rate 5s")})
				l, leave := n.lead()
				time.Sleep(time.Minute)
				synctest.Wait()
				if l.Check() != nil {
					t.Errorf("the leader resigned: %v", l.Check())
				}
				if len(eventsOf[engine.CatalogRefused](events)) != 1 {
					t.Errorf("nobody is told that the catalog refuses")
				}
				leave()
				n.close()
			})
		})
	}
}

// outpaced shows the catalog as it was once, and then not at all for a while.
type outpaced struct {
	ledger.Store
	old  atomic.Pointer[[]byte]
	away atomic.Bool
}

func (s *outpaced) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	if name != ledger.NameCatalog || !s.away.Load() {
		return s.Store.Load(ctx, name)
	}
	if old := s.old.Swap(nil); old != nil {
		return *old, "old", nil
	}
	return nil, "", errCut
}

// A takeover may read the catalog just before the leader before it writes what its last swap names. By what was
// read then nothing is decided, nor is that named again: the versions in force would pass for new ones.
func TestATakeoverThatReadAnOldCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := ledger.NewSharedMemory()
		way := &outpaced{Store: shared}
		a, b := start(t, shared, "a", &app{}), start(t, way, "b", &app{})
		jobs := []config.Job{job("tick", "rate 5s")}
		old, _, err := shared.Load(t.Context(), ledger.NameCatalog)
		if err != nil {
			t.Fatal(err)
		}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(12 * time.Second)
		leave()
		before := catalogOf(t, shared).Jobs["tick"].Versions[0].EffectiveAt
		way.old.Store(&old)
		way.away.Store(true)
		_, leave = b.lead()
		time.Sleep(5 * time.Second)
		if named := ledgerOf(t, shared).CatalogRevision; named != 1 {
			t.Errorf("the ledger names revision %d, want the one in force", named)
		}
		way.away.Store(false)
		time.Sleep(30 * time.Second)
		if after := catalogOf(t, shared).Jobs["tick"].Versions[0].EffectiveAt; !after.Equal(before) {
			t.Errorf("what was in force from %s is in force from %s now", before, after)
		}
		if len(b.app.Calls()) < 5 {
			t.Errorf("%d calls after the catalog could be read", len(b.app.Calls()))
		}
		leave()
		a.close()
		b.close()
	})
}

func catalogOf(t *testing.T, store ledger.Store) *state.Catalog {
	t.Helper()
	c, err := ledger.NewPort[state.Catalog](store, ledger.NameCatalog).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
