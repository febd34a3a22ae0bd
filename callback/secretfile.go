package callback

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// lookAgain is how old the keys of a file may be before the file is read again.
	lookAgain     = time.Second
	maxSecretFile = 4 << 10
)

// NewFileVerifier returns a verifier whose secrets are files, one secret in each: the files of a
// mounted Kubernetes Secret, most often the same ones that LEASECRON_SIGNING_SECRET_FILES names
// to the sidecar. They are read again once a second at most, when a callback comes, so that a
// rotation needs no restart. A file that is missing or spoiled later leaves the keys as they were.
func NewFileVerifier(files ...string) (*Verifier, error) {
	if len(files) == 0 {
		return nil, errors.New("a verifier needs at least one file with a secret")
	}
	s := &secretFiles{files: files}
	keys, err := s.load()
	if err != nil {
		return nil, err
	}
	s.keys, s.readAt = keys, time.Now()
	return &Verifier{keys: s.current, tolerance: DefaultTolerance}, nil
}

type secretFiles struct {
	files []string

	mu     sync.Mutex
	keys   [][]byte
	readAt time.Time
}

func (s *secretFiles) current() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.readAt) >= lookAgain || now.Before(s.readAt) {
		s.readAt = now
		if keys, err := s.load(); err == nil {
			s.keys = keys
		}
	}
	return s.keys
}

func (s *secretFiles) load() ([][]byte, error) {
	keys := make([][]byte, len(s.files))
	for i, file := range s.files {
		text, err := readSmall(file)
		if err != nil {
			return nil, fmt.Errorf("read a signing secret: %w", err)
		}
		if keys[i], err = parseSecret(strings.TrimSpace(text)); err != nil {
			return nil, fmt.Errorf("signing secret in %s: %w", file, err)
		}
	}
	return keys, nil
}

func readSmall(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return "", fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err == nil && len(raw) > maxSecretFile {
		err = fmt.Errorf("%s has more than %d bytes", file, maxSecretFile)
	}
	return string(raw), err
}
