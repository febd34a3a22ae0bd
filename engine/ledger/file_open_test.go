package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasecron/leasecron/engine/ledger"
)

// Damage that concerns the jobs is told at the start; that of the leases when they are asked for.
func TestWhichDamageKeepsAFileStoreFromOpening(t *testing.T) {
	for _, name := range ledger.Names() {
		t.Run(string(name), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			store := openFile(t, path)
			where := store.Path(name)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(where, []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
			store, err := ledger.OpenFile(path)
			if name != ledger.NameLeases {
				if !errors.Is(err, ledger.ErrCorrupt) {
					t.Errorf("OpenFile() = %v, want %v", err, ledger.ErrCorrupt)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if _, _, err := store.Load(t.Context(), name); !errors.Is(err, ledger.ErrCorrupt) {
				t.Errorf("Load() = %v, want %v", err, ledger.ErrCorrupt)
			}
			if _, err := store.Replace(t.Context(), name, "", []byte("{}")); !errors.Is(err, ledger.ErrCorrupt) {
				t.Errorf("Replace() = %v, want %v", err, ledger.ErrCorrupt)
			}
			// The advice works without a restart.
			if err := os.Rename(where, where+".damaged"); err != nil {
				t.Fatal(err)
			}
			if data, _, err := store.Load(t.Context(), name); err != nil || data != nil {
				t.Errorf("moved away it is %q, %v; want empty", data, err)
			}
		})
	}
}
