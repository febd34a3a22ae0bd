package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

const asyncJobs = `
jobs:
  - {name: import, path: /import, schedule: manual, async: true, timeout: 5m, heartbeatTimeout: 1m, recovery: rerun}
  - {name: wait, path: /wait, schedule: manual, timeout: 5m}
`

// apiRun is a run as the API shows it.
type apiRun struct {
	ID, Job, State, Message, Code, Cause, Node string
	Async                                      bool
	Attempt                                    int
	Progress                                   *struct {
		Percent *int
		Message string
	}
}

// runsOf asks a sidecar for the runs of a job.
func runsOf(t *testing.T, s *cluster.Sidecar, job string) []apiRun {
	t.Helper()
	status, body := s.GetAPI("/v1/runs?job=" + job)
	var list struct{ Runs []apiRun }
	if err := json.Unmarshal([]byte(body), &list); status != http.StatusOK || err != nil {
		t.Fatalf("runs of %s: %d %s", job, status, body)
	}
	return list.Runs
}

// awaitRun waits until a sidecar shows a run as wanted.
func awaitRun(t *testing.T, s *cluster.Sidecar, job, id string, within time.Duration, what string, ok func(apiRun) bool) apiRun {
	t.Helper()
	var last apiRun
	cluster.Eventually(t, within, "run "+id+" of "+job+" "+what, func() bool {
		for _, r := range runsOf(t, s, job) {
			if r.ID == id {
				last = r
				return ok(r)
			}
		}
		return false
	})
	return last
}

func accepted(r apiRun) bool { return r.Async && r.State == string(run.StateRunning) }

// TestAsynchronousRuns: what the app has accepted outlives a change of leader and a sidecar that is
// killed and restarted in its pod; with a pod that is gone it is lost, and a late end is a note. R103,
// R115, R132.
func TestAsynchronousRuns(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), asyncJobs)
	start := func(name, uid string, a *app.App) *cluster.Sidecar {
		settings := c.Settings(a, name)
		settings["!POD_UID"] = uid
		return cluster.Start(t, a, settings)
	}
	apps := map[string]*app.App{}
	for _, name := range []string{"shop-0", "shop-1", "shop-2"} {
		a := cluster.StartApp(t)
		a.Script("/import", app.Status(http.StatusAccepted))
		a.Script("/wait", app.Never())
		apps[name] = a
	}
	first := start("shop-0", "uid-0", apps["shop-0"])
	cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{first})
	enqueue := func(s *cluster.Sidecar, job string) (id string) {
		cluster.Eventually(t, 10*time.Second, "a run of "+job, func() (ok bool) {
			var err error
			id, err = s.Enqueue(job)
			return err == nil
		})
		return id
	}
	one := enqueue(first, "import")
	awaitRun(t, first, "import", one, 10*time.Second, "is accepted", accepted)

	// Another leads; the run stays where the app is.
	second := start("shop-1", "uid-1", apps["shop-1"])
	if status, body := first.Post("/v1/runs/" + one + "/heartbeat"); status != http.StatusOK || !strings.Contains(body, "nextBefore") {
		t.Errorf("heartbeat: %d %s", status, body)
	}
	if status, body := second.Post("/v1/runs/" + one + "/heartbeat"); status != http.StatusServiceUnavailable || !strings.Contains(body, "shop-0") {
		t.Errorf("heartbeat at another replica: %d %s, want 503 that names the sidecar", status, body)
	}
	drained := make(chan string, 1)
	go func() {
		_, body := first.PostBody("/drain", "", time.Minute)
		drained <- body
	}()
	cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{second})
	begin := time.Now()
	awaitElapsed(t, begin, cluster.NodeTimeout+time.Second)
	if status, body := first.PostBody("/v1/runs/"+one+"/complete", `{"message":"42 files"}`, 10*time.Second); status != http.StatusOK || !strings.Contains(body, `"Succeeded"`) {
		t.Errorf("complete under another leader: %d %s", status, body)
	}
	t.Logf("drained: %s", <-drained)
	first.Kill()

	// Killed, and restarted in its pod: the one that was accepted goes on, the other is lost at once.
	two, lost := enqueue(second, "import"), enqueue(second, "wait")
	awaitRun(t, second, "import", two, 10*time.Second, "is accepted", accepted)
	if _, err := apps["shop-1"].WaitFor(2, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	third := start("shop-2", "uid-2", apps["shop-2"])
	second.Kill()
	killed := time.Now()
	second = start("shop-1", "uid-1", apps["shop-1"])
	awaitRun(t, third, "wait", lost, cluster.NodeTimeout, "is lost at once", func(r apiRun) bool { return r.State == string(run.StateLost) })
	t.Logf("the synchronous run was found lost after %s, the node timeout is %s", time.Since(killed).Round(time.Millisecond), cluster.NodeTimeout)
	cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{second, third})
	awaitElapsed(t, killed, 2*cluster.NodeTimeout+time.Second)
	if status, body := second.PostBody("/v1/runs/"+two+"/heartbeat", `{"progress":70,"message":"nearly"}`, 10*time.Second); status != http.StatusOK {
		t.Errorf("heartbeat at the successor: %d %s", status, body)
	}
	awaitRun(t, third, "import", two, 10*time.Second, "shows its progress everywhere", func(r apiRun) bool {
		return r.Progress != nil && r.Progress.Percent != nil && *r.Progress.Percent == 70 && accepted(r)
	})
	for range 2 {
		if status, body := second.Post("/v1/runs/" + two + "/complete"); status != http.StatusOK || !strings.Contains(body, `"Succeeded"`) {
			t.Errorf("complete at the successor: %d %s", status, body)
		}
	}
	if status, body := third.Post("/v1/runs/" + two + "/fail"); status != http.StatusConflict || !strings.Contains(body, string(run.CodeRunOver)) {
		t.Errorf("fail what is completed: %d %s, want %s", status, body, run.CodeRunOver)
	}

	// The pod is gone: lost after the node timeout, recovered elsewhere, and the late end a note.
	leader := cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{second, third})
	other := map[*cluster.Sidecar]*cluster.Sidecar{second: third, third: second}[leader]
	three := enqueue(leader, "import")
	awaitRun(t, leader, "import", three, 10*time.Second, "is accepted", accepted)
	leader.Kill()
	killed = time.Now()
	awaitRun(t, other, "import", three, cluster.LeaseDuration+cluster.NodeTimeout+5*time.Second, "is lost", func(r apiRun) bool { return r.State == string(run.StateLost) })
	if took := time.Since(killed); took < cluster.NodeTimeout-time.Second {
		t.Errorf("lost after %s, want the node timeout of %s to pass", took, cluster.NodeTimeout)
	}
	if status, body := other.PostBody("/v1/runs/"+three+"/complete", `{"message":"after all"}`, 10*time.Second); status != http.StatusConflict || !strings.Contains(body, string(run.CodeRunOver)) {
		t.Errorf("complete what is lost: %d %s, want %s", status, body, run.CodeRunOver)
	}
	r := awaitRun(t, other, "import", three, 10*time.Second, "has a note", func(r apiRun) bool { return strings.Contains(r.Message, "late result: Succeeded, after all") })
	if r.State != string(run.StateLost) {
		t.Errorf("the lost run is %s now", r.State)
	}
	again := slices.IndexFunc(runsOf(t, other, "import"), func(r apiRun) bool { return r.Cause == string(run.CauseRecovery) })
	if again < 0 {
		t.Error("no recovery of the lost run")
	}
	for _, r := range runsOf(t, other, "import") {
		if r.Cause == string(run.CauseRecovery) && r.State != string(run.StateCanceled) {
			cluster.Eventually(t, 10*time.Second, "the recovery completes", func() bool {
				status, _ := other.Post("/v1/runs/" + r.ID + "/complete")
				return status == http.StatusOK
			})
		}
	}
	calls := 0
	for _, a := range apps {
		for _, call := range a.Calls() {
			if call.Path == "/import" && call.Body.ID == two {
				calls++
			}
		}
	}
	if calls != 1 {
		t.Errorf("the run that outlived its sidecar was called %d times, want once", calls)
	}
	other.Stop(t, 15*time.Second)
}

