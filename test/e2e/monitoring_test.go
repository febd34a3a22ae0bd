package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/manifests/monitoring"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

const watchedJobs = `
jobs:
  - {name: fine, path: /fine, schedule: rate 1s}
  - {name: failing, path: /failing, schedule: rate 1s}
  - {name: slow, path: /slow, schedule: rate 1s, timeout: 60s, overlap: skip}
  - {name: reviewed, path: /reviewed, recovery: review}
`

// TestMonitoring: each metric that alerts and dashboard name is exported by real sidecars, and what they are about
// can be seen: a job that fails, instants that are missed, a run that is lost with its leader. The
// successor tells no older success than the leader did. R185, R186, R191, R192.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), watchedJobs)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*cluster.Sidecar
	for _, name := range []string{"shop-0", "shop-1"} {
		a := cluster.StartApp(t)
		a.Script("/failing", slices.Repeat([]app.Behavior{app.Status(501)}, 100)...)
		a.Script("/slow", app.After(time.Minute, app.Status(200)))
		settings := c.Settings(a, name)
		settings["SIGNING_SECRET_FILES"] = secret
		all = append(all, cluster.Start(t, a, settings))
	}
	leader := cluster.Leader(t, 15*time.Second, all)
	follower := all[0]
	if follower == leader {
		follower = all[1]
	}
	lost := `leasecron_runs_total{job_name="slow",outcome="lost"}`
	for _, series := range []string{
		`leasecron_runs_total{job_name="fine",outcome="succeeded"}`,
		`leasecron_runs_total{job_name="failing",outcome="failed"}`,
		`leasecron_missed_triggers_total{job_name="slow",reason="overlap"}`,
		`leasecron_job_last_start_timestamp_seconds{job_name="slow"}`,
		`leasecron_job_last_success_timestamp_seconds{job_name="fine"}`,
		`leasecron_job_last_failure_timestamp_seconds{job_name="failing"}`,
	} {
		cluster.Eventually(t, 20*time.Second, series, func() bool { return seriesValue(leader, series) > 0 })
	}
	if got := follower.Metric(lost); got != "0" {
		t.Errorf("the follower's %s is %q, want 0: without that, its first loss would be no increase", lost, got)
	}
	if got := follower.Metric(`leasecron_job_paused{job_name="fine"}`); got != "" {
		t.Errorf("the follower tells of a job of the cluster: %s", got)
	}

	exported := families(leader)
	for name := range families(follower) {
		exported[name] = true
	}
	for name := range named(t) {
		if !exported[name] {
			t.Errorf("alerts or dashboard name %s, which no sidecar exports", name)
		}
	}

	succeeded := `leasecron_job_last_success_timestamp_seconds{job_name="fine"}`
	before := seriesValue(leader, succeeded)
	leader.Kill()
	cluster.Eventually(t, 20*time.Second, "the successor tells of the job", func() bool { return follower.Metric(succeeded) != "" })
	if got := seriesValue(follower, succeeded); got < before {
		t.Errorf("the successor tells of a success at %f, the leader told of one at %f", got, before)
	}
	cluster.Eventually(t, 20*time.Second, lost, func() bool { return seriesValue(follower, lost) == 1 })
}

// seriesValue is that of a series; 0 where there is none.
func seriesValue(s *cluster.Sidecar, series string) float64 {
	v, _ := strconv.ParseFloat(s.Metric(series), 64)
	return v
}

// families are the names of the metrics that a sidecar exports, those of a histogram's series too.
func families(s *cluster.Sidecar) map[string]bool {
	out := make(map[string]bool)
	_, body := s.Get("/metrics")
	for line := range strings.Lines(body) {
		if name := line[:strings.IndexAny(line+" ", "{ \n")]; !strings.HasPrefix(line, "#") {
			out[name] = true
		} else if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" {
			out[f[2]] = true // the family itself, under which native histograms are scraped
		}
	}
	return out
}

// named are the metrics that alerts and dashboard name.
func named(t *testing.T) map[string]bool {
	t.Helper()
	o := monitoring.Options{App: "shop", Namespace: "web"}
	dashboard, err := monitoring.DashboardJSON(o)
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := json.Marshal(monitoring.Rules(o))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, name := range regexp.MustCompile(`\b((?:leasecron|process)_[a-z_]+)\{`).FindAllStringSubmatch(string(dashboard)+string(alerts), -1) {
		out[name[1]] = true
	}
	if len(out) < 30 {
		t.Fatalf("alerts and dashboard name %d metrics: are they read right?", len(out))
	}
	return out
}
