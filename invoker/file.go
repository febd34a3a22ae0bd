package invoker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readSmall reads a mounted file, such as a token, of at most limit bytes. What names the file in an
// error, which never repeats its content.
func readSmall(what, path string, limit int) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s %s does not exist: mount it into the sidecar or take it out of the %s", what, path, where[what])
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", what, err)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return nil, fmt.Errorf("%s %s is not a regular file", what, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if len(raw) > limit {
		return nil, fmt.Errorf("%s %s is larger than %d bytes", what, path, limit)
	}
	return raw, nil
}

const (
	bearerFile = "bearerFile"
	secretFile = "signing secret file"
)

// where says what names a file of each kind.
var where = map[string]string{bearerFile: "job", secretFile: "settings"}
