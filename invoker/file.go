package invoker

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/leasecron/leasecron/internal/regularfile"
)

// readSmall reads a mounted file, such as a token, of at most limit bytes. What names the file in an
// error, which never repeats its content.
func readSmall(what, path string, limit int) ([]byte, error) {
	raw, err := regularfile.Read(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %s does not exist: mount it into the sidecar or take it out of the %s", what, path, where[what])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return raw, nil
}

const (
	bearerFile = "bearerFile"
	secretFile = "signing secret file"
)

// where says what names a file of each kind.
var where = map[string]string{bearerFile: "job", secretFile: "settings"}
