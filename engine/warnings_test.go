package engine_test

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/state"
)

// told keeps the events that warn of what should not be.
type told struct {
	mu     sync.Mutex
	events []engine.Event
}

func (o *told) Observe(event engine.Event) {
	switch event.(type) {
	case engine.LedgerGone, engine.TimesCut, engine.JobInvalid, engine.CatalogRefused, engine.HistoryRefused, engine.RecordsDropped:
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events = append(o.events, event)
	}
}

func (o *told) take() []engine.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.events
	o.events = nil
	return out
}

// swap changes a document behind the engine's back.
func swap[T any](t *testing.T, store ledger.Store, name ledger.Name, change func(*T)) {
	t.Helper()
	if _, err := ledger.NewPort[T](store, name).Swap(t.Context(), func(doc *T) error { change(doc); return nil }); err != nil {
		t.Fatal(err)
	}
}

// What a takeover finds wrong is told as an event, once for each takeover, and a good one tells nothing.
func TestATakeoverTellsWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		spoil func(t *testing.T, store ledger.Store)
		want  func(engine.Event) bool
	}{
		"a ledger that is gone": {
			func(t *testing.T, store ledger.Store) {
				t.Helper()
				swap(t, store, ledger.NameLedger, func(l *state.Ledger) { *l = state.Ledger{} })
			},
			func(e engine.Event) bool { _, ok := e.(engine.LedgerGone); return ok },
		},
		"a watermark in the future": {
			func(t *testing.T, store ledger.Store) {
				t.Helper()
				swap(t, store, ledger.NameLedger, func(l *state.Ledger) { l.Watermark = time.Now().Add(time.Hour) })
			},
			func(e engine.Event) bool {
				cut, ok := e.(engine.TimesCut)
				return ok && time.Until(cut.Watermark) > 59*time.Minute
			},
		},
		"a job whose zone is gone": { // R053
			func(t *testing.T, store ledger.Store) {
				t.Helper()
				swap(t, store, ledger.NameCatalog, func(c *state.Catalog) {
					v := &c.Jobs["tick"].Versions[0]
					v.Definition = bytes.ReplaceAll(v.Definition, []byte("Europe/Berlin"), []byte("Europe/Atlantis"))
					c.Revision++
				})
			},
			func(e engine.Event) bool {
				invalid, ok := e.(engine.JobInvalid)
				return ok && invalid.Job == "tick" && invalid.Err != nil
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer := &told{}
				n := start(t, ledger.NewSharedMemory(), "a", &app{}, func(o *engine.Options) { o.Observer = observer })
				n.engine.Define([]config.Job{job("tick", "cron 0 0 9 * * * tz=Europe/Berlin"), job("other", "rate 1s")})
				_, leave := n.lead()
				time.Sleep(5 * time.Second)
				leave()
				if events := observer.take(); len(events) != 0 {
					t.Errorf("a good takeover told %v", events)
				}
				// The next leader knows nothing of the document, so that only the catalog's version counts.
				n.close()
				tt.spoil(t, n.store)
				next := start(t, n.store, "b", &app{}, func(o *engine.Options) { o.Observer = observer })
				_, leave = next.lead()
				time.Sleep(5 * time.Second)
				events := observer.take()
				if len(events) != 1 || !tt.want(events[0]) {
					t.Errorf("told %#v, want just that", events)
				}
				leave()
				next.close()
			})
		})
	}
}
