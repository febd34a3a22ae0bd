//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockFile is held by one process at a time. The system lets go of it when the process ends,
// however it ends; the file stays, because whoever removed it would take it from the next holder.
type lockFile struct {
	path string
	file *os.File
}

// acquire takes the lock, or says who has it.
func acquire(path string) (*lockFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &lockFile{path: path, file: file}
	if err := l.acquire(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *lockFile) acquire() error {
	err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("%s has it open (lock %s): end that process, or give this one another file", l.holder(), l.path)
	case err != nil:
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if err := l.held(); err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", l.path, err)
	}
	// Only for the message above: a full disk must not keep the process from starting.
	_, _ = l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return nil
}

// holder names the process that wrote itself into the file.
func (l *lockFile) holder() string {
	text, err := io.ReadAll(io.LimitReader(l.file, 32))
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
	if errors.Join(err, convErr) != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

// held reports whether the lock still is what another process would try to take: someone may have
// removed the file.
func (l *lockFile) held() error {
	mine, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	there, err := os.Stat(l.path)
	if err != nil || !os.SameFile(mine, there) {
		return fmt.Errorf("lock %s was removed or replaced, and another process may have taken it: restart this one", l.path)
	}
	return nil
}

// release gives the lock up.
func (l *lockFile) release() error { return l.file.Close() }
