package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// jobStatus is what the node tells of a job.
func (n *node) jobStatus(name string) engine.JobStatus {
	n.t.Helper()
	for _, j := range n.engine.Status().Jobs {
		if j.Job.Name == name {
			return j
		}
	}
	n.t.Fatalf("the node does not tell of %s", name)
	return engine.JobStatus{}
}

// R186: what a killed leader did in its last seconds is still in the ledger, not in the history yet:
// its successor tells it all the same, and does not forget it when the history has it.
func TestASuccessorKnowsTheLastRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		jobs := []config.Job{job("hourly", "rate 1h"), job("broken", "rate 1h")}
		answers := &app{work: time.Second, answer: func(a run.Attempt) run.Outcome {
			if a.Run.Key.Job == "broken" {
				return run.Outcome{State: run.StateFailed, Status: 501}
			}
			return run.Outcome{State: run.StateSucceeded, Status: 200}
		}}
		first := start(t, store, "a", answers)
		first.engine.Define(jobs)
		_, leave := first.lead()
		time.Sleep(time.Hour + 3*time.Second)
		want := map[string]state.Latest{}
		for _, name := range []string{"hourly", "broken"} {
			want[name] = first.jobStatus(name).Latest
		}
		if len(ledgerOf(t, store).Finished) != 2 {
			t.Fatalf("the ledger holds %d finished runs, want 2: the test proves nothing", len(ledgerOf(t, store).Finished))
		}
		if h, b := want["hourly"], want["broken"]; h.LastSuccess.Sub(h.LastStart) != time.Second || !h.LastFailure.IsZero() ||
			b.LastFailure.Sub(b.LastStart) != time.Second || !b.LastSuccess.IsZero() {
			t.Errorf("the leader tells %v", want)
		}
		leave()
		first.close()

		second := start(t, store, "b", answers)
		second.engine.Define(jobs)
		_, leave = second.lead()
		for _, wait := range []time.Duration{time.Second, time.Minute} { // before and after the flush
			time.Sleep(wait)
			got := map[string]state.Latest{}
			for name := range want {
				got[name] = second.jobStatus(name).Latest
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s after the takeover (-first +second):\n%s", wait, diff)
			}
		}
		if n := len(ledgerOf(t, store).Finished); n != 0 {
			t.Errorf("the ledger still holds %d finished runs: the test proves nothing", n)
		}
		leave()
		second.close()
	})
}

// A run that a former leader finishes and reports is the job's last success too.
func TestALateReportOfAnotherNodeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		jobs := []config.Job{job("hourly", "rate 1h")}
		first := start(t, store, "a", &app{work: 20 * time.Second})
		first.engine.Define(jobs)
		_, leave := first.lead()
		time.Sleep(time.Hour + time.Second)
		began := first.jobStatus("hourly").LastStart
		if calls := first.app.Calls(); len(calls) != 1 || !began.Equal(calls[0].at) {
			t.Errorf("while the run is in flight the leader tells a start at %s", began)
		}
		leave()
		second := start(t, store, "b", &app{})
		second.engine.Define(jobs)
		_, leave = second.lead()
		time.Sleep(time.Second)
		before := second.jobStatus("hourly")
		if !before.LastStart.Equal(began) || !before.LastSuccess.IsZero() || before.InFlight != 1 {
			t.Fatalf("the successor tells a start at %s, a success at %s, %d in flight", before.LastStart, before.LastSuccess, before.InFlight)
		}
		time.Sleep(time.Minute)
		after := second.jobStatus("hourly")
		if got := after.LastSuccess.Sub(before.LastStart); got != 20*time.Second || len(second.app.Calls()) != 0 {
			t.Errorf("last success %s after the start, %d calls of the successor, want 20s and none", got, len(second.app.Calls()))
		}
		leave()
		first.close()
		second.close()
	})
}

func TestWhenASuccessIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := true
		n := start(t, ledger.NewMemory(), "a", &app{answer: func(run.Attempt) run.Outcome {
			if failing {
				return run.Outcome{State: run.StateFailed, Status: 501}
			}
			return run.Outcome{State: run.StateSucceeded, Status: 200}
		}})
		begin := time.Now().UTC()
		n.engine.Define([]config.Job{job("hourly", "rate 1h"), job("by-hand", "manual"), job("once", "once "+begin.Add(time.Hour).Format(time.RFC3339))})
		_, leave := n.lead()
		due := func(what string, want time.Duration) {
			t.Helper()
			synctest.Wait()
			if got := n.jobStatus("hourly").SuccessDue.Sub(begin).Round(time.Second); got != want {
				t.Errorf("%s: a success is due %s after the begin, want %s", what, got, want)
			}
		}
		time.Sleep(time.Minute)
		due("a job that never succeeded", 2*time.Hour)
		for _, name := range []string{"by-hand", "once"} {
			if at := n.jobStatus(name).SuccessDue; !at.IsZero() {
				t.Errorf("of %s a success is due at %s, want none", name, at)
			}
		}
		time.Sleep(3 * time.Hour)
		due("one that goes on failing", 2*time.Hour)
		failing = false
		time.Sleep(time.Hour) // 4h1m: the run of 4h succeeded
		due("one that succeeded", 6*time.Hour)

		key := run.Key{Job: "hourly"}
		if _, err := n.engine.Pause(t.Context(), key, "", time.Time{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Hour + 29*time.Minute) // 9h30m
		if j := n.jobStatus("hourly"); !j.SuccessDue.IsZero() || !j.Overdue.IsZero() || j.DueSince.IsZero() {
			t.Errorf("paused: success due %s, overdue since %s, due since %s; want none, none and a time", j.SuccessDue, j.Overdue, j.DueSince)
		}
		if _, err := n.engine.Resume(t.Context(), key, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		due("let go on without its missed instants", 11*time.Hour)
		leave()
		n.close()
	})
}
