package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
)

// TestStandalone: one instance without a cluster fires on time, answers, keeps its decisions over
// a kill, and ends in good order. R112, R124.
func TestStandalone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("defaults: {recovery: none}\njobs:\n- {name: tick, path: /tick, schedule: rate 1s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := cluster.StartApp(t)
	settings := cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": jobs, "LEDGER_FILE": filepath.Join(dir, "ledger.json"), "TARGET": a.URL(),
	}
	s := cluster.Start(t, a, settings)
	calls := waitCalls(t, a, 3)
	for _, c := range calls {
		if late := c.At.Sub(*c.Body.ScheduledAt); late < 0 || late > 2*time.Second {
			t.Errorf("instant %s arrived %s late", c.Body.ScheduledAt, late)
		}
	}
	if status, body := s.Get("/leader"); status != 200 || !strings.Contains(body, `"isLeader":true`) {
		t.Errorf("/leader = %d %s", status, body)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if status, body := s.Get(path); status != 200 || body != "ok" {
			t.Errorf("%s = %d %s", path, status, body)
		}
	}
	if got := s.Metric(`leasecron_runs_total{job_name="tick",outcome="succeeded"}`); got == "" || got == "0" {
		t.Errorf("runs_total of tick is %q after %d callbacks", got, len(calls))
	}

	s.Kill()
	before := len(a.Calls())
	s = cluster.Start(t, a, settings)
	calls = waitCalls(t, a, before+4)
	seen := make(map[string]bool)
	for _, c := range calls {
		if seen[c.Body.Occurrence] {
			t.Errorf("the occurrence of %s arrived twice", c.Body.ScheduledAt)
		}
		seen[c.Body.Occurrence] = true
		if c.Body.ScheduledAt.Sub(*calls[0].Body.ScheduledAt)%time.Second != 0 {
			t.Errorf("instant %s is not on the grid of the first life", c.Body.ScheduledAt) // R101
		}
	}
	began := time.Now()
	if err := s.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := s.Wait(t, 2*time.Second); code != 0 {
		t.Errorf("exit code %d after Ctrl-C, want 0", code)
	}
	t.Logf("ended %s after Ctrl-C", time.Since(began).Round(time.Millisecond))
}

func waitCalls(t *testing.T, a *app.App, n int) []app.Call {
	t.Helper()
	calls, err := a.WaitFor(n, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}
