package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

const fleetJobs = `
defaults: {historyLimit: 500}
jobs:
  - {name: shared, path: /shared, schedule: rate 1s}
  - {name: own, path: /own, schedule: rate 1s, scope: instance}
`

// TestFleet runs three sidecars and one that joins later; edits the jobs; restarts all of them three times,
// one after the other; and kills all at once. What was not said to be everywhere is once; each leader knows
// the same jobs; nothing but the cluster remembers, and it remembers all. R126, R127, R142, R144.
func TestFleet(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), fleetJobs)
	var apps []*app.App
	names := []string{"shop-0", "shop-1", "shop-2"}
	all := make([]*cluster.Sidecar, len(names))
	for i, name := range names {
		apps = append(apps, cluster.StartApp(t))
		all[i] = c.StartBeside(t, apps[i], name)
	}
	cluster.Leader(t, 15*time.Second, all)
	cluster.Eventually(t, 15*time.Second, "both jobs to run", func() bool {
		for _, a := range apps {
			if len(cluster.Arrivals("own", a)) < 2 {
				return false
			}
		}
		return len(cluster.Arrivals("shared", apps...)) >= 2
	})

	// R127: one that joins runs the job of each instance from its start on.
	joined := cluster.StartApp(t)
	fourth := c.StartBeside(t, joined, "shop-3")
	cluster.Eventually(t, 5*time.Second, "the fourth replica's own job", func() bool { return len(cluster.Arrivals("own", joined)) > 0 })

	c.SetJobs(t, fleetJobs+"  - {name: added, path: /added, schedule: rate 1s}\n")
	cluster.Eventually(t, 10*time.Second, "the third job", func() bool {
		return listsJobs(t, all, "added", "own", "shared") && len(cluster.Arrivals("added", append(slices.Clone(apps), joined)...)) > 0
	})
	fourth.Stop(t, 10*time.Second)

	// R144: a roll-out, three times.
	for range 3 {
		for i, name := range names {
			all[i].Stop(t, 10*time.Second)
			all[i] = c.StartBeside(t, apps[i], name)
		}
	}
	rolled := time.Now()
	cluster.Eventually(t, cluster.LeaseDuration+2*time.Second, "firing to go on after the roll-outs", func() bool {
		return firedSince(rolled, apps)
	})
	cluster.Eventually(t, 10*time.Second, "the new leader to list the same jobs", func() bool { return listsJobs(t, all, "added", "own", "shared") })

	// R142: all at once; nobody has a disk.
	for _, s := range all {
		s.Kill()
	}
	killed := time.Now()
	for i, name := range names {
		all[i] = c.StartBeside(t, apps[i], name)
	}
	cluster.Eventually(t, cluster.LeaseDuration+cluster.NodeTimeout+2*time.Second, "firing to go on after the crash", func() bool {
		return firedSince(killed, apps)
	})
	seen := make(map[string]bool)
	for _, a := range cluster.Arrivals("", append(slices.Clone(apps), joined)...) {
		key := a.Body.Occurrence + "/" + strconv.Itoa(a.Body.Attempt)
		if seen[key] {
			t.Errorf("%s at %s, attempt %d, arrived twice", a.Body.Job, a.Body.ScheduledAt, a.Body.Attempt)
		}
		seen[key] = true
	}
	shared := cluster.Arrivals("shared", apps...) // what comes after this the record need not know
	recorded := c.Recorded(t)
	checked := 0
	grid := time.Time{}
	for key, rec := range recorded {
		if key.Job != "shared" {
			continue
		}
		for _, a := range shared {
			if !rec.Covers(*a.Body.ScheduledAt) {
				t.Errorf("the instant %s is not in the record", a.Body.ScheduledAt)
			}
			if grid.IsZero() {
				grid = *a.Body.ScheduledAt
			} else if a.Body.ScheduledAt.Sub(grid)%time.Second != 0 {
				t.Errorf("the instant %s is not on the grid of the first life", a.Body.ScheduledAt)
			}
			checked++
		}
	}
	if checked < 5 {
		t.Errorf("%d arrivals checked: too few to prove anything", checked)
	}
	// R126: the instances' own instants are their own, and everywhere.
	for i, a := range apps {
		if len(cluster.Arrivals("own", a)) == 0 {
			t.Errorf("%s never ran the job of each instance", names[i])
		}
		for _, call := range cluster.Arrivals("own", a) {
			if call.Header.Get("Leasecron-Fencing-Token") != "" {
				t.Errorf("a job of each instance has a fencing token")
			}
		}
	}
}

// firedSince reports whether the shared job was called for an instant after a time.
func firedSince(at time.Time, apps []*app.App) bool {
	calls := cluster.Arrivals("shared", apps...)
	return len(calls) > 0 && calls[len(calls)-1].Body.ScheduledAt.After(at)
}

// listsJobs reports whether every replica, whether it leads or not, lists these jobs (R143).
func listsJobs(t *testing.T, all []*cluster.Sidecar, names ...string) bool {
	t.Helper()
	for _, s := range all {
		status, body := getAPI(s, "/v1/jobs")
		var list struct{ Jobs []struct{ Name string } }
		if status != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil {
			return false
		}
		var listed []string
		for _, j := range list.Jobs {
			listed = append(listed, j.Name)
		}
		if !slices.Equal(listed, names) {
			return false
		}
	}
	return true
}
