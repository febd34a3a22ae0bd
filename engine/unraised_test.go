package engine_test

import (
	"bytes"
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

// A version that an earlier leader wrote and no ledger swap has named decides nothing before it is raised to
// the watermark, in the catalog itself: the next leader would go by another version for what lags behind.
func TestAVersionThatCannotBeRaisedIsNotNamed(t *testing.T) {
	for name, takeover := range map[string]bool{"it is stored late, within the next term": false, "it is there at the takeover": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &refusing{Store: ledger.NewSharedMemory(), name: ledger.NameCatalog}
				n := start(t, store, "a", &app{})
				n.engine.Define([]config.Job{job("tick", "rate 5s")})
				_, leave := n.lead()
				time.Sleep(21 * time.Second)
				if takeover {
					leave()
				}
				effective := time.Now().Add(-time.Second).UTC() // the watermark is later by the time that this is read
				store.refuse(errors.New("configmaps is forbidden"))
				swap(t, store.Store, ledger.NameCatalog, func(c *state.Catalog) {
					c.Revision++
					record := c.Jobs["tick"]
					v := record.Newest()
					v.Number, v.Revision, v.EffectiveAt = v.Number+1, c.Revision, effective
					v.Definition = bytes.ReplaceAll(v.Definition, []byte("/tick"), []byte("/tock"))
					v.Fingerprint = "another"
					record.Versions = append(record.Versions, v)
				})
				if takeover {
					_, leave = n.lead()
				}
				time.Sleep(12 * time.Second)
				before := len(n.app.Calls())
				if want := 4 + 2; takeover != (before < want) {
					t.Errorf("%d calls in 33 s", before)
				}
				if named := ledgerOf(t, store).CatalogRevision; named != 1 {
					t.Errorf("the ledger names revision %d, which was not raised", named)
				}
				store.refuse(nil)
				time.Sleep(30 * time.Second)
				l := ledgerOf(t, store)
				catalog, err := ledger.NewPort[state.Catalog](store, ledger.NameCatalog).Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if v := catalog.Jobs["tick"].Versions[1]; !v.EffectiveAt.After(effective) || l.CatalogRevision != catalog.Revision {
					t.Errorf("version 2 takes effect at %s, want later than %s; the ledger names %d of %d", v.EffectiveAt, effective, l.CatalogRevision, catalog.Revision)
				}
				if after := len(n.app.Calls()); after <= before+3 {
					t.Errorf("%d calls in the 30 s after", after-before)
				}
				leave()
				n.close()
			})
		})
	}
}

// tardy stores a write of the ledger only after it was given up, if it is told to: until then nothing can be
// read either.
type tardy struct {
	ledger.Store
	on atomic.Bool
}

func (s *tardy) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	if name == ledger.NameLedger && s.on.Load() {
		return nil, "", errCut
	}
	return s.Store.Load(ctx, name)
}

func (s *tardy) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	if name != ledger.NameLedger || !s.on.Load() {
		return s.Store.Replace(ctx, name, from, data)
	}
	<-ctx.Done()
	time.AfterFunc(time.Second, func() {
		if _, err := s.Store.Replace(context.Background(), name, from, data); err == nil {
			s.on.Store(false)
		}
	})
	return "", ledger.ErrUnknown
}

// A version that is raised by what the leader last knew of the ledger is not raised yet where a swap that it
// gave up is stored late: that one has decided more by the versions before.
func TestAVersionIsRaisedToWhatWasStoredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tardy{Store: ledger.NewSharedMemory()}
		n := start(t, store, "a", &app{}, func(o *engine.Options) { o.LeaseDuration = time.Hour })
		n.engine.Define([]config.Job{job("tick", "rate 5s")})
		_, leave := n.lead()
		time.Sleep(21 * time.Second)
		known := ledgerOf(t, store.Store).Watermark
		store.on.Store(true)
		time.Sleep(5 * time.Second) // the swap of the instant at 25 s is under way
		effective := known.Add(2 * time.Second)
		swap(t, store.Store, ledger.NameCatalog, func(c *state.Catalog) {
			c.Revision++
			record := c.Jobs["tick"]
			v := record.Newest()
			v.Number, v.Revision, v.EffectiveAt = v.Number+1, c.Revision, effective
			v.Definition = bytes.ReplaceAll(v.Definition, []byte("rate 5s"), []byte("rate 1s"))
			v.Fingerprint = "another"
			record.Versions = append(record.Versions, v)
		})
		for store.on.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		late := ledgerOf(t, store.Store)
		if late.CatalogRevision != 1 || !late.Watermark.After(effective) {
			t.Fatalf("the late swap names revision %d and decides until %s, want one that knows nothing of version 2 from %s on", late.CatalogRevision, late.Watermark, effective)
		}
		time.Sleep(20 * time.Second)
		catalog, err := ledger.NewPort[state.Catalog](store, ledger.NameCatalog).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if v := catalog.Jobs["tick"].Versions[1]; v.EffectiveAt.Before(late.Watermark) {
			t.Errorf("version 2 takes effect at %s, before %s, until which all was decided without it", v.EffectiveAt, late.Watermark)
		}
		if l := ledgerOf(t, store.Store); l.CatalogRevision != catalog.Revision {
			t.Errorf("the ledger names revision %d of %d", l.CatalogRevision, catalog.Revision)
		}
		leave()
		n.close()
	})
}
