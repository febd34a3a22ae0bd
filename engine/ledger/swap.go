package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Swap lets change alter the document and stores the result. It returns the document as it then
// is, and its version; the caller owns the value.
//
// Change gets a private copy of the stored value. It is called again, with what is then stored,
// after each conflict and wherever an unanswered write was looked for in vain: its result must
// depend on nothing but that value and what is fixed for the whole swap. The last call is the one
// that counts. It may find the result of an earlier call stored, where that landed late or others
// have written more than a few times since; what must not happen twice carries an ID by which
// change knows it again. What change returns when it does not want to write ends the swap:
// [ErrNoChange] with the stored value and no error, any other error as it is, with no value.
// Both are believed only of a freshly read value; where the result of an earlier call may be stored
// all the same, the error is [ErrUnknown] too.
//
// A nil error means that the change is stored. [ErrUnknown] means that it may be, now or later;
// then ctx ended, or too many attempts did, before the Store gave a clear answer. After any other
// error it is not.
func (d *Document[T]) Swap(ctx context.Context, change func(*T) error) (*T, Version, error) {
	return d.swap(ctx, &swap[T]{Document: d, change: change})
}

func (d *Document[T]) swap(ctx context.Context, s *swap[T]) (*T, Version, error) {
	start := time.Now()
	value, version, err := s.run(ctx)
	d.observe(Swapped{Name: d.name, Took: time.Since(start), Bytes: s.bytes, Attempts: s.attempts, Err: err})
	if err != nil {
		return nil, "", err
	}
	return value, version, nil
}

// SwapOnce is Swap for a change whose result cannot be known again in the document once others have
// written on: where the result of an earlier call of change may be stored and that cannot be told, it
// ends with [ErrUnknown] instead of calling change once more.
func (d *Document[T]) SwapOnce(ctx context.Context, change func(*T) error) (*T, Version, error) {
	return d.swap(ctx, &swap[T]{Document: d, change: change, once: true})
}

// swap is one call of Swap on its way.
type swap[T any] struct {
	*Document[T]
	change func(*T) error
	once   bool // end instead of calling change again in doubt

	base *stored // nil: has to be read
	read bool    // base was read by this swap, not remembered
	// open are the writes that got no answer, all sent from the version of from. They may land as long
	// as it stands, whatever reads say: only another write from it, won or lost, settles them.
	open []write[T]
	from *stored
	// doubt: the result of a call of change other than the last is stored, or may be, buried so
	// deep that it cannot be told.
	doubt bool
	last  write[T] // the result of the last call of change
	// unanswered: the last write got no answer and has not been looked for yet.
	unanswered bool

	bytes, attempts, failures int
}

// write is one result of change, made ready to be sent.
type write[T any] struct {
	id    string
	body  []byte
	whole bool // of body, as in stored
	value *T
	stop  error // what change returned instead of a result; the write only settles earlier ones
}

func (s *swap[T]) run(ctx context.Context) (*T, Version, error) {
	s.base = s.recall()
	for {
		if s.base == nil {
			landed, err := s.reread(ctx)
			switch {
			case err != nil && (len(s.open) == 0 || lasting(err)):
				return nil, "", s.unsettled(err)
			case err != nil:
				if err := s.pause(ctx, err); err != nil {
					return nil, "", err
				}
				continue
			case landed:
				return s.landed()
			case s.once && s.doubt:
				return nil, "", s.unsettled(errBuried)
			case s.unanswered: // it was looked for at once; the next attempt is in no hurry
				s.unanswered = false
				if err := s.pause(ctx, ErrUnknown); err != nil {
					return nil, "", err
				}
			}
		}
		w, err := s.compute()
		if err == nil && (w.stop == nil || len(s.open) > 0) {
			var done bool
			if done, err = s.send(ctx, w); done {
				return s.landed()
			}
			if err == nil {
				continue
			}
		}
		switch {
		case !s.read: // what was remembered may be outdated, and so this end with it
			s.base = nil
		case err != nil:
			return nil, "", s.unsettled(err)
		default:
			return s.stopped(w.stop)
		}
	}
}

// reread reads the document and reports whether the last result of change turned out to be stored.
func (s *swap[T]) reread(ctx context.Context) (landed bool, err error) {
	base, err := s.load(ctx)
	if err != nil {
		return false, err
	}
	s.base, s.read = base, true
	landed = base.envelope.has(s.last.id)
	if len(s.open) == 0 || base.version == s.from.version {
		return landed, nil
	}
	if !landed { // else it was the one of all from that version
		s.doubt = s.doubt || !base.envelope.follows(s.from.envelope) ||
			slices.ContainsFunc(s.open, func(w write[T]) bool { return base.envelope.has(w.id) })
	}
	s.open = nil // what has not landed by now never will
	return landed, nil
}

