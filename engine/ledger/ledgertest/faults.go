// Package ledgertest holds the conformance suite that every ledger.Store passes, and a Store that
// fails on demand, for the tests of whatever stands on a ledger.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

// Fault is what becomes of one write.
type Fault int

// The faults.
const (
	// Pass lets the write through.
	Pass Fault = iota
	// DropRequest loses the write on its way: unknown to the caller, never stored.
	DropRequest
	// DropAnswer stores the write and loses the answer.
	DropAnswer
	// Late leaves the caller without an answer, and the write on its way until [Faults.Land].
	Late
	// Refuse fails the write for good, with [ErrRefused].
	Refuse
	// Hang answers nothing until the caller's context ends; the write is never stored.
	Hang
)

// ErrRefused is what [Refuse] and refused reads fail with.
var ErrRefused = errors.New("refused on demand")

// Faults is a [ledger.Store] in front of another that fails on demand. It is safe for concurrent
// use. Without orders it passes everything on.
type Faults struct {
	ledger.Store

	mu     sync.Mutex
	script []Fault
	decide func(ledger.Name) Fault
	reads  error
	delay  time.Duration
	late   []func()
	asked  int
	loads  int
}

var _ ledger.Store = (*Faults)(nil)

// NewFaults puts faults in front of store.
func NewFaults(store ledger.Store) *Faults { return &Faults{Store: store} }

// Script orders the faults of the next writes, one after the other; what comes after them passes.
func (f *Faults) Script(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, faults...)
}

// Decide asks fault before each write that no script covers. Nil ends that.
func (f *Faults) Decide(fault func(ledger.Name) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = fault
}

// FailReads makes reads fail with err, until it is called with nil.
func (f *Faults) FailReads(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads = err
}

// Delay lets each answer to a read or a write wait that long.
func (f *Faults) Delay(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = d
}

// Land lets all late writes arrive, in the order in which they were sent. Those whose version has
// passed are refused by the store, as they should be.
func (f *Faults) Land() {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, arrive := range late {
		arrive()
	}
}

// Asked returns how many reads and writes were asked for so far.
func (f *Faults) Asked() (loads, replaces int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads, f.asked
}

// Load implements [ledger.Store].
func (f *Faults) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	f.mu.Lock()
	f.loads++
	err, delay := f.reads, f.delay
	f.mu.Unlock()
	if err != nil {
		return nil, "", fmt.Errorf("load %s: %w", name, err)
	}
	data, version, err := f.Store.Load(ctx, name)
	if !wait(ctx, delay) {
		return nil, "", fmt.Errorf("load %s: %w", name, context.Cause(ctx))
	}
	return data, version, err
}

// Replace implements [ledger.Store].
func (f *Faults) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	fault, delay := f.next(name)
	unknown := fmt.Errorf("replace %s: %w", name, ledger.ErrUnknown)
	switch fault {
	case DropRequest:
		return "", unknown
	case DropAnswer:
		if _, err := f.Store.Replace(ctx, name, from, data); errors.Is(err, ledger.ErrTooLarge) {
			return "", err // that needs no answer
		}
		return "", unknown
	case Late:
		f.mu.Lock()
		defer f.mu.Unlock()
		ctx := context.WithoutCancel(ctx)
		f.late = append(f.late, func() { _, _ = f.Store.Replace(ctx, name, from, data) })
		return "", unknown
	case Refuse:
		return "", fmt.Errorf("replace %s: %w", name, ErrRefused)
	case Hang:
		<-ctx.Done()
		return "", unknown
	case Pass:
	}
	version, err := f.Store.Replace(ctx, name, from, data)
	if !wait(ctx, delay) {
		return "", unknown
	}
	return version, err
}

func (f *Faults) next(name ledger.Name) (Fault, time.Duration) {
	f.mu.Lock()
	f.asked++
	delay, decide := f.delay, f.decide
	if len(f.script) > 0 {
		fault := f.script[0]
		f.script = f.script[1:]
		f.mu.Unlock()
		return fault, delay
	}
	f.mu.Unlock()
	if decide == nil {
		return Pass, delay
	}
	return decide(name), delay
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
