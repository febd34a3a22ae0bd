package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// TestNoteBusy: only the version that introduces a skip tells whether its job was busy.
func TestNoteBusy(t *testing.T) {
	key := run.Key{Job: "rate", Trigger: "default"}
	skipOf := func(n string) run.Skip { return run.Skip{Occurrence: n, Key: key, Reason: run.ReasonOverlap} }
	w := newWitness(nil, nil)
	idle := &state.Ledger{Skipped: []run.Skip{skipOf("first")}}
	busy := &state.Ledger{Runs: []run.Run{{Key: key}}, Skipped: []run.Skip{skipOf("first"), skipOf("second")}}
	other := &state.Ledger{Runs: []run.Run{{Key: run.Key{Job: "another"}}}, Skipped: []run.Skip{skipOf("second"), skipOf("third")}}
	w.noteBusy(nil, idle) // which may have been introduced long before
	w.noteBusy(idle, busy)
	w.noteBusy(busy, other)
	want := map[string]bool{skipID(skipOf("second")): true, skipID(skipOf("third")): false}
	if diff := cmp.Diff(want, w.testimony().Busy); diff != "" {
		t.Errorf("busy (-want +got):\n%s", diff)
	}
}
