package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

func openFile(t *testing.T, path string) *ledger.File {
	t.Helper()
	store, err := ledger.OpenFile(path)
	if err != nil {
		t.Fatalf("OpenFile() = %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return store
}

func TestFileConforms(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Backend {
		t.Helper()
		path := filepath.Join(t.TempDir(), "ledger")
		store := openFile(t, path)
		return ledgertest.Backend{
			Open: func(*testing.T) ledger.Store { return store },
			Recreate: func(t *testing.T, name ledger.Name) {
				t.Helper()
				if name != ledger.NameLedger {
					path += "." + string(name)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestFileOutlivesItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	for want := range 3 {
		store := openFile(t, path)
		for _, name := range ledger.Names() {
			value, _, err := ledger.NewDocument[tally](store, name).Swap(t.Context(), increment)
			if err != nil || value.Count != want+1 {
				t.Fatalf("Swap() of %s after %d openings = %+v, %v", name, want, value, err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v", e.Name(), info.Mode().Perm()))
	}
	want := []string{
		"ledger -rw-------", "ledger.catalog -rw-------", "ledger.history -rw-------",
		"ledger.leases -rw-------", "ledger.lock -rw-------",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestDamagedFileIsNeverTakenForEmpty(t *testing.T) {
	tests := map[string]struct {
		damage func(whole []byte) []byte
		want   string
	}{
		"emptied by a crash of the machine": {
			damage: func([]byte) []byte { return []byte{} },
			want:   "it has no content",
		},
		"cut off": {
			damage: func(whole []byte) []byte { return whole[:len(whole)-1] },
			want:   "where its first line says",
		},
		"cut off within its first line": {
			damage: func(whole []byte) []byte { return whole[:30] },
			want:   "does not begin with",
		},
		"one bit flipped": {
			damage: func(whole []byte) []byte { whole[len(whole)-2] ^= 1; return whole },
			want:   "checksum does not match",
		},
		"changed by hand": {
			damage: func(whole []byte) []byte { return bytes.Replace(whole, []byte(`"count":1`), []byte(`"count":2`), 1) },
			want:   "checksum does not match",
		},
		"zeros instead of content": {
			damage: func(whole []byte) []byte { return make([]byte, len(whole)) },
			want:   "does not begin with",
		},
		"another file": {
			damage: func([]byte) []byte { return []byte("jobs:\n  - name: a\n") },
			want:   "does not begin with",
		},
		"far too large": {
			damage: func(whole []byte) []byte { return append(whole, make([]byte, 2<<20)...) },
			want:   "is larger than",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			store := openFile(t, path)
			doc := newTally(store)
			if _, _, err := doc.Swap(t.Context(), increment); err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := tt.damage(whole)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			check := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ledger.ErrCorrupt) {
					t.Fatalf("%s = %v, want %v", what, err, ledger.ErrCorrupt)
				}
				for _, part := range []string{path, tt.want, "move it away"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s = %q, lacks %q", what, err, part)
					}
				}
			}
			_, _, err = doc.Read(t.Context())
			check("Read()", err)
			_, _, err = doc.Swap(t.Context(), increment)
			check("Swap()", err)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = ledger.OpenFile(path)
			check("OpenFile()", err)
			left, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(damaged, left) {
				t.Errorf("the damaged file was changed (%v): %d bytes before, %d after", err, len(damaged), len(left))
			}
		})
	}
}

// What a crash can leave beside the document does no harm.
func TestLeftoversOfACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	before := openFile(t, path)
	if _, _, err := newTally(before).Swap(t.Context(), increment); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".tmp", []byte("leasecron-document 1 version=HALF"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err := newTally(openFile(t, path)).Swap(t.Context(), increment)
	if err != nil || got.Count != 2 {
		t.Errorf("Swap() = %+v, %v; want a count of 2", got, err)
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
}

func TestOpenFileRefuses(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	openFile(t, held)
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path string
		want []string
	}{
		"a second process": {
			path: held, want: []string{held, fmt.Sprintf("process %d has it open", os.Getpid()), held + ".lock"},
		},
		"a folder in the place of the file": {
			path: folder, want: []string{folder, "not a regular file", filepath.Join(folder, "ledger")},
		},
		"a folder that does not exist": {
			path: filepath.Join(dir, "none", "ledger"), want: []string{"its folder"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, err := ledger.OpenFile(tt.path)
			if err == nil {
				_ = store.Close()
				t.Fatal("OpenFile() succeeded")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("OpenFile() = %q, lacks %q", err, part)
				}
			}
		})
	}
	if _, err := os.Lstat(folder + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("beside the folder that was refused lies its lock: %v", err)
	}
}

func TestFileWhoseLockWasRemovedIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	doc := newTally(openFile(t, path))
	if _, _, err := doc.Swap(t.Context(), increment); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := doc.Swap(t.Context(), increment); err == nil || !strings.Contains(err.Error(), "restart this one") {
		t.Errorf("Swap() = %v, want it to refuse", err)
	}
}

func TestClosedFileRefuses(t *testing.T) {
	store := openFile(t, filepath.Join(t.TempDir(), "ledger"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newTally(store).Swap(t.Context(), increment); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("Swap() = %v, want %v", err, ledger.ErrClosed)
	}
}

// Two names of one file are one ledger.
func TestAFileThatIsOpenByAnotherName(t *testing.T) {
	dir := t.TempDir()
	file, link, folder := filepath.Join(dir, "in", "file"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.Symlink(filepath.Dir(file), folder), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	one, err := ledger.OpenFile(filepath.Join(folder, "file")) // which does not exist yet
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if _, err := one.Replace(t.Context(), ledger.NameLedger, "none", []byte(`{"format":1,"writeId":"a","term":7}`)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		if two, err := ledger.OpenFile(name); err == nil {
			_ = two.Close()
			t.Errorf("%s was opened a second time", name)
		}
	}
}
