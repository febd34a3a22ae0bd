package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
	"github.com/leasecron/leasecron/engine/run"
)

func TestAnOutageThatHitsBothSidesKillsNobody(t *testing.T) {
	// The old leader works on a run, the new one counts its silence. Then neither reaches the ledger for
	// longer than the node timeout; the leader is the first to reach it again.
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		behindA, behindB := ledgertest.NewFaults(store), ledgertest.NewFaults(store)
		options := func(o *engine.Options) { o.NodeTimeout, o.LeaseDuration = 12*time.Second, time.Minute }
		a := start(t, behindA, "a", &app{work: 50 * time.Second}, options)
		b := start(t, behindB, "b", &app{}, options)
		jobs := []config.Job{job("long", "once 2000-01-01T00:00:10Z", func(j *config.Job) { j.Timeout = time.Minute })}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leaveA := a.lead()
		time.Sleep(11 * time.Second)
		leaveA()
		_, leaveB := b.lead()
		time.Sleep(5 * time.Second)
		outage := func(f *ledgertest.Faults, on bool) {
			if !on {
				f.FailReads(nil)
				f.Decide(nil)
				return
			}
			f.FailReads(errors.New("no route to host"))
			f.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Refuse })
		}
		outage(behindA, true)
		outage(behindB, true)
		time.Sleep(15 * time.Second)
		outage(behindB, false)
		time.Sleep(6 * time.Second)
		outage(behindA, false)
		time.Sleep(time.Minute)
		l := ledgerOf(t, store)
		leaveB()
		a.close()
		b.close()
		history, err := ledger.NewPort[struct {
			Jobs map[string]struct{ Runs []struct{ State string } }
		}](store, ledger.NameHistory).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if runs := history.Jobs["long"].Runs; len(l.Runs) != 0 || len(runs) != 1 || runs[0].State != "Succeeded" {
			t.Errorf("open %+v, in the history %+v, want one run that succeeded", l.Runs, runs)
		}
	})
}

func TestASilenceThatCannotBeTrue(t *testing.T) {
	for _, silent := range []int64{-1_000_000_000_000, 9_300_000_000_000, 1 << 62} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				plantRun(t, store, run.Run{ID: "lost", Occurrence: "o", Key: run.Key{Job: "slow", Trigger: "default"}, Node: "dead", Silent: silent})
				n := start(t, store, "a", &app{})
				n.engine.Define([]config.Job{job("slow", "rate 10s"), job("tick", "rate 1s")})
				_, leave := n.lead()
				time.Sleep(10 * time.Minute)
				if ledgerOf(t, store).Run("lost") != nil {
					t.Errorf("the run of a dead node is open after ten minutes, calls of its job: %d", callsOf("slow", n.app))
				}
				leave()
				n.close()
			})
		})
	}
}
