package state_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

func TestOneUnreadableRecordSpoilsItsJobAlone(t *testing.T) {
	const stored = `{"format":1,"writeId":"x","term":7,"watermark":"2026-06-15T12:00:00Z",
		"triggers":{"good/default":{"cursor":"2026-06-15T12:00:00Z"},"odd/default":{"cursor":12}},
		"runs":[{"id":"1","key":"good/default","state":"Pending","occurrence":"o"},{"id":"2","key":"bad/default","state":17,"occurrence":"p"}]}`
	store := ledger.NewMemory()
	_, version, err := store.Load(t.Context(), ledger.NameLedger)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Replace(t.Context(), ledger.NameLedger, version, []byte(stored)); err != nil {
		t.Fatal(err)
	}
	document := ledger.NewPort[state.Ledger](store, ledger.NameLedger)
	for range 3 { // each swap reads what the one before wrote
		l, err := document.Swap(t.Context(), func(l *state.Ledger) error {
			l.Term++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Runs) != 1 || l.Runs[0].ID != "1" || len(l.Triggers) != 1 {
			t.Errorf("read %d runs and %d triggers, want the good ones", len(l.Runs), len(l.Triggers))
		}
		spoiled := l.Spoiled()
		if len(spoiled) != 2 || !spoiled["bad"] || !spoiled["odd"] {
			t.Errorf("spoiled jobs %v, want bad and odd", spoiled)
		}
		if len(l.Unreadable) != 1 {
			t.Errorf("%d unreadable runs kept, want 1: %s", len(l.Unreadable), l.Unreadable)
		}
	}
	text, _, err := store.Load(t.Context(), ledger.NameLedger)
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{`"odd/default":{"cursor":12}`, `"state":17`} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%s is gone from %s", kept, text)
		}
	}
}

func TestLedgerReadsBackAsItWasWritten(t *testing.T) {
	var l state.Ledger
	l.Term = 3
	l.SetTrigger(run.Key{Job: "a", Trigger: "t"}, state.Trigger{Fired: 2, FiredOf: "10m0s x3"})
	l.Runs = []run.Run{{ID: "1", Key: run.Key{Job: "a"}, State: run.StateQueued}}
	first, err := json.Marshal(&l)
	if err != nil {
		t.Fatal(err)
	}
	var read state.Ledger
	if err := json.Unmarshal(first, &read); err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(&read)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("written %s, read back %s", first, second)
	}
}
