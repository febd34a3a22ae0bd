package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

// callTimeout bounds a call to the API server, for a document.
const callTimeout = 3 * time.Second

// store is the documents as one node reaches them.
type store struct{ node *node }

var _ ledger.Store = (*store)(nil)

// Load implements [ledger.Store].
func (s *store) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	o, err := call(ctx, s.node, groupDocs, "load "+string(name), callTimeout, func() (object, error) {
		data, v := s.node.world.server.load(name)
		return object{data: data, version: v}, nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("load %s: %w", name, err)
	}
	return o.data, o.version, nil
}

// Replace implements [ledger.Store].
func (s *store) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	if len(data) > s.node.world.bound(name) {
		s.node.world.tally("refused as too large: " + string(name))
		return "", ledger.ErrTooLarge
	}
	data = slices.Clone(data)
	v, err := call(ctx, s.node, groupDocs, "write "+string(name), callTimeout, func() (ledger.Version, error) {
		return s.node.world.server.replace(s.node, name, from, data)
	})
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, errNoAnswer):
		return "", fmt.Errorf("replace %s: %w: %w", name, ledger.ErrUnknown, err)
	}
	return "", fmt.Errorf("replace %s: %w", name, err)
}

// Watch implements [ledger.Store].
func (s *store) Watch(ctx context.Context, name ledger.Name, changed func(ledger.Version)) error {
	return s.node.watch(ctx, groupDocs, name, changed)
}

// Exclusive implements [ledger.Store].
func (s *store) Exclusive() bool { return false }

// Close implements [ledger.Store].
func (s *store) Close() error { return nil }

// call carries a request to the API server and its answer back: apply runs there, if it arrives.
// An error that is errRefused says that it surely never will; errNoAnswer, that it may have, or
// may yet.
func call[T any](ctx context.Context, n *node, group, what string, timeout time.Duration, apply func() (T, error)) (T, error) {
	var nothing T
	what += asker(ctx)
	if err := n.gate(what); err != nil {
		return nothing, err
	}
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	w := n.world
	r := w.dice.roll(n.twin(ctx, what), n.life)
	quiet, slow := w.isQuiet(), w.slow
	if quiet {
		slow = min(slow, 20*time.Millisecond)
	}
	there, back := between(r, time.Millisecond, slow), between(r, time.Millisecond, slow)
	fault := callPasses
	if !quiet && len(w.kinds) > 0 && chance(r, w.faulty) {
		fault = pick(r, w.kinds...)
	}
	failure := errNoAnswer
	var patience time.Duration // until the caller gives up; 0: not before its time
	arrives, answered := true, true
	switch fault {
	case callPasses:
	case callRefused:
		arrives, failure, patience = false, errRefused, there
	case callDropped:
		arrives, patience = false, there
	case callUnheard:
		answered, patience = false, there+back
	case callLate:
		patience = there
		there, answered = between(r, 100*time.Millisecond, 12*time.Second), false
	case callHangs:
		arrives = false
	case callFails:
		arrives, answered, patience = chance(r, 0.5), false, there+back
	}
	if fault != callPasses {
		w.tally("call: " + fault.String())
		if group == groupDocs {
			n.disturb()
		}
	}
	if !w.server.reachable(group) || n.cutOff(group) {
		arrives, patience = false, 0
		if chance(r, 0.5) {
			failure, patience = errRefused, there
		}
		w.tally("call: unreachable")
	}

	type result struct {
		value T
		err   error
	}
	answer := make(chan result, 1)
	if arrives {
		time.AfterFunc(there, func() {
			if fault != callLate && !w.server.reachable(group) {
				return
			}
			value, err := apply()
			if answered {
				time.AfterFunc(back, func() {
					if !n.cutOff(group) && w.server.reachable(group) {
						answer <- result{value, err}
					}
				})
			}
		})
	}
	if patience == 0 || patience > timeout {
		patience, failure = timeout, errNoAnswer
		if !arrives && fault == callRefused {
			failure = errRefused
		}
	}
	timer := time.NewTimer(patience)
	if arrives && answered {
		timer.Reset(timeout)
	}
	defer timer.Stop()
	var got result
	select {
	case got = <-answer:
	case <-timer.C:
		got.err = failure
	case <-ctx.Done():
		got.err = fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
	}
	if dead := n.gate("answer to " + what); dead != nil {
		return nothing, fmt.Errorf("%w: %w", errNoAnswer, dead)
	}
	return got.value, got.err
}

// twin names a call so that the dice have another answer for each of those that are made at the same moment:
// else whose call arrives first would be a matter of chance. What the process does of its own accord begins
// in the same order each time, requests that were held up by the same thing do not.
func (n *node) twin(ctx context.Context, what string) string {
	now := time.Now()
	n.mu.Lock()
	last := n.asked[what]
	if !last.at.Equal(now) {
		last = calls{at: now}
	}
	last.n++
	n.asked[what] = last
	n.mu.Unlock()
	if last.n == 1 {
		return what
	}
	if asker(ctx) != "" {
		n.world.check.fail("the simulation cannot repeat itself: %s makes two calls to %s at once, which nothing tells apart", n.name, what)
	}
	return what + " again " + strconv.Itoa(last.n)
}

// calls counts those of one purpose at one moment.
type calls struct {
	at time.Time
	n  int
}

// watch tells of the changes of an object, late, and with breaks.
func (n *node) watch(ctx context.Context, group string, name ledger.Name, changed func(ledger.Version)) error {
	open := func() (struct{}, error) { return struct{}{}, nil }
	if _, err := call(ctx, n, group, "watch "+string(name), callTimeout, open); err != nil {
		return err
	}
	w := n.world
	sub := w.server.subscribe(name)
	defer w.server.unsubscribe(name, sub)
	r := w.dice.roll("watch "+string(name), n.life)
	end := make(chan struct{})
	life := time.AfterFunc(between(r, 20*time.Second, 300*time.Second), func() { close(end) })
	defer life.Stop()
	tell := func() {
		_, v := w.server.load(name)
		changed(v)
	}
	broken := false
	tell()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			if err := n.gate("end of watch " + string(name)); err != nil {
				return err
			}
			return errors.New("the watch has ended")
		case <-sub:
		}
		select {
		case <-end:
			continue // a select between two that are ready is a matter of chance
		default:
		}
		if broken {
			continue
		}
		r := w.dice.roll("notice "+string(name), n.life)
		late := time.NewTimer(between(r, time.Millisecond, w.lag))
		select {
		case <-ctx.Done():
			late.Stop()
			return context.Cause(ctx)
		case <-late.C:
		}
		if n.cutOff(group) || !w.server.reachable(group) {
			// What is dropped makes the connection useless; the client notices by the silence.
			if broken = true; life.Stop() {
				life.Reset(between(r, time.Second, 90*time.Second))
			}
			w.tally("watch: broken")
			continue
		}
		if err := n.gate("notice " + string(name)); err != nil {
			return err
		}
		tell()
	}
}
