package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// inDoubt leaves a node whose term has ended while the write that claims the hourly run was under way:
// it lands when the test says so.
func inDoubt(t *testing.T, shared ledger.Store, calls *app) (way *ledgertest.Faults, a, b *node) {
	t.Helper()
	way = ledgertest.NewFaults(shared)
	a, b = start(t, way, "a", calls), start(t, shared, "b", calls)
	jobs := []config.Job{job("hourly", "rate 1h")}
	a.engine.Define(jobs)
	b.engine.Define(jobs)
	_, leave := a.lead()
	time.Sleep(time.Hour - time.Second)
	stuck := true
	way.Decide(func(ledger.Name) ledgertest.Fault {
		if stuck {
			stuck = false
			way.FailReads(errors.New("no route to host"))
			return ledgertest.Late
		}
		return ledgertest.Refuse
	})
	time.Sleep(2 * time.Second)
	leave()
	if stuck {
		t.Fatal("nothing was claimed")
	}
	way.FailReads(nil)
	way.Decide(nil)
	return way, a, b
}

// DESIGN 5.2: what a write without an answer has claimed is looked after for as long as it takes, since
// it may be stored for as long as nobody has written since.
func TestAClaimThatIsStoredLateIsNotLost(t *testing.T) {
	for _, late := range []time.Duration{0, 500 * time.Millisecond, 3 * time.Second, 25 * time.Second, 10 * time.Minute} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, calls := ledger.NewSharedMemory(), &app{}
				way, a, b := inDoubt(t, shared, calls)
				time.Sleep(late)
				way.Land()
				time.Sleep(15 * time.Second) // nobody leads
				_, leave := b.lead()
				time.Sleep(2 * time.Minute)
				runs, err := b.engine.Runs(t.Context(), "", 10)
				if err != nil {
					t.Fatal(err)
				}
				if len(calls.Calls()) != 1 || len(runs) != 1 || runs[0].State != run.StateSucceeded {
					t.Errorf("%d calls, runs %+v, want one call and one run that succeeded", len(calls.Calls()), runs)
				}
				leave()
				a.close()
				b.close()
			})
		})
	}
}

// Thousands of sidecars may be in doubt after an outage of their API server: it costs each of them a few
// reads, one write at most, and none where a successor has written.
func TestADoubtCostsOneWrite(t *testing.T) {
	for name, succeeded := range map[string]bool{"nobody leads": false, "a successor takes over": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				way, a, b := inDoubt(t, shared, &app{})
				reads, writes := way.Asked()
				leave := func() {}
				if succeeded {
					_, leave = b.lead()
				}
				time.Sleep(20 * time.Minute)
				readsAfter, writesAfter := way.Asked()
				wantWrites := 1
				if succeeded {
					wantWrites = 0
				}
				if r, w := readsAfter-reads, writesAfter-writes; r > 6 || w != wantWrites {
					t.Errorf("twenty minutes cost %d reads and %d writes, want at most 6 and %d", r, w, wantWrites)
				}
				leave()
				a.close()
				b.close()
			})
		})
	}
}

// A process that is about to end leaves no claim behind that could be stored after it.
func TestADrainSettlesWhatIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, calls := ledger.NewSharedMemory(), &app{}
		way, a, b := inDoubt(t, shared, calls)
		began := time.Now()
		a.close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the drain took %s although the ledger can be written", took)
		}
		way.Land()
		_, leave := b.lead()
		time.Sleep(time.Minute)
		if n := len(calls.Calls()); n != 1 {
			t.Errorf("%d calls, want one by the next leader", n)
		}
		leave()
		b.close()
	})
}

// A swap of which one try got no answer and the next is too large is both.
func TestTooLargeAfterADoubtIsADoubt(t *testing.T) {
	way := ledgertest.NewFaults(ledger.NewSharedMemory())
	port := ledger.NewPort[state.Ledger](way, ledger.NameLedger, ledger.WithMaxBytes(1000))
	way.Script(ledgertest.Late)
	calls := 0
	_, err := port.Swap(t.Context(), func(l *state.Ledger) error {
		if calls++; calls > 1 {
			l.Holder = strings.Repeat("x", 1000)
		}
		return nil
	})
	if !errors.Is(err, engine.ErrUnknown) || !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("Swap() = %v, want both %v and %v", err, engine.ErrUnknown, engine.ErrTooLarge)
	}
}
