package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

// A disk that is full, or an API server that is away, must not keep a process from ending.
func TestTheEndDoesNotWaitForAnAppWhoseRunCannotBeReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := ledgertest.NewFaults(ledger.NewMemory())
		n := start(t, way, "a", &app{work: 90 * time.Minute})
		n.engine.Define([]config.Job{job("long", "rate 1m", func(j *config.Job) { j.Timeout = 2 * time.Hour })})
		_, leave := n.lead()
		time.Sleep(65 * time.Second)
		way.FailReads(errors.New("no space left on device"))
		way.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Refuse })
		leave()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		if err := n.engine.Drain(ctx); err == nil {
			t.Error("Drain() = nil although the run could not be recorded")
		}
		n.stop()
		began := time.Now()
		n.awaitEnd()
		if took := time.Since(began); took > time.Second {
			t.Errorf("Run() returned %s after the end of its context", took)
		}
	})
}
