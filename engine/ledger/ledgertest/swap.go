//nolint:thelper // these are tests, which Run names
package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/ledger"
)

func equalContent(t *testing.T, b Backend) {
	doc := counterIn(b.Open(t))
	same := func(c *counter) error { c.Count = 7; return nil }
	seen := make(map[ledger.Version]bool)
	for range 3 {
		_, version, err := doc.Swap(t.Context(), same)
		if err != nil {
			t.Fatal(err)
		}
		if seen[version] {
			t.Errorf("two writes of equal content have the one version %q", version)
		}
		seen[version] = true
	}
}

func recreated(t *testing.T, b Backend) {
	if b.Recreate == nil {
		return // nobody can
	}
	store := b.Open(t)
	doc := counterIn(store)
	for range 2 {
		if _, _, err := doc.Swap(t.Context(), addOne); err != nil {
			t.Fatal(err)
		}
	}
	_, version := load(t, store, ledger.NameLedger)
	b.Recreate(t, ledger.NameLedger)
	if _, err := store.Replace(t.Context(), ledger.NameLedger, version, []byte(`{"n":3}`)); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("Replace() = %v, want %v", err, ledger.ErrConflict)
	}
	got, _, err := doc.Swap(t.Context(), addOne)
	if diff := cmp.Diff(&counter{Count: 1}, got); diff != "" || err != nil {
		t.Errorf("Swap() of what was made anew = %v (-want +got):\n%s", err, diff)
	}
}

func concurrentSwaps(t *testing.T, b Backend) { swapTogether(t, b, func() Fault { return Pass }) }

// R106, R107: whatever becomes of the answers, what a writer was told is what is stored.
func concurrentFaults(t *testing.T, b Backend) {
	var n atomic.Int64
	swapTogether(t, b, func() Fault {
		switch n.Add(1) % 5 {
		case 0:
			return DropRequest
		case 2:
			return DropAnswer
		}
		return Pass
	})
}

// swapTogether has eight writers add one each, several times over.
func swapTogether(t *testing.T, b Backend, fault func() Fault) {
	t.Helper()
	const writers, each = 8, 5
	want := make(map[string]int)
	var group sync.WaitGroup
	for i := range writers {
		name := fmt.Sprintf("writer-%d", i)
		want[name] = each
		store := NewFaults(b.Open(t))
		store.Decide(func(ledger.Name) Fault { return fault() })
		doc := counterIn(store)
		group.Go(func() {
			for n := range each {
				if _, _, err := doc.Swap(t.Context(), func(c *counter) error {
					if c.By == nil {
						c.By = make(map[string]int)
					}
					if c.By[name] > n { // an earlier call's result, which others have buried since
						return ledger.ErrNoChange
					}
					c.By[name]++
					return addOne(c)
				}); err != nil {
					t.Errorf("%s: Swap() = %v", name, err)
					return
				}
			}
		})
	}
	group.Wait()
	got, _, err := counterIn(b.Open(t)).Read(t.Context())
	if diff := cmp.Diff(&counter{Count: writers * each, By: want}, got); diff != "" || err != nil {
		t.Errorf("after %d swaps (%v) (-want +got):\n%s", writers*each, err, diff)
	}
}

func lateWrites(t *testing.T, b Backend) {
	tests := map[string]struct {
		land func(late *Faults, others *ledger.Document[counter]) // while the writer computes its next attempt
		want counter
	}{
		"it lands before the next attempt, which then finds it": {
			land: func(late *Faults, _ *ledger.Document[counter]) { late.Land() },
			want: counter{Count: 1},
		},
		"it lands after others wrote, and is refused": {
			land: func(late *Faults, others *ledger.Document[counter]) {
				if _, _, err := others.Swap(t.Context(), func(c *counter) error { c.Notes = []string{"other"}; return nil }); err != nil {
					t.Error(err)
				}
				late.Land()
			},
			want: counter{Count: 1, Notes: []string{"other"}},
		},
		"it lands long after the next attempt, and is refused": {
			land: func(late *Faults, _ *ledger.Document[counter]) { t.Cleanup(late.Land) },
			want: counter{Count: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			late := NewFaults(b.Open(t))
			others := counterIn(b.Open(t))
			if _, _, err := others.Swap(t.Context(), func(c *counter) error { *c = counter{}; return nil }); err != nil {
				t.Fatal(err)
			}
			late.Script(Late)
			calls := 0
			got, _, err := counterIn(late).Swap(t.Context(), func(c *counter) error {
				if calls++; calls == 2 {
					tt.land(late, others)
				}
				return addOne(c)
			})
			if diff := cmp.Diff(&tt.want, got); diff != "" || err != nil {
				t.Errorf("Swap() = %v (-want +got):\n%s", err, diff)
			}
			late.Land()
			got, _, err = others.Read(t.Context())
			if diff := cmp.Diff(&tt.want, got); diff != "" || err != nil {
				t.Errorf("stored in the end (%v) (-want +got):\n%s", err, diff)
			}
		})
	}
}

func foreignMembers(t *testing.T, b Backend) {
	store := b.Open(t)
	_, from := load(t, store, ledger.NameLedger)
	replace(t, store, ledger.NameLedger, from,
		`{"format":1,"writeId":"x","count":1,"since":{"version":"1.9","n":9007199254740993},"by":{"a":1}}`)
	doc := counterIn(b.Open(t))
	for range 3 {
		if _, _, err := doc.Swap(t.Context(), addOne); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := load(t, store, ledger.NameLedger)
	for _, part := range []string{`"count":4`, `"since":{"version":"1.9","n":9007199254740993}`, `"by":{"a":1}`} {
		if !strings.Contains(data, part) {
			t.Errorf("after three swaps %s lacks %s", data, part)
		}
	}
}

func newerFormat(t *testing.T, b Backend) {
	refuses(t, b, `{"format":2,"writeId":"x","count":{"of":"another kind"}}`, ledger.ErrNewerFormat)
}

func damaged(t *testing.T, b Backend) {
	for _, data := range []string{
		`{"format":1,"writeId":"x","count":"seven"}`, `{"format":0,"writeId":"x"}`, `{"count":1}`, `{"format":1,"wr`, `[]`, `null`,
	} {
		refuses(t, b, data, ledger.ErrCorrupt)
	}
}

func refuses(t *testing.T, b Backend, data string, want error) {
	t.Helper()
	store := b.Open(t)
	_, from := load(t, store, ledger.NameLedger)
	version := replace(t, store, ledger.NameLedger, from, data)
	doc := counterIn(b.Open(t))
	if _, _, err := doc.Read(t.Context()); !errors.Is(err, want) {
		t.Errorf("Read() of %s = %v, want %v", data, err, want)
	}
	if _, _, err := doc.Swap(t.Context(), addOne); !errors.Is(err, want) {
		t.Errorf("Swap() of %s = %v, want %v", data, err, want)
	}
	wantStored(t, store, ledger.NameLedger, data, version)
}
