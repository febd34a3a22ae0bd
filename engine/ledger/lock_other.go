//go:build !unix

package ledger

import (
	"errors"
	"fmt"
)

type lockFile struct{}

// acquire refuses: a ledger that two processes could write is worse than none.
func acquire(path string) (*lockFile, error) {
	return nil, fmt.Errorf("lock %s: a file ledger needs a system with flock: %w", path, errors.ErrUnsupported)
}

func (*lockFile) held() error    { return nil }
func (*lockFile) release() error { return nil }
