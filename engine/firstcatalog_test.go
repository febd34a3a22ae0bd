package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
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
