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
	"github.com/leasecron/leasecron/test/controlplane"
)

// arrival is one callback, wherever it arrived.
type arrival struct {
	app.Call
	to *sidecar
}

func (a arrival) lateness() time.Duration { return a.At.Sub(*a.Body.ScheduledAt) }

// arrivals lists the callbacks of one job, or of all, in the order in which they came.
func arrivals(all []*sidecar, job string) []arrival {
	var out []arrival
	for _, s := range all {
		for _, c := range s.app.Calls() {
			if c.Method == "POST" && (job == "" || c.Body.Job == job) {
				out = append(out, arrival{c, s})
			}
		}
	}
	slices.SortFunc(out, func(a, b arrival) int { return a.At.Compare(b.At) })
	return out
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
	c := newCluster(t, controlplane.Shared(t), failoverJobs)
	var all []*sidecar
	for _, name := range []string{"shop-0", "shop-1", "shop-2"} {
		a := startApp(t)
		a.Script("/slow", slices.Repeat([]app.Behavior{app.After(1200*time.Millisecond, app.Status(200))}, 100)...)
		all = append(all, c.startFor(a, name, func(s map[string]string) { s["TARGET"] = a.URL() }))
	}
	alive := slices.Clone(all)
	first := leader(t, 15*time.Second, alive)
	eventually(t, 15*time.Second, "callbacks of each job", func() bool {
		return len(arrivals(all, "tick")) > 0 && len(arrivals(all, "five")) > 0 && len(arrivals(all, "slow")) > 0
	})
	begin := time.Now()

	// Killed while a run of slow is in flight and none of tick is.
	awaitElapsed(t, begin, 15*time.Second)
	slow := len(arrivals(all, "slow"))
	eventually(t, 5*time.Second, "a run of slow in flight and the next tick far", func() bool {
		ticks := arrivals(all, "tick")
		since := time.Since(ticks[len(ticks)-1].At)
		return len(arrivals(all, "slow")) > slow && since > 200*time.Millisecond && since < 600*time.Millisecond
	})
	killed := time.Now()
	first.signal(syscall.SIGKILL)
	first.wait(5 * time.Second)
	alive = slices.DeleteFunc(alive, func(s *sidecar) bool { return s == first })

	// Stopped in good order.
	awaitElapsed(t, begin, 40*time.Second)
	second := leader(t, 5*time.Second, alive)
	stopped := time.Now()
	second.signal(syscall.SIGTERM)
	if code := second.wait(15 * time.Second); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	alive = slices.DeleteFunc(alive, func(s *sidecar) bool { return s == second })

	awaitElapsed(t, begin, 60*time.Second)
	third := leader(t, 5*time.Second, alive)
	third.stop(15 * time.Second)
	end := time.Now()

	recorded := c.recorded()
	checkNothingTwice(t, all)
	for _, job := range []string{"tick", "five", "slow"} {
		checkAccounted(t, arrivals(all, job), recorded[run.Key{Job: job, Trigger: "default"}], end)
	}

	tick, blocked := firstAfter(t, all, "tick", killed), firstAfter(t, all, "slow", killed)
	if limit := leaseDuration + time.Second; tick.At.Sub(killed) > limit {
		t.Errorf("after SIGKILL the idle job fired after %s, want at most %s", tick.At.Sub(killed), limit)
	}
	if limit := leaseDuration + nodeTimeout + time.Second; blocked.At.Sub(killed) > limit {
		t.Errorf("after SIGKILL the job in flight fired after %s, want at most %s", blocked.At.Sub(killed), limit)
	}
	worst := time.Duration(0)
	for _, a := range arrivals(all, "tick") {
		if a.Body.ScheduledAt.After(stopped) {
			worst = max(worst, a.lateness())
		}
		if a.lateness() < 0 {
			t.Errorf("tick of %s arrived %s early", a.Body.ScheduledAt, -a.lateness())
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
	eventually(t, elapsed+time.Minute, "the scenario's time", func() bool { return time.Since(begin) >= elapsed })
}

func firstAfter(t *testing.T, all []*sidecar, job string, after time.Time) arrival {
	t.Helper()
	for _, a := range arrivals(all, job) {
		if a.At.After(after) {
			return a
		}
	}
	t.Fatalf("job %s never fired after %s", job, after)
	return arrival{}
}

// checkNothingTwice: no attempt of an occurrence arrives twice, and fencing tokens never go back.
func checkNothingTwice(t *testing.T, all []*sidecar) {
	t.Helper()
	seen := make(map[string]arrival)
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
func checkAccounted(t *testing.T, came []arrival, rec record, end time.Time) {
	t.Helper()
	name, interval := came[0].Body.Job, map[string]time.Duration{"tick": time.Second, "five": 5 * time.Second, "slow": 2 * time.Second}[came[0].Body.Job]
	arrived := make(map[time.Time]bool)
	for _, a := range came {
		arrived[a.Body.ScheduledAt.UTC()] = true
	}
	var missing []string
	total, byRun, byRecord := 0, 0, 0
	for at := came[0].Body.ScheduledAt.UTC(); at.Before(end.Add(-interval - leaseDuration)); at = at.Add(interval) {
		total++
		switch {
		case arrived[at]:
			byRun++
		case rec.covers(at):
			byRecord++
		default:
			missing = append(missing, at.Format("15:04:05.000"))
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s: %d of %d instants are unaccounted for: %s\nrecorded:\n%s%v", name, len(missing), total, strings.Join(missing, " "), describe(rec.runs), rec.skips)
	}
	t.Logf("%s: %d instants, %d arrived, %d covered or recorded", name, total, byRun, byRecord)
}
