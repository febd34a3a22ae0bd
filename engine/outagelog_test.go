package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

// warnings keeps the messages of lines at warning and above.
type warnings struct {
	mu   sync.Mutex
	told []string
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, r.Message)
	return nil
}

// take returns what was told since it was last called.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	return told
}

func (w *warnings) logged(o *engine.Options) { o.Logger = slog.New(w) }

// An outage is told of when it begins, once by each part that it hinders, however long it is: a line
// every few seconds would bury what else there is to read.
func TestAnOutageIsToldOfOnce(t *testing.T) {
	out := func(way *ledgertest.Faults, names ...ledger.Name) {
		way.Decide(func(name ledger.Name) ledgertest.Fault {
			if slices.Contains(names, name) {
				return ledgertest.Refuse
			}
			return ledgertest.Pass
		})
	}
	t.Run("a node that has lost the lease and still has a run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var w warnings
			way := ledgertest.NewFaults(ledger.NewSharedMemory())
			n := start(t, way, "a", &app{work: 10 * time.Minute}, w.logged)
			n.engine.Define([]config.Job{job("long", "rate 1h", func(j *config.Job) { j.Timeout = time.Hour })})
			_, leave := n.lead()
			time.Sleep(time.Hour + time.Second)
			way.FailReads(errors.New("no route to host"))
			out(way, ledger.NameLedger)
			leave()
			time.Sleep(time.Hour)
			if told := w.take(); len(told) != 1 && len(told) != 2 { // the hand-back, the reports
				t.Errorf("an hour of outage left %d warnings: %.3q", len(told), told)
			}
			way.FailReads(nil)
			way.Decide(nil)
			n.close()
		})
	})
	t.Run("a leader whose history cannot be written", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var w warnings
			way := ledgertest.NewFaults(ledger.NewSharedMemory())
			n := start(t, way, "a", &app{}, w.logged)
			n.engine.Define([]config.Job{job("tick", "rate 30s")})
			_, leave := n.lead()
			time.Sleep(time.Minute)
			for range 2 { // a second outage is told of as well
				out(way, ledger.NameHistory)
				w.take()
				time.Sleep(20 * time.Minute)
				if told := w.take(); len(told) != 1 {
					t.Errorf("twenty minutes of outage left %d warnings: %.3q", len(told), told)
				}
				way.Decide(nil)
				time.Sleep(time.Minute)
			}
			leave()
			n.close()
		})
	})
}