// compute calls change on a copy of base and encodes what comes of it.
func (s *swap[T]) compute() (write[T], error) {
	value, err := s.decode(s.base)
	if err != nil {
		return write[T]{}, err
	}
	w := write[T]{value: value, whole: s.base.whole}
	var known []byte
	if !w.whole {
		if known, err = encode(storedForm(value)); err != nil {
			return write[T]{}, fmt.Errorf("swap %s: %w", s.name, err)
		}
		w.whole = bytes.Equal(known, s.base.body)
	}
	if w.stop = s.change(value); w.stop != nil {
		if w.body = s.base.body; w.body == nil {
			w.body = []byte("{}")
		}
	} else {
		if w.body, err = encode(storedForm(value)); err == nil && !w.whole {
			var base bytes.Buffer // compact, as what is encoded is, so that equal parts are equal bytes
			var carried bool
			if err = json.Compact(&base, s.base.body); err == nil {
				w.body, carried, err = carry(base.Bytes(), known, w.body)
			}
			w.whole = !carried
		}
		if err != nil {
			return write[T]{}, fmt.Errorf("swap %s: %w", s.name, err)
		}
	}
	// The same bytes from the same version are the same write, whichever copy of it lands.
	for _, o := range s.open {
		if bytes.Equal(o.body, w.body) {
			w.id = o.id
			return w, nil
		}
	}
	w.id = newWriteID()
	return w, nil
}

// send sends one write. With neither done nor an error, the swap has to go on.
func (s *swap[T]) send(ctx context.Context, w write[T]) (done bool, err error) {
	next := &stored{envelope: s.base.envelope.next(w.id), body: w.body, whole: w.whole}
	data, err := seal(next.envelope, next.body)
	if err == nil && s.maxBytes > 0 {
		err = checkSize(s.name, len(data), s.maxBytes)
	}
	if err != nil {
		return false, fmt.Errorf("swap %s: %w", s.name, err)
	}
	s.last, s.from = w, s.base
	s.bytes, s.attempts = len(data), s.attempts+1
	s.own.begin()
	version, err := s.store.Replace(ctx, s.name, s.from.version, data)
	s.own.end(s.from.version, version, err)
	if err == nil {
		next.version, next.size = version, len(data)
		s.remember(next)
		s.base, s.open = next, nil
		return true, nil
	}
	remembered := !s.read
	conflict := errors.Is(err, ErrConflict)
	if !conflict && !errors.Is(err, ErrUnknown) && (len(s.open) == 0 || lasting(err)) {
		return false, fmt.Errorf("swap %s: %w", s.name, err)
	}
	s.base, s.read = nil, true
	s.remember(nil)
	switch {
	case errors.Is(err, ErrUnknown):
		s.open, s.unanswered = append(s.open, w), true
		return false, nil // look at once: the longer it waits, the more others write over it
	case conflict && remembered:
		return false, nil // what was remembered was outdated: no reason to wait either
	}
	return false, s.pause(ctx, err)
}

var errBuried = errors.New("others have written over what got no answer")

// lasting reports whether asking again would give the same answer.
func lasting(err error) bool {
	for _, e := range []error{ErrMissing, ErrTooLarge, ErrCorrupt, ErrNewerFormat, ErrClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// landed ends a swap whose last result is stored.
func (s *swap[T]) landed() (*T, Version, error) {
	if s.last.stop != nil { // it settled what came before
		return s.stopped(s.last.stop)
	}
	if s.base.envelope.WriteID == s.last.id {
		return s.last.value, s.base.version, nil
	}
	value, err := s.decode(s.base) // others have written since
	return value, s.base.version, err
}

// stopped ends a swap that has nothing to write. The value is decoded anew, because change may
// have altered its copy before it decided.
func (s *swap[T]) stopped(reason error) (*T, Version, error) {
	if !errors.Is(reason, ErrNoChange) {
		return nil, "", s.unsettled(reason)
	}
	value, err := s.decode(s.base)
	return value, s.base.version, err
}

// unsettled makes of an error one that says what is left open.
func (s *swap[T]) unsettled(err error) error {
	if (len(s.open) == 0 && !s.doubt) || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("swap %s: %w: %w", s.name, ErrUnknown, err)
}

// pause waits before the next attempt, and returns an error where there is to be none. Random
// waits keep writers that collided from colliding again.
func (s *swap[T]) pause(ctx context.Context, why error) error {
	s.failures++
	if s.failures >= s.maxAttempts {
		return s.unsettled(fmt.Errorf("swap %s: gave up after %d attempts: %w", s.name, s.failures, why))
	}
	wait := min(time.Second, 4*time.Millisecond<<min(s.failures, 10))
	timer := time.NewTimer(s.jitter(wait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return s.unsettled(fmt.Errorf("swap %s: %w (%w)", s.name, context.Cause(ctx), why))
	}
}
