package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

// The sidecar that has the run is cut off before it could write that the app has accepted it. An app
// that tells another sidecar how the run ended must not be told to give up.
func TestAWordThatComesBeforeTheAcceptanceIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		way := &mortal{Store: store}
		owner, other := start(t, way, "a", accepts()), start(t, store, "b", &app{})
		owner.engine.Define([]config.Job{asyncJob()})
		other.engine.Define([]config.Job{asyncJob()})
		_, leave := owner.lead()
		time.Sleep(time.Hour - 20*time.Millisecond) // committed ahead
		way.dead.Store(true)
		time.Sleep(2 * time.Second)
		id := theRun(t, other).ID
		if len(owner.app.Calls()) != 1 {
			t.Fatalf("%d calls, want the one that was committed ahead", len(owner.app.Calls()))
		}
		if _, err := other.engine.Complete(t.Context(), id, engine.Result{}); codeOf(err) != run.CodeNoScheduler {
			t.Errorf("Complete() = %v, want %s: ask again", err, run.CodeNoScheduler)
		}
		way.dead.Store(false)
		time.Sleep(10 * time.Second)
		if r, err := other.engine.Complete(t.Context(), id, engine.Result{}); err != nil || r.State != run.StateSucceeded {
			t.Errorf("Complete() = %s, %v once the acceptance is written, want it recorded", r.State, err)
		}
		leave()
		owner.close()
		other.close()
	})
}
