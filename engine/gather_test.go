package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

// tallied counts the writes of the ledger, each of which takes 5 ms.
type tallied struct {
	ledger.Store
	writes atomic.Int64
}

func (c *tallied) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	time.Sleep(5 * time.Millisecond)
	if name == ledger.NameLedger {
		c.writes.Add(1)
	}
	return c.Store.Replace(ctx, name, from, data)
}

// Rule 9: however many runs end, and at whatever moments, there are few writes; and all of a crowd are sent.
func TestACrowdThatEndsCostsFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tallied{Store: ledger.NewSharedMemory()}
		a := &app{workOf: func(x run.Attempt) time.Duration { return time.Duration(20+int(x.Run.ID[31])) * time.Millisecond }}
		n := start(t, store, "a", a)
		var jobs []config.Job
		for i := range 1000 {
			jobs = append(jobs, job(fmt.Sprintf("j%04d", i), "cron 0 0 * * * ?"))
		}
		n.engine.Define(jobs)
		_, leave := n.lead()
		time.Sleep(time.Second)
		instant := time.Now().Truncate(time.Hour).Add(time.Hour)
		time.Sleep(time.Until(instant) - 500*time.Millisecond)
		most, before := int64(0), store.writes.Load()
		for range 10 {
			time.Sleep(time.Second)
			now := store.writes.Load()
			most, before = max(most, now-before), now
		}
		calls := a.Calls()
		if len(calls) < 1000 {
			t.Fatalf("%d of 1000 were sent within ten seconds", len(calls))
		}
		if last := calls[len(calls)-1].at.Sub(instant); last > 7*time.Second {
			t.Errorf("the last was sent %s after the instant", last)
		}
		if most > 20 {
			t.Errorf("%d writes in a second, want a few", most)
		}
		t.Logf("last sent %s after the instant, at most %d writes in a second", calls[len(calls)-1].at.Sub(instant), most)
		leave()
		n.close()
	})
}
