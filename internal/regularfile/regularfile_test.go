package regularfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/internal/regularfile"
)

func TestRead(t *testing.T) {
	const limit = 8
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for content, fits := range map[string]bool{"": true, "12345678": true, "123456789": false} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := regularfile.Read(path, limit)
		switch {
		case fits && (err != nil || string(got) != content):
			t.Errorf("Read() of %q = %q, %v", content, got, err)
		case !fits && (err == nil || !strings.HasSuffix(err.Error(), "file is larger than 8 bytes") || got != nil):
			t.Errorf("Read() of %q = %q, %v, want the limit", content, got, err)
		}
	}
	if _, err := regularfile.Read(filepath.Join(dir, "none"), limit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read() of nothing = %v", err)
	}
	for _, other := range []string{dir, os.DevNull} {
		if _, err := regularfile.Read(other, limit); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Read(%s) = %v", other, err)
		}
	}
}
