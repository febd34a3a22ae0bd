package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

const (
	// formatWait bounds a look at the documents' formats, formatAgain is how long after a newer one was
	// found they are looked at again.
	formatWait  = 2 * time.Second
	formatAgain = 10 * time.Second
)

// errNotLooked is why a sidecar does not campaign in its first moments.
var errNotLooked = errors.New("the ledger has not been looked at yet")

// formats knows which documents have a format that is too new for this program: a sidecar that finds one
// writes nothing and does not campaign, so that a newer one leads.
type formats struct {
	mu     sync.Mutex
	newer  map[string]error // by document
	asked  bool             // somebody wants to lead, and the loop shall look
	looks  bool             // a look is under way
	looked time.Time        // when the last look ended; zero: none did
}

// MayLead returns nil while this node can read what is stored, or nobody could tell: else why it must not
// campaign. It does not block; [Options.MayLeadChanged] says when to ask again.
func (e *Engine) MayLead() error {
	f := &e.formats
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err()
	if !f.looks && (f.looked.IsZero() || err != nil && time.Since(f.looked) >= formatAgain) {
		f.asked = true
		e.poke()
	}
	if err == nil && f.looked.IsZero() {
		return errNotLooked
	}
	return err
}

// FormatError is why this node cannot read what is stored, because a newer program wrote it; nil: it can,
// as far as is known.
func (e *Engine) FormatError() error {
	e.formats.mu.Lock()
	defer e.formats.mu.Unlock()
	return e.formats.err()
}

// err is the reason of all that are too new. The caller holds formats.mu.
func (f *formats) err() error {
	for _, name := range []string{"ledger", "catalog", "history"} {
		if err := f.newer[name]; err != nil {
			return err
		}
	}
	return nil
}

// answered takes note of what a document's store answered.
func (e *Engine) answered(document string, err error) {
	newer := errors.Is(err, ErrNewerFormat)
	if err != nil && !newer {
		return // it does not say
	}
	f := &e.formats
	f.mu.Lock()
	was := f.newer[document] != nil
	switch {
	case newer == was:
		f.mu.Unlock()
		return
	case newer:
		if f.newer == nil {
			f.newer = make(map[string]error)
		}
		f.newer[document] = err
	default:
		delete(f.newer, document)
	}
	f.mu.Unlock()
	if newer {
		e.log.Error("a newer program has written what is stored: this one writes nothing and does not lead", slog.String("document", document), logkey.Err(err))
		e.emit(FormatNewer{Document: document, Err: err})
	} else {
		e.log.Info("what is stored has a format again that this program reads", slog.String("document", document))
	}
	e.o.MayLeadChanged()
}

// lookAtFormats reads the documents beside the loop, if somebody has asked whether this node may lead.
func (e *Engine) lookAtFormats(a *attempts) {
	f := &e.formats
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asked || f.looks {
		return
	}
	f.asked, f.looks = false, true
	a.group.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), formatWait)
		defer cancel()
		var all sync.WaitGroup // what they answer is noted where it passes
		all.Go(func() { _, _ = e.o.Ledger.Read(ctx) })
		all.Go(func() { _, _ = e.o.Catalog.Read(ctx) })
		all.Go(func() { _, _ = e.o.History.Read(ctx) })
		all.Wait()
		f.mu.Lock()
		first := f.looked.IsZero()
		f.looks, f.looked = false, time.Now()
		f.mu.Unlock()
		if first {
			e.o.MayLeadChanged()
		}
	})
}

// resigned is the reason to give a term up at once after an error; nil: to try again.
func resigned(err error) error {
	switch {
	case errors.Is(err, ErrTermOver):
		return ErrTermOver
	case errors.Is(err, ErrNewerFormat):
		return fmt.Errorf("cannot lead: %w", err)
	}
	return nil
}
