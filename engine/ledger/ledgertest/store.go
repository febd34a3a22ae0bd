//nolint:thelper // these are tests, which Run names
package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasecron/leasecron/engine/ledger"
)

func emptyDocument(t *testing.T, b Backend) {
	store := b.Open(t)
	for _, name := range ledger.Names() {
		data, version := load(t, store, name)
		if data != "" {
			t.Errorf("%s holds %q, want nothing", name, data)
		}
		wantStored(t, store, name, "", version) // reading changes nothing
		after := replace(t, store, name, version, `{"a":1}`)
		if after == version {
			t.Errorf("the first write of %s left the version as it was", name)
		}
		wantStored(t, store, name, `{"a":1}`, after)
	}
	value, _, err := ledger.NewDocument[counter](b.Open(t), "ledger").Read(t.Context())
	if !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("a document without a format reads as %v, %v; want %v", value, err, ledger.ErrCorrupt)
	}
}

func independent(t *testing.T, b Backend) {
	store := b.Open(t)
	versions := make(map[ledger.Name]ledger.Version)
	for _, name := range ledger.Names() {
		_, from := load(t, store, name)
		versions[name] = replace(t, store, name, from, fmt.Sprintf(`{"name":%q}`, name))
	}
	other := b.Open(t)
	for _, name := range ledger.Names() {
		wantStored(t, other, name, fmt.Sprintf(`{"name":%q}`, name), versions[name])
	}
}

func exactBytes(t *testing.T, b Backend) {
	store := b.Open(t)
	for _, name := range ledger.Names() {
		_, version := load(t, store, name)
		for _, data := range []string{
			`{"number":9007199254740993,"fraction":0.1000000000000000055}`,
			`{"text":"<&> ` + "\u2028" + ` 漢字 \u0000 \" \n"}`,
			`{"long":"` + strings.Repeat("x", 200<<10) + `"}`,
			`{}`,
		} {
			given := []byte(data)
			var err error
			if version, err = store.Replace(t.Context(), name, version, given); err != nil {
				t.Fatalf("Replace(%s) = %v", name, err)
			}
			clear(given) // the store keeps no reference to it
			wantStored(t, store, name, data, version)
			loaded, _, _ := store.Load(t.Context(), name)
			clear(loaded) // and gave none away
			wantStored(t, store, name, data, version)
		}
	}
}

func staleVersion(t *testing.T, b Backend) {
	first, second := b.Open(t), b.Open(t)
	for _, name := range ledger.Names() {
		_, v0 := load(t, first, name)
		v1 := replace(t, second, name, v0, `{"n":1}`)
		v2 := replace(t, second, name, v1, `{"n":2}`)
		for _, from := range []ledger.Version{v0, v1} {
			for _, store := range []ledger.Store{first, second} {
				if _, err := store.Replace(t.Context(), name, from, []byte(`{"n":3}`)); !errors.Is(err, ledger.ErrConflict) {
					t.Errorf("Replace(%s) from an old version = %v, want %v", name, err, ledger.ErrConflict)
				}
			}
		}
		wantStored(t, first, name, `{"n":2}`, v2)
	}
}

func inventedVersion(t *testing.T, b Backend) {
	store := b.Open(t)
	_, version := load(t, store, ledger.NameLedger)
	version = replace(t, store, ledger.NameLedger, version, `{"n":1}`)
	for _, from := range []ledger.Version{"", "0", "none", "/", "x/y", ledger.Version(strings.Repeat("9", 40)), version + "0"} {
		if _, err := store.Replace(t.Context(), ledger.NameLedger, from, []byte(`{"n":2}`)); !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("Replace() from %q = %v, want %v", from, err, ledger.ErrConflict)
		}
	}
	wantStored(t, store, ledger.NameLedger, `{"n":1}`, version)
}

// R106: two nodes take the same trigger.
func oneWins(t *testing.T, b Backend) {
	const writers = 8
	stores := make([]ledger.Store, writers)
	for i := range stores {
		stores[i] = b.Open(t)
	}
	for round := range 3 {
		_, from := load(t, stores[0], ledger.NameLedger)
		var won atomic.Int32
		var group sync.WaitGroup
		for i, store := range stores {
			group.Go(func() {
				data := fmt.Sprintf(`{"round":%d,"writer":%d}`, round, i)
				switch _, err := store.Replace(t.Context(), ledger.NameLedger, from, []byte(data)); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ledger.ErrConflict):
					t.Errorf("writer %d = %v, want %v", i, err, ledger.ErrConflict)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of %d writers won from one version", won.Load(), writers)
		}
	}
}

func contextEnds(t *testing.T, b Backend) {
	store := b.Open(t)
	_, version := load(t, store, ledger.NameLedger)
	reason := errors.New("term is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, _, err := store.Load(ctx, ledger.NameLedger); !errors.Is(err, reason) {
		t.Errorf("Load() = %v, want %v", err, reason)
	}
	if _, err := store.Replace(ctx, ledger.NameLedger, version, []byte(`{"n":1}`)); !errors.Is(err, reason) || errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Replace() = %v, want %v and nothing left open", err, reason)
	}
	if _, _, err := counterIn(store).Swap(ctx, addOne); !errors.Is(err, reason) || errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Swap() = %v, want %v and nothing left open", err, reason)
	}
	wantStored(t, store, ledger.NameLedger, "", version)
}

// R176: a document that would grow over its bound is refused before anything is stored.
func tooLarge(t *testing.T, b Backend) {
	store := b.Open(t)
	for _, name := range ledger.Names() {
		_, from := load(t, store, name)
		from = replace(t, store, name, from, `{"n":1}`)
		noise := bytes.Repeat([]byte{'x'}, name.MaxBytes()+1)
		if _, err := store.Replace(t.Context(), name, from, noise); !errors.Is(err, ledger.ErrTooLarge) {
			t.Errorf("Replace(%s) of %d bytes = %v, want %v", name, len(noise), err, ledger.ErrTooLarge)
		}
		wantStored(t, store, name, `{"n":1}`, from)
	}

	doc := counterIn(b.Open(t), ledger.WithMaxBytes(256<<10))
	_, from := load(t, store, ledger.NameLedger)
	from = replace(t, store, ledger.NameLedger, from, `{"format":1,"writeId":"x"}`)
	if _, _, err := doc.Swap(t.Context(), func(c *counter) error {
		c.Notes = []string{strings.Repeat("x", 256<<10)}
		return nil
	}); !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("Swap() = %v, want %v", err, ledger.ErrTooLarge)
	}
	wantStored(t, store, ledger.NameLedger, `{"format":1,"writeId":"x"}`, from)
}
