package engine_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
)

// TestWhatIsDueAtOnceBeginsInOrder: of runs of one instant, those of larger priority are fired
// first, although each has a goroutine of its own.
func TestWhatIsDueAtOnceBeginsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Each look at the clock is a microsecond later, so that firedAt tells the order.
		var looks atomic.Int64
		n := start(t, ledger.NewMemory(), "a", &app{work: 10 * time.Millisecond}, func(o *engine.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(looks.Add(1)) * time.Microsecond) }
			o.MaxRuns = 20
		})
		var jobs []config.Job
		for i := range 60 {
			jobs = append(jobs, job(fmt.Sprintf("job-%02d", i), "rate 1m", func(j *config.Job) { j.Triggers[0].Priority = i * 7 % 10 }))
		}
		n.engine.Define(jobs)
		_, leave := n.lead()
		time.Sleep(time.Minute + 30*time.Second)
		synctest.Wait()
		calls := n.app.Calls()
		if len(calls) != len(jobs) {
			t.Fatalf("%d calls of %d jobs with rate 1m after a minute and a half", len(calls), len(jobs))
		}
		slices.SortFunc(calls, func(a, b call) int { return a.Run.FiredAt.Compare(b.Run.FiredAt) })
		for i := 1; i < len(calls); i++ {
			if before, now := calls[i-1].Run, calls[i].Run; now.Priority > before.Priority {
				t.Errorf("%s of priority %d was fired after %s of priority %d", now.Key, now.Priority, before.Key, before.Priority)
			}
		}
		leave()
		n.close()
	})
}