// TestAsynchronousRunsOfOneInstance: a stop leaves what the app has accepted to the next process while the
// app lives, and ends it with the app. On a file ledger, which knows its predecessor without a pod.
func TestAsynchronousRunsOfOneInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(jobs, []byte(asyncJobs), 0o600); err != nil {
		t.Fatal(err)
	}
	a := cluster.StartApp(t)
	a.Script("/import", app.Status(http.StatusAccepted))
	settings := cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": jobs, "LEDGER_FILE": filepath.Join(dir, "ledger.json"), "TARGET": a.URL(), "SHUTDOWN_GRACE": "1s",
	}
	begin := func(s *cluster.Sidecar) (id string) {
		cluster.Eventually(t, 10*time.Second, "a run", func() (ok bool) {
			var err error
			id, err = s.Enqueue("import")
			return err == nil
		})
		awaitRun(t, s, "import", id, 10*time.Second, "is accepted", accepted)
		return id
	}
	s := cluster.Start(t, a, settings)
	id := begin(s)
	s.Stop(t, 5*time.Second)
	s = cluster.Start(t, a, settings)
	if status, body := s.PostBody("/v1/runs/"+id+"/complete", `{"message":"done meanwhile"}`, 10*time.Second); status != http.StatusOK || !strings.Contains(body, `"Succeeded"`) {
		t.Errorf("complete at the next process: %d %s", status, body)
	}

	id = begin(s)
	s.Kill()
	s = cluster.Start(t, a, settings)
	if status, body := s.PostBody("/v1/runs/"+id+"/fail", `{"message":"no","code":"NO_SPACE","retryable":false}`, 10*time.Second); status != http.StatusOK || !strings.Contains(body, `"appCode":"NO_SPACE"`) {
		t.Errorf("fail after a kill: %d %s", status, body)
	}

	id = begin(s)
	a.Close()
	s.Stop(t, 5*time.Second)
	other := cluster.StartApp(t)
	other.Script("/import", app.Status(http.StatusAccepted))
	settings["TARGET"] = other.URL()
	s = cluster.Start(t, other, settings)
	r := awaitRun(t, s, "import", id, 5*time.Second, "has ended with its app", func(r apiRun) bool { return !accepted(r) })
	if r.State != string(run.StateLost) {
		t.Errorf("the run of an app that is gone is %s, want %s", r.State, run.StateLost)
	}
	calls, err := other.WaitFor(1, 5*time.Second)
	if err != nil || calls[0].Body.Cause != string(run.CauseRecovery) {
		t.Fatalf("the recovery: %+v, %v", calls, err)
	}
	cluster.Eventually(t, 5*time.Second, "the recovery completes", func() bool {
		status, _ := s.Post("/v1/runs/" + calls[0].Body.ID + "/complete")
		return status == http.StatusOK
	})
	s.Stop(t, 5*time.Second)
}
