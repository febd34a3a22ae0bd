package ledgertest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/ledger"
)

// Backend is one set of documents, none of which has ever been written.
type Backend struct {
	// Open returns a Store on the documents: another one each time where several may have them
	// open, else the same. The backend closes them.
	Open func(t *testing.T) ledger.Store
	// Recreate removes a document behind the Store's back and makes it anew, empty. Nil where
	// nobody could do so.
	Recreate func(t *testing.T, name ledger.Name)
}

// Run runs the suite. Each test asks setup for documents of its own.
func Run(t *testing.T, setup func(t *testing.T) Backend) {
	t.Helper()
	tests := []struct {
		name string
		test func(*testing.T, Backend)
	}{
		{"a new document is empty and can be written", emptyDocument},
		{"documents are independent", independent},
		{"what is stored is what was given", exactBytes},
		{"a write from an old version is a conflict", staleVersion},
		{"a write from a version that never was is a conflict", inventedVersion},
		{"equal content is another version", equalContent},
		{"a document made anew is a conflict", recreated},
		{"of writers from one version one wins", oneWins},
		{"concurrent swaps all count", concurrentSwaps},
		{"concurrent swaps without answers count once each", concurrentFaults},
		{"a late write lands once or never", lateWrites},
		{"too large a document is refused and nothing is stored", tooLarge},
		{"members of a newer version survive", foreignMembers},
		{"a newer format is not written", newerFormat},
		{"what is damaged is not written", damaged},
		{"a watch tells what others write", watch},
		{"a watch ends with its context", watchEnds},
		{"a call ends with its context", contextEnds},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, setup(t)) })
	}
}

// patience bounds every wait for something that has to happen.
const patience = 20 * time.Second

// counter is the document of most tests.
type counter struct {
	Count int            `json:"count"`
	By    map[string]int `json:"by,omitempty"`
	Notes []string       `json:"notes,omitempty"`
}

func counterIn(store ledger.Store, options ...ledger.Option) *ledger.Document[counter] {
	return ledger.NewDocument[counter](store, ledger.NameLedger, options...)
}

func addOne(c *counter) error {
	c.Count++
	return nil
}

func load(t *testing.T, store ledger.Store, name ledger.Name) (string, ledger.Version) {
	t.Helper()
	data, version, err := store.Load(t.Context(), name)
	if err != nil {
		t.Fatalf("Load(%s) = %v", name, err)
	}
	if version == "" {
		t.Errorf("Load(%s) gave no version", name)
	}
	return string(data), version
}

func replace(t *testing.T, store ledger.Store, name ledger.Name, from ledger.Version, data string) ledger.Version {
	t.Helper()
	version, err := store.Replace(t.Context(), name, from, []byte(data))
	if err != nil {
		t.Fatalf("Replace(%s) = %v", name, err)
	}
	return version
}

func wantStored(t *testing.T, store ledger.Store, name ledger.Name, data string, version ledger.Version) {
	t.Helper()
	gotData, gotVersion := load(t, store, name)
	if diff := cmp.Diff(data, gotData); diff != "" {
		t.Errorf("%s holds (-want +got):\n%s", name, diff)
	}
	if gotVersion != version {
		t.Errorf("%s has version %q, want %q", name, gotVersion, version)
	}
}
