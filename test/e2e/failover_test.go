package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// arrivals lists the callbacks of one job, or of all, in the order in which they came.
func arrivals(all []*cluster.Sidecar, job string) []cluster.Arrival {
	apps := make([]*app.App, len(all))
	for i, s := range all {
		apps[i] = s.App
	}
	return cluster.Arrivals(job, apps...)
}

const failoverJobs = `
defaults: {historyLimit: 500}
jobs:
  - {name: tick, path: /tick, schedule: rate 1s}
  - {name: five, path: /five, schedule: "*/5 * * * * *"}
  - {name: slow, path: /slow, schedule: rate 2s, timeout: 10s}
`

// TestFailover runs three sidecars for a minute, kills the leader once and stops the next one in
// good order once: nothing arrives twice, nothing is unaccounted for, and the gaps are as short as
// is promised. R093, R098, R103, R106, R121, R125.
func TestFailover(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), failoverJobs)
	var all []*cluster.Sidecar
	for _, name := range []string{"shop-0", "shop-1", "shop-2"} {
		a := cluster.StartApp(t)
		a.Script("/slow", slices.Repeat([]app.Behavior{app.After(1200*time.Millisecond, app.Status(200))}, 100)...)
		all = append(all, c.StartBeside(t, a, name))
	}
	alive := slices.Clone(all)
	first := cluster.Leader(t, 15*time.Second, alive)
	cluster.Eventually(t, 15*time.Second, "callbacks of each job", func() bool {
		return len(arrivals(all, "tick")) > 0 && len(arrivals(all, "five")) > 0 && len(arrivals(all, "slow")) > 0
	})
	begin := time.Now()

	// Killed while a run of slow is in flight and none of tick is.
	awaitElapsed(t, begin, 15*time.Second)
	slow := len(arrivals(all, "slow"))
	cluster.Eventually(t, 5*time.Second, "a run of slow in flight and the next tick far", func() bool {
		ticks := arrivals(all, "tick")
		since := time.Since(ticks[len(ticks)-1].At)
		return len(arrivals(all, "slow")) > slow && since > 200*time.Millisecond && since < 600*time.Millisecond
	})
	killed := time.Now()
	first.Kill()
	alive = slices.DeleteFunc(alive, func(s *cluster.Sidecar) bool { return s == first })

	// Stopped in good order.
	awaitElapsed(t, begin, 40*time.Second)
	second := cluster.Leader(t, 5*time.Second, alive)
	stopped := time.Now()
	if err := second.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := second.Wait(t, 15*time.Second); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	alive = slices.DeleteFunc(alive, func(s *cluster.Sidecar) bool { return s == second })

	awaitElapsed(t, begin, 60*time.Second)
	third := cluster.Leader(t, 5*time.Second, alive)
	third.Stop(t, 15*time.Second)
	end := time.Now()

	recorded := c.Recorded(t)
	checkNothingTwice(t, all)
	for _, job := range []string{"tick", "five", "slow"} {
		checkAccounted(t, arrivals(all, job), recorded[run.Key{Job: job, Trigger: "default"}], end)
	}

	tick, blocked := firstAfter(t, all, "tick", killed), firstAfter(t, all, "slow", killed)
	if limit := cluster.LeaseDuration + time.Second; tick.At.Sub(killed) > limit {
		t.Errorf("after SIGKILL the idle job fired after %s, want at most %s", tick.At.Sub(killed), limit)
	}
	if limit := cluster.LeaseDuration + cluster.NodeTimeout + time.Second; blocked.At.Sub(killed) > limit {
		t.Errorf("after SIGKILL the job in flight fired after %s, want at most %s", blocked.At.Sub(killed), limit)
	}
	worst := time.Duration(0)
	for _, a := range arrivals(all, "tick") {
		if a.Body.ScheduledAt.After(stopped) {
			worst = max(worst, a.Lateness())
		}
		if a.Lateness() < 0 {
			t.Errorf("tick of %s arrived %s early", a.Body.ScheduledAt, -a.Lateness())
		}
	}
	if worst > time.Second {
		t.Errorf("after SIGTERM an instant started %s late, want at most 1s", worst)
	}
	t.Logf("arrivals %d; after SIGKILL: idle job after %s, job in flight after %s; after SIGTERM: worst lateness %s",
		len(arrivals(all, "")), tick.At.Sub(killed).Round(time.Millisecond), blocked.At.Sub(killed).Round(time.Millisecond), worst.Round(time.Millisecond))
}

// awaitElapsed waits until a time of the scenario has come.
func awaitElapsed(t *testing.T, begin time.Time, elapsed time.Duration) {
	t.Helper()
	cluster.Eventually(t, elapsed+time.Minute, "the scenario's time", func() bool { return time.Since(begin) >= elapsed })
}

func firstAfter(t *testing.T, all []*cluster.Sidecar, job string, after time.Time) cluster.Arrival {
	t.Helper()
	for _, a := range arrivals(all, job) {
		if a.At.After(after) {
			return a
		}
	}
	t.Fatalf("job %s never fired after %s", job, after)
	return cluster.Arrival{}
}

// checkNothingTwice: no attempt of an occurrence arrives twice, and fencing tokens never go back.
func checkNothingTwice(t *testing.T, all []*cluster.Sidecar) {
	t.Helper()
	seen := make(map[string]cluster.Arrival)
	terms := make(map[string]int64) // job to the greatest term seen
	for _, a := range arrivals(all, "") {
		key := fmt.Sprintf("%s attempt %d", a.Body.Occurrence, a.Body.Attempt)
		if before, ok := seen[key]; ok {
			t.Errorf("attempt %d of %s at %s arrived twice: at %s and %s", a.Body.Attempt, a.Body.Job, a.Body.ScheduledAt, before.At, a.At)
		}
		seen[key] = a
		if a.Body.Term == nil || *a.Body.Term < terms[a.Body.Job] {
			t.Errorf("%s at %s carries the term %v after %d", a.Body.Job, a.Body.ScheduledAt, a.Body.Term, terms[a.Body.Job])
		} else {
			terms[a.Body.Job] = *a.Body.Term
		}
	}
}

// checkAccounted: every instant since the first arrival has arrived, or is covered by a run, or is
// recorded.
func checkAccounted(t *testing.T, came []cluster.Arrival, rec cluster.Record, end time.Time) {
	t.Helper()
	name, interval := came[0].Body.Job, map[string]time.Duration{"tick": time.Second, "five": 5 * time.Second, "slow": 2 * time.Second}[came[0].Body.Job]
	arrived := make(map[time.Time]bool)
	for _, a := range came {
		arrived[a.Body.ScheduledAt.UTC()] = true
	}
	var missing []string
	total, byRun, byRecord := 0, 0, 0
	for at := came[0].Body.ScheduledAt.UTC(); at.Before(end.Add(-interval - cluster.LeaseDuration)); at = at.Add(interval) {
		total++
		switch {
		case arrived[at]:
			byRun++
		case rec.Covers(at):
			byRecord++
		default:
			missing = append(missing, at.Format("15:04:05.000"))
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s: %d of %d instants are unaccounted for: %s\nrecorded:\n%s%v", name, len(missing), total, strings.Join(missing, " "), cluster.Describe(rec.Runs), rec.Skips)
	}
	t.Logf("%s: %d instants, %d arrived, %d covered or recorded", name, total, byRun, byRecord)
}
