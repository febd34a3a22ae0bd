package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

// While the app refuses connections nothing was sent: the run is pending, and neither it nor its job tells
// of a start. That holds also once a node that does not lead has told the ledger that it works on the run.
func TestARunThatCannotReachItsAppIsPending(t *testing.T) {
	for name, follows := range map[string]bool{"the node leads": false, "the node follows": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				n := start(t, store, "a", &app{work: time.Minute, down: 25 * time.Second})
				n.engine.Define([]config.Job{job("import", "rate 1h", func(j *config.Job) { j.Timeout = 10 * time.Minute })})
				_, leave := n.lead()
				time.Sleep(time.Hour + time.Second)
				synctest.Wait()
				status := n.jobStatus
				if follows {
					leave()
					status = func(string) engine.JobStatus {
						jobs, err := n.engine.Jobs(t.Context())
						if err != nil || len(jobs) != 1 {
							t.Fatalf("Jobs() = %v, %v; want one", jobs, err)
						}
						return jobs[0]
					}
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if n.app.down == 0 || len(n.app.Calls()) != 0 {
					t.Fatal("the app was reached: the test proves nothing")
				}
				if beats := ledgerOf(t, store).Runs[0].Beat; follows && beats == 0 {
					t.Fatal("the ledger was told nothing: the test proves nothing")
				}
				if r := theRun(t, n); r.State != run.StatePending || !r.FiredAt.IsZero() {
					t.Errorf("before a connection the run is %s, fired at %s; want it pending", r.State, r.FiredAt)
				}
				if s := status("import"); !s.LastStart.IsZero() {
					t.Errorf("before a connection the job tells of a start at %s", s.LastStart)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				began := time.Now().Truncate(time.Second).Add(-time.Second)
				r := theRun(t, n)
				if follows { // its term is over, so that it may not send any more
					if r.State != run.StateQueued || !status("import").LastStart.IsZero() {
						t.Errorf("after its term the run is %s, want it handed back", r.State)
					}
					n.close()
					return
				}
				if r.State != run.StateRunning || r.FiredAt.Before(began) {
					t.Errorf("with the connection the run is %s, fired at %s; want it running since %s", r.State, r.FiredAt, began)
				}
				if s := status("import"); s.LastStart.IsZero() {
					t.Error("with the connection the job tells of no start")
				}
				leave()
				n.close()
			})
		})
	}
}
