package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

// The answer to a request for a run is lost, and so is the way to the documents for a while. By the
// time it is back the run has run and left the ledger, under many writes of others: it must not be
// written down again (G2). Found by the simulation, seed 8425.
func TestARunIsAskedForOnceHoweverLateTheAnswer(t *testing.T) {
	for name, limit := range map[string]int{"its record is in the history": 20, "its record is kept no more": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				way := ledgertest.NewFaults(shared)
				leader, asked := start(t, shared, "a", &app{}), start(t, cutAfterWrite{way}, "b", &app{})
				jobs := []config.Job{job("byhand", "manual", func(j *config.Job) { j.HistoryLimit = limit }), job("tick", "rate 1s")}
				leader.engine.Define(jobs)
				asked.engine.Define(jobs)
				_, leave := leader.lead()
				time.Sleep(5*time.Second + 300*time.Millisecond) // between two instants: the leader writes nothing
				way.Script(ledgertest.DropAnswer)
				done := make(chan error, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				go func() {
					_, err := asked.engine.Enqueue(ctx, "byhand", nil)
					done <- err
				}()
				time.Sleep(25 * time.Second) // flushed twice
				if limit == 1 {
					if _, err := leader.engine.Enqueue(t.Context(), "byhand", nil); err != nil {
						t.Fatal(err)
					}
					time.Sleep(25 * time.Second)
				}
				way.FailReads(nil)
				if err := <-done; (limit == 1) != errors.Is(err, engine.ErrUnknown) || limit > 1 && err != nil {
					t.Errorf("Enqueue() = %v, want it known if there is a record, else unknown", err)
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				occurrences(t, leader.app)
				if got, want := callsOf("byhand", leader.app), map[int]int{20: 1, 1: 2}[limit]; got != want {
					t.Errorf("%d runs by hand, want %d", got, want)
				}
				leave()
				leader.close()
				asked.close()
			})
		})
	}
}

// cutAfterWrite fails all reads once something was written, until somebody says otherwise.
type cutAfterWrite struct{ *ledgertest.Faults }

func (c cutAfterWrite) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	v, err := c.Faults.Replace(ctx, name, from, data)
	c.FailReads(errors.New("cut off"))
	return v, err
}
