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

// What is listed of a run that this node has sent is what it knows, not only what is written: an app
// that reports progress works, although nothing of it is in the ledger yet.
func TestWhatIsListedBeforeTheAcceptanceIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &mortal{Store: ledger.NewMemory()}
		n := start(t, way, "a", accepts())
		n.engine.Define([]config.Job{asyncJob()})
		_, leave := n.lead()
		time.Sleep(time.Hour - 20*time.Millisecond) // committed ahead
		way.stall.Store(int64(time.Second))
		time.Sleep(200 * time.Millisecond)
		id, half := n.app.Calls()[0].Run.ID, 50
		if _, err := n.engine.Heartbeat(t.Context(), id, &half, ""); err != nil {
			t.Fatal(err)
		}
		if written := ledgerOf(t, n.store).Run(id); written.State != run.StatePending {
			t.Fatalf("the ledger has the run as %s, want it not written yet", written.State)
		}
		if r := theRun(t, n); r.State != run.StateRunning || r.FiredAt.IsZero() || r.Progress == nil || *r.Progress.Percent != half {
			t.Errorf("listed as %s, fired at %s, progress %+v, want it running and half done", r.State, r.FiredAt, r.Progress)
		}
		leave()
		n.close()
	})
}
