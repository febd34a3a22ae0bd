package engine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
	"github.com/leasecron/leasecron/engine/run"
)

// The answer to a callback is noted on its lost run as the word of an app on an asynchronous one is,
// also when the record has left the ledger for the history long ago, and nobody writes that just then.
func TestALateAnswerIsNotedInTheHistory(t *testing.T) {
	for name, fault := range map[string]struct {
		answer  run.Outcome
		note    string
		outage  time.Duration // of the history, at the moment of the answer
		written bool
	}{
		"a success":                       {run.Outcome{State: run.StateSucceeded, Status: 200}, "late result: Succeeded", 0, true},
		"a failure":                       {run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 500}, "late result: Failed", 0, true},
		"while the history is out":        {run.Outcome{State: run.StateSucceeded, Status: 200}, "late result: Succeeded", time.Minute, true},
		"while the history stays out":     {run.Outcome{State: run.StateSucceeded, Status: 200}, "late result: Succeeded", time.Hour, false},
		"of an attempt that was not sent": {run.Outcome{State: run.StateFailed, NotSent: true}, "late result", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				way := ledgertest.NewFaults(shared)
				var turns atomic.Int64
				slow := &app{work: 20 * time.Minute, answer: func(run.Attempt) run.Outcome { return fault.answer }}
				a, b := start(t, way, "a", slow, counting(&turns)), start(t, shared, "b", &app{})
				jobs := []config.Job{job("long", "rate 1h", func(j *config.Job) { j.Timeout = time.Hour })}
				a.engine.Define(jobs)
				b.engine.Define(jobs)
				_, leave := a.lead()
				time.Sleep(time.Hour + 5*time.Second)
				way.FailReads(errors.New("no route to host"))
				way.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Refuse })
				leave()
				_, leaveB := b.lead()
				time.Sleep(10 * time.Minute)
				if l := ledgerOf(t, shared); len(l.Runs)+len(l.Finished) != 0 {
					t.Fatalf("open %v, finished %v, want the lost run's record in the history", l.Runs, l.Finished)
				}
				way.FailReads(nil)
				way.Decide(func(name ledger.Name) ledgertest.Fault {
					if name == ledger.NameHistory {
						return ledgertest.Refuse
					}
					return ledgertest.Pass
				})
				time.Sleep(10 * time.Second)
				turns.Store(0)
				time.Sleep(9 * time.Minute)
				if n := turns.Load(); n > 1_000 { // it looks at the clock every ten seconds
					t.Errorf("the clock was read %d times in nine minutes in which there is nothing to do but to wait for the app", n)
				}
				time.Sleep(50*time.Second + fault.outage)
				way.Decide(nil)
				time.Sleep(10 * time.Second)
				runs, err := b.engine.Runs(t.Context(), "long", 10)
				if err != nil {
					t.Fatal(err)
				}
				var lost *run.Run
				for i := range runs {
					if runs[i].State == run.StateLost {
						lost = &runs[i]
					}
				}
				if lost == nil {
					t.Fatalf("runs %+v, want a lost one: what it was called it stays", runs)
				}
				if noted := strings.Contains(lost.Message, fault.note); noted != fault.written {
					t.Errorf("the lost run says %q; with the note: %v, want %v", lost.Message, noted, fault.written)
				}
				leaveB()
				a.close()
				b.close()
			})
		})
	}
}

// counting counts how often an engine reads the wall clock, which it does in each turn of its loop.
func counting(reads *atomic.Int64) func(*engine.Options) {
	return func(o *engine.Options) {
		o.Now = func() time.Time {
			reads.Add(1)
			return time.Now()
		}
	}
}
