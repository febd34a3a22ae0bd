package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/state"
)

// An app that starts late costs no run: on the very first installation, too, nobody leads until the
// app answers, and the instants from when the jobs were known on are dealt with like any that nobody led.
func TestAnAppThatStartsLateCostsNoRun(t *testing.T) {
	tests := map[string]struct {
		late  time.Duration // from when the jobs are known to the first leadership
		prior func(t *testing.T, store ledger.Store)
		edit  time.Duration // after which the jobs are published anew; 0: never
		want  []time.Duration
	}{
		"forty seconds":                          {late: 40 * time.Second, want: []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second}},
		"longer than the grace: one run for all": {late: 3 * time.Minute, want: []time.Duration{10 * time.Second}},
		"edited meanwhile: what was not known yet does not run": {
			late: 40 * time.Second, edit: 25 * time.Second, want: []time.Duration{35 * time.Second},
		},
		"the ledger is gone: planning starts now": {
			late: 40 * time.Second,
			prior: func(t *testing.T, store ledger.Store) {
				t.Helper()
				swap(t, store, ledger.NameCatalog, func(c *state.Catalog) { c.Term = 7 })
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, jobs := ledger.NewSharedMemory(), []config.Job{job("tick", "rate 10s")}
				if tt.prior != nil {
					tt.prior(t, store)
				}
				clock := &stepped{}
				n := start(t, store, "a", &app{}, func(o *engine.Options) { o.Now = clock.now })
				began := clock.now()
				n.engine.Define(jobs)
				if tt.edit > 0 {
					time.Sleep(tt.edit)
					n.engine.Define(jobs)
				}
				time.Sleep(tt.late - tt.edit)
				_, leave := n.lead()
				time.Sleep(time.Second)
				calls := n.app.Calls()
				if len(calls) != len(tt.want) {
					t.Fatalf("%d calls, want those of %v", len(calls), tt.want)
				}
				for i, c := range calls {
					if got := c.Run.ScheduledAt.Sub(began.UTC()); got != tt.want[i] {
						t.Errorf("call %d is for %s after the jobs were known, want %s", i, got, tt.want[i])
					}
				}
				leave()
				n.close()
			})
		})
	}
}

// The clock of a machine that has just booted may be years off until it is set; how long the jobs are
// known is measured by the monotonic one.
func TestAClockThatIsSetBeforeTheFirstTakeoverMakesNothingDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stepped{}
		clock.step(-30 * 24 * time.Hour)
		n := start(t, ledger.NewMemory(), "a", &app{}, func(o *engine.Options) { o.Now = clock.now })
		n.engine.Define([]config.Job{job("tick", "rate 10s")})
		time.Sleep(5 * time.Second)
		clock.step(30 * 24 * time.Hour)
		_, leave := n.lead()
		time.Sleep(4 * time.Second)
		if calls := n.app.Calls(); len(calls) != 0 {
			t.Errorf("%d calls within 9 s of rate 10s", len(calls))
		}
		leave()
		n.close()
	})
}
