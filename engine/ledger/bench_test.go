package ledger_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

// flight is a document of the hot ledger's kind: runs in flight.
type flight struct {
	Term int64              `json:"term"`
	Runs map[string]run.Run `json:"runs"`
}

func (f *flight) fill(runs int) {
	at := time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)
	f.Runs = make(map[string]run.Run, runs)
	for i := range runs {
		key := run.Key{Job: fmt.Sprintf("reports.job-%d", i), Trigger: "default"}
		id := run.NewID()
		f.Runs[id] = run.Run{
			ID: id, Occurrence: run.OccurrenceID("ns", "app", key, at, ""), Key: key, Version: 1,
			Cause: run.CauseSchedule, State: run.StatePending, ScheduledAt: at, DueAt: at, Attempt: 1,
			Node: "app-7f9c5d5b6-abcde-1f2e3d", Term: 12, DecidedAt: at,
		}
	}
}

// BenchmarkSwap measures one swap of a lone writer: a copy, a change, an encoding, one write.
func BenchmarkSwap(b *testing.B) {
	stores := map[string]func(b *testing.B) ledger.Store{
		"memory": func(*testing.B) ledger.Store { return ledger.NewMemory() },
		"file": func(b *testing.B) ledger.Store {
			b.Helper()
			store, err := ledger.OpenFile(filepath.Join(b.TempDir(), "ledger"))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = store.Close() })
			return store
		},
		"kubernetes": func(b *testing.B) ledger.Store {
			b.Helper()
			c := newCluster(b)
			c.create(b, "app", ledger.NameLedger)
			return c.open(b, c.sidecar(b, "app"), "app", 0)
		},
	}
	for name, open := range stores {
		for _, runs := range []int{0, 10, 100, 500} {
			for _, foreign := range []string{"", `,"new":{"since":"1.9"}`} {
				b.Run(fmt.Sprintf("%s/runs=%d/foreign=%v", name, runs, foreign != ""), func(b *testing.B) {
					store := open(b)
					_, from, err := store.Load(b.Context(), ledger.NameLedger)
					if err == nil {
						_, err = store.Replace(b.Context(), ledger.NameLedger, from,
							[]byte(`{"format":1,"writeId":"w"`+foreign+`}`))
					}
					if err != nil {
						b.Fatal(err)
					}
					var size int
					doc := ledger.NewDocument[flight](store, ledger.NameLedger,
						ledger.WithObserver(func(s ledger.Swapped) { size = s.Bytes }))
					swap := func(change func(*flight)) {
						if _, _, err := doc.Swap(b.Context(), func(f *flight) error { change(f); return nil }); err != nil {
							b.Fatal(err)
						}
					}
					swap(func(f *flight) { f.fill(runs) })
					b.ReportAllocs()
					for b.Loop() {
						swap(func(f *flight) { f.Term++ })
					}
					b.ReportMetric(float64(size), "B/doc")
				})
			}
		}
	}
}
