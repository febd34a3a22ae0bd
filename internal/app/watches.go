package app

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/internal/logkey"
)

const (
	// watchPatience is how long a watch of a document may be down before that is worth a warning: an
	// API server that restarts ends all of them.
	watchPatience = time.Minute
	// watchForgotten is how long after the last word on a failing watch nobody watches any more: only a
	// leader does, and one that fails says so at least every half a minute.
	watchForgotten = 2 * time.Minute
)

// watches knows whether the documents of the ledger can be watched. Without that a leader learns late
// of what is asked of other replicas: runs, pauses, new definitions. The zero value is ready but for log.
type watches struct {
	log *slog.Logger

	mu   sync.Mutex
	down map[ledger.Name]*watchDown
}

type watchDown struct {
	since, last time.Time
	err         error
	told        bool
}

// note takes what a watch says of itself; nil: it is up.
func (w *watches) note(name ledger.Name, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, before := time.Now(), w.down[name]
	if err == nil {
		delete(w.down, name)
		if before != nil && before.told {
			w.log.Info("a document can be watched again", slog.String("document", string(name)), slog.Duration("after", now.Sub(before.since)))
		}
		return
	}
	if before == nil || now.Sub(before.last) > watchForgotten {
		before = &watchDown{since: now}
		if w.down == nil {
			w.down = make(map[ledger.Name]*watchDown)
		}
		w.down[name] = before
	}
	before.last, before.err = now, err
	if !before.told && now.Sub(before.since) >= watchPatience {
		before.told = true
		w.log.Warn("a document cannot be watched: what is asked of other replicas is noticed late", slog.String("document", string(name)), logkey.Err(err))
	}
}

// check is what /readyz?verbose tells.
func (w *watches) check() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(w.down)) {
		if d := w.down[name]; time.Since(d.last) <= watchForgotten {
			errs = append(errs, fmt.Errorf("%s not watched for %s: %w", name, time.Since(d.since).Round(time.Second), d.err))
		}
	}
	return "", errors.Join(errs...)
}
