package invoker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

const (
	// secretAge is how old what was read may be when a request is signed. The files are read rather
	// than watched: a mounted Secret changes by the swap of a link, which a read follows and an
	// event may miss.
	secretAge = time.Second
	// secretLook is how often the files are read where nothing is signed, so that a broken one is
	// found out before it is needed.
	secretLook = 10 * time.Second
)

// Signer signs callbacks with the secrets in files (Standard Webhooks, HMAC-SHA256), which may
// change at any time. A file that is missing or invalid later leaves its last good secret in use. Its
// methods may be called concurrently.
type Signer struct {
	log *slog.Logger

	mu    sync.Mutex
	files []secret
	read  time.Time // when the files were last read
}

// secret is one file, with what it last held.
type secret struct {
	path string
	key  []byte // the last good one
	err  error  // why the file holds none now
}

// NewSigner reads the secrets. Its error joins one for each file that has none. A nil log writes none.
func NewSigner(paths []string, log *slog.Logger) (*Signer, error) {
	s := &Signer{
		log:  cmp.Or(log, slog.New(slog.DiscardHandler)).With(slog.String(logkey.Component, "signer")),
		read: time.Now(),
	}
	if len(paths) == 0 {
		return nil, errors.New("no signing secret file is named")
	}
	var problems []error
	for _, path := range paths {
		key, err := readSecret(path)
		problems = append(problems, err)
		s.files = append(s.files, secret{path: path, key: key})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

// Run reads the files every few seconds until ctx ends and returns why it ended.
func (s *Signer) Run(ctx context.Context) error {
	tick := time.NewTicker(secretLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			_ = s.Err()
		}
	}
}

// Err says which files hold no secret now, nil where all do. Their last good secrets are in use.
func (s *Signer) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	var problems []error
	for _, f := range s.files {
		problems = append(problems, f.err)
	}
	return errors.Join(problems...)
}

// keys are the secrets in use, each once.
func (s *Signer) keys() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	keys := make([][]byte, 0, len(s.files))
next:
	for _, f := range s.files {
		for _, key := range keys {
			if bytes.Equal(key, f.key) {
				continue next // a rotation that has just begun, or is over
			}
		}
		keys = append(keys, f.key)
	}
	return keys
}

// refresh reads the files, unless it has just been done, and says what changed.
func (s *Signer) refresh() {
	now := time.Now()
	if now.Sub(s.read) < secretAge {
		return
	}
	s.read = now
	for i := range s.files {
		f := &s.files[i]
		key, err := readSecret(f.path)
		path := slog.String(logkey.Path, f.path)
		switch was := f.err; {
		case err != nil:
			f.err = err
			if was == nil {
				s.log.Warn("signing secret file is broken, its last good secret stays in use", path, logkey.Err(err))
			}
		case !bytes.Equal(key, f.key):
			f.key, f.err = key, nil
			s.log.Info("signing secret changed", path)
		default:
			f.err = nil
			if was != nil {
				s.log.Info("signing secret file is good again", path)
			}
		}
	}
}
