package source

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasecron/leasecron/config"
)

// ReadStream reads a jobs document from in once, to its end, as [ReadFile] does from a file. name is what
// errors call it. What it refers to is read from the working folder.
func ReadStream(name string, in io.Reader, opts config.Options, now time.Time) Update {
	l := loader{origin: name, name: name, opts: opts}
	u, _ := l.load(&streamReader{name: name, in: in}, now)
	return u
}

// streamReader reads what can be read once.
type streamReader struct {
	name string
	in   io.Reader
}

func (r *streamReader) document() ([]byte, error) {
	data, err := readBounded(r.in, config.LargestDocument)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.name, err)
	}
	return data, nil
}

func (r *streamReader) replaced() bool { return false }

func (r *streamReader) resolve(name string) ([]byte, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q is no name of a file in the working folder", name)
	}
	return readFile(name)
}
