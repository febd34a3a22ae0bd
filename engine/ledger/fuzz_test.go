package ledger_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasecron/leasecron/engine/ledger"
)

// Whatever is stored, it is either refused and left as it is, or swapped into what can be read
// again and still has what this program does not know.
func FuzzStoredDocument(f *testing.F) {
	for _, seed := range []string{
		`{"format":1,"writeId":"w","floor":1}`,
		`{"format":1,"writeId":"w","earlierWrites":["a","b"],"new":{"x":[{"id":1}]},"rooms":[{"id":"a","new":1}]}`,
		`{"new":1,"writeId":"w","format":1,"door":{"open":true,"new":null}}`,
		`{"format":1,"format":1,"writeId":"w","new":1,"new":2,"Floor":3,"floor":4}`,
		`{"format":2,"writeId":"w"}`, `{"format":1,"writeId":"w"} x`, `{"format":1e0}`, `null`, `[`, ``, "\x00",
		`{"format":1,"writeId":"w","grid":[[[[]]]],"spans":[{}]}`,
		`{"format":1,"writeId":"w","loose":{"a":{"id":"a","x":[1,2,{"y":"\ud800"}]}},"keys":{"":{"id":""}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		store := ledger.NewMemory()
		_, from, err := store.Load(t.Context(), ledger.NameLedger)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Replace(t.Context(), ledger.NameLedger, from, stored); err != nil {
			return
		}
		doc := ledger.NewDocument[house](store, ledger.NameLedger)
		_, _, err = doc.Swap(t.Context(), func(h *house) error { h.Floor = 7; return nil })
		after, _, loadErr := store.Load(t.Context(), ledger.NameLedger)
		if loadErr != nil {
			t.Fatal(loadErr)
		}
		if err != nil {
			if string(after) != string(stored) {
				t.Errorf("Swap() of %q = %v, but it stored %q", stored, err, after)
			}
			return
		}
		got, _, err := ledger.NewDocument[house](store, ledger.NameLedger).Read(t.Context())
		if err != nil || got.Floor != 7 {
			t.Errorf("Swap() of %q stored %q, which reads as %+v, %v", stored, after, got, err)
		}
		var before, now map[string]json.RawMessage
		if len(stored) > 0 {
			if err := json.Unmarshal(stored, &before); err != nil {
				t.Fatalf("Swap() took %q, which is not JSON: %v", stored, err)
			}
		}
		if err := json.Unmarshal(after, &now); err != nil {
			t.Fatal(err)
		}
		if _, had := before["new"]; had && now["new"] == nil {
			t.Errorf("Swap() of %q lost a member: %q", stored, after)
		}
	})
}

// Whatever the file holds, it is read as what it was written as, or refused.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "ledger")
	store, err := ledger.OpenFile(path)
	if err != nil {
		f.Fatal(err)
	}
	if _, _, err := newTally(store).Swap(f.Context(), increment); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	_, version, err := store.Load(f.Context(), ledger.NameLedger)
	if err != nil {
		f.Fatal(err)
	}
	if err := store.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:50])
	f.Add([]byte("leasecron-document 1 version=A bytes=-1 sha256=\n"))
	f.Add([]byte("leasecron-document 1 version= bytes=99999999999999999999 sha256=x\n{}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := ledger.OpenFile(path)
		if err != nil {
			return
		}
		defer store.Close()
		if _, got, err := store.Load(t.Context(), ledger.NameLedger); err != nil || got != version {
			t.Errorf("%q was taken for a document of version %q (%v)", content, got, err)
		}
	})
}
