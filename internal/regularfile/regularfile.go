// Package regularfile reads files that somebody else names or fills: mounted tokens, certificates,
// definitions. What is no regular file is refused, since opening a pipe or a device could wait for ever.
package regularfile

import (
	"fmt"
	"io"
	"os"
)

// Open opens a regular file to read it. Its errors are those of [os.Open], or name the file.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// Read reads a regular file of at most limit bytes. Its errors are those of [Open], or name the file and
// the limit; none repeats what the file contains.
func Read(path string, limit int) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}
