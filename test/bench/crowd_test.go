package bench_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

const (
	crowd      = 1_000
	priorities = 10
)

// TestCrowd has a thousand triggers due in the same second: all are decided in one write, started
// in order of priority, and none is missed.
func TestCrowd(t *testing.T) {
	c := cluster.New(t, controlplane.Shared(t), "jobs: []\n")
	proxy := faultproxy.Start(t, c.Access) // counts the writes, breaks nothing
	a := cluster.StartApp(t)
	settings := c.Settings(a, "shop-0")
	settings["!KUBECONFIG"] = controlplane.WriteKubeconfig(t, proxy.ConfigFor(c.Access), c.Namespace)
	s := cluster.Start(t, a, settings)
	cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{s})

	// Late enough for a thousand definitions to be in force before.
	instant := time.Now().Add(15 * time.Second).UTC().Truncate(time.Second)
	var jobs strings.Builder
	jobs.WriteString("jobs:\n")
	for n := range crowd {
		fmt.Fprintf(&jobs, "- {name: job-%04d, path: /crowd, triggers: [{name: default, schedule: once %s, priority: %d}]}\n",
			n, instant.Format(time.RFC3339), 1+(n*7)%priorities)
	}
	c.SetJobs(t, jobs.String())
	writes := func() []faultproxy.Request {
		return proxy.Requests(faultproxy.Verb("update"), faultproxy.Name("shop-leasecron-ledger"))
	}
	var came []cluster.Arrival
	cluster.Eventually(t, 2*time.Minute, "all callbacks", func() bool {
		if time.Now().Before(instant) {
			return false
		}
		came = cluster.Arrivals("", a)
		return len(came) >= crowd
	})
	s.Stop(t, 30*time.Second)

	decided := make(map[time.Time]int)
	runs := 0
	priority := make(map[string]int)
	for _, record := range c.Recorded(t) {
		for _, r := range record.Runs {
			decided[r.DecidedAt]++
			priority[r.ID] = r.Priority
			runs++
		}
		if len(record.Skips) > 0 {
			t.Errorf("missed: %+v", record.Skips)
		}
	}
	if runs != crowd || len(decided) != 1 {
		t.Errorf("%d runs were decided at %d moments (%v), want %d at one", runs, len(decided), decided, crowd)
	}
	for _, a := range came {
		if a.At.Before(instant) {
			t.Errorf("%s arrived %s early", a.Body.Job, instant.Sub(a.At))
		}
	}
	slices.SortStableFunc(came, func(a, b cluster.Arrival) int { return a.Body.FiredAt.Compare(*b.Body.FiredAt) })
	for i := 1; i < len(came); i++ {
		if before, now := came[i-1], came[i]; priority[now.Body.ID] > priority[before.Body.ID] && now.Body.FiredAt.After(*before.Body.FiredAt) {
			t.Errorf("%s of priority %d was fired at %s, after %s of priority %d at %s", now.Body.Job, priority[now.Body.ID], now.Body.FiredAt,
				before.Body.Job, priority[before.Body.ID], before.Body.FiredAt)
			break
		}
	}
	var lastCame time.Time
	firstCame := came[0].At
	for _, a := range came {
		firstCame, lastCame = earliest(firstCame, a.At), latest(lastCame, a.At)
	}
	wrote := 0
	for _, w := range writes() {
		if w.At.After(instant.Add(-time.Second)) && w.At.Before(lastCame) {
			wrote++
		}
	}
	say("%d triggers due in the same second, 32 slots: decided in %d write, started in order of priority, none missed;", crowd, len(decided))
	say("first arrival %s after the instant, last arrival %s after it, with %d writes of the ledger until then",
		firstCame.Sub(instant).Round(time.Millisecond), lastCame.Sub(instant).Round(time.Millisecond), wrote)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
