package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// R176: a document that would grow over its bound is refused before anything is stored.
func tooLarge(t *testing.T, b Backend) {
	store := b.Open(t)
	for _, name := range ledger.Names() {
		_, from := load(t, store, name)
		from = replace(t, store, name, from, `{"n":1}`)
		noise := incompressible(ledger.MaxBytes + 1)
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

// incompressible returns a JSON string that no compression makes much smaller, always the same.
func incompressible(n int) []byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	out := make([]byte, 0, 2*n)
	out = append(out, '"')
	state := uint64(1)
	for len(out) < 2*n { // 6 bits of 8 are random: gzip gets back to about 3/4
		state = state*6364136223846793005 + 1442695040888963407
		out = append(out, letters[state>>58])
	}
	return append(out, '"')
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

func watch(t *testing.T, b Backend) {
	watching, writing := b.Open(t), b.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan ledger.Version, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watching.Watch(ctx, ledger.NameLedger, func(v ledger.Version) { seen <- v })
	}()
	defer func() {
		cancel()
		<-ended
	}()
	_, version := load(t, writing, ledger.NameLedger)
	for n := range 4 {
		if !within(seen, version) {
			t.Fatalf("the watch did not tell version %q after %d writes", version, n)
		}
		version = replace(t, writing, ledger.NameLedger, version, fmt.Sprintf(`{"n":%d}`, n))
		_, other := load(t, writing, ledger.NameCatalog)
		replace(t, writing, ledger.NameCatalog, other, fmt.Sprintf(`{"n":%d}`, n))
	}
	if !within(seen, version) {
		t.Errorf("the watch did not tell the last version %q", version)
	}
}

func within(seen <-chan ledger.Version, want ledger.Version) bool {
	deadline := time.After(patience)
	for {
		select {
		case v := <-seen:
			if v == want {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

func watchEnds(t *testing.T, b Backend) {
	reason := errors.New("that will do")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		ended <- b.Open(t).Watch(ctx, ledger.NameLedger, func(ledger.Version) { once.Do(func() { close(first) }) })
	}()
	select {
	case <-first:
	case <-time.After(patience):
		t.Error("the watch did not tell the current version")
	}
	cancel(reason)
	select {
	case err := <-ended:
		if !errors.Is(err, reason) {
			t.Errorf("Watch() = %v, want %v", err, reason)
		}
	case <-time.After(patience):
		t.Error("the watch did not end")
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
