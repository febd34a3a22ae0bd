package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
)

// withoutHistory is a store of which the history cannot be read while it is out.
type withoutHistory struct {
	ledger.Store
	out   atomic.Bool
	hangs bool // instead of saying so
}

func (s *withoutHistory) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	if name != ledger.NameHistory || !s.out.Load() {
		return s.Store.Load(ctx, name)
	}
	if s.hangs {
		<-ctx.Done()
		return nil, "", context.Cause(ctx)
	}
	return nil, "", ledger.ErrMissing
}

// Who cannot read the history leads all the same (rule 4): it only tells when jobs last ran, and says so
// once it can.
func TestATakeoverNeedsNoHistory(t *testing.T) {
	for name, hangs := range map[string]bool{"it is not there": false, "it does not answer": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := ledger.NewSharedMemory()
				store := &withoutHistory{Store: shared, hangs: hangs}
				a, b := start(t, shared, "a", &app{}), start(t, store, "b", &app{})
				daily := job("daily", "cron 0 0 3 * * ?")
				a.engine.Define([]config.Job{daily})
				b.engine.Define([]config.Job{daily, job("tick", "rate 1s")})
				_, leave := a.lead()
				time.Sleep(24*time.Hour + 500*time.Millisecond)
				success := a.jobStatus("daily").LastSuccess
				leave()
				store.out.Store(true)
				l, leave := b.lead()
				time.Sleep(20 * time.Second)
				if calls := callsOf("tick", b.app); calls < 18 {
					t.Errorf("%d calls within 20 s of a job for each second", calls)
				}
				if got := ledgerOf(t, shared).Term; got != 2 || l.Check() != nil {
					t.Errorf("term %d, and the lease is %v, want the second term and held", got, l.Check())
				}
				store.out.Store(false)
				time.Sleep(2 * time.Minute)
				if got := b.jobStatus("daily").LastSuccess; !got.Equal(success) || got.IsZero() {
					t.Errorf("the last success is %s once the history can be read, want %s", got, success)
				}
				leave()
				a.close()
				b.close()
			})
		})
	}
}

// A history that nobody can make sense of costs its records, no run.
func TestADamagedHistoryStopsNothing(t *testing.T) {
	for _, text := range []string{`no JSON`, `{"jobs":{}}`, `{"format":1,"writeId":"x","jobs":7}`} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				_, v, _ := store.Load(t.Context(), ledger.NameHistory)
				if _, err := store.Replace(t.Context(), ledger.NameHistory, v, []byte(text)); err != nil {
					t.Fatal(err)
				}
				n := start(t, store, "a", &app{})
				n.engine.Define([]config.Job{job("tick", "rate 1s")})
				l, leave := n.lead()
				time.Sleep(20 * time.Second)
				if calls := len(n.app.Calls()); calls < 19 || l.Check() != nil || ledgerOf(t, store).Term != 1 {
					t.Errorf("%d calls within 20 s of a job for each second, term %d, lease %v", calls, ledgerOf(t, store).Term, errors.Unwrap(l.Check()))
				}
				leave()
				n.close()
			})
		})
	}
}
