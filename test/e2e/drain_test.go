package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

const drainJobs = `
jobs:
  - {name: tick, path: /tick, schedule: rate 1s}
  - {name: slow, path: /slow, schedule: manual, timeout: 1m}
  - {name: repair, path: /repair, schedule: manual, timeout: 1m, recovery: rerun}
`

// pair starts two sidecars and says which of them leads.
func pair(t *testing.T, change func(cluster.Settings)) (c *cluster.Cluster, leader, other *cluster.Sidecar) {
	t.Helper()
	c = cluster.New(t, controlplane.Shared(t), drainJobs)
	var all []*cluster.Sidecar
	for _, name := range []string{"shop-0", "shop-1"} {
		a := cluster.StartApp(t)
		settings := c.Settings(a, name)
		if change != nil {
			change(settings)
		}
		all = append(all, cluster.Start(t, a, settings))
	}
	leader = cluster.Leader(t, 15*time.Second, all)
	other = all[0]
	if leader == other {
		other = all[1]
	}
	cluster.Eventually(t, 15*time.Second, "the jobs are in force", func() bool { return len(arrivals(all, "tick")) > 0 })
	return c, leader, other
}

// inFlight starts a run that the leader's app answers after d, and waits until it has arrived.
func inFlight(t *testing.T, leader *cluster.Sidecar, job string, d time.Duration) (id string) {
	t.Helper()
	leader.App.Script("/"+job, app.After(d, app.Status(200)))
	id, err := leader.Enqueue(job)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, 10*time.Second, "the run has arrived", func() bool {
		return len(cluster.Arrivals(job, leader.App)) > 0
	})
	return id
}

// drainState asks for the state and begins the drain if need be.
func drainState(t *testing.T, s *cluster.Sidecar) (status int, state string) {
	t.Helper()
	status, body := s.Post("/drain?wait=0s")
	var answer struct{ State string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("POST /drain = %d %s", status, body)
	}
	return status, answer.State
}

// runDrain is the command of a preStop hook.
func runDrain(t *testing.T, s *cluster.Sidecar, args ...string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, cluster.Program(), append([]string{"drain", "--address", s.APIAddress()}, args...)...)
	cmd.Env = []string{}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), both.String()
}

// recordOf finds one run, wherever it is recorded.
func recordOf(t *testing.T, c *cluster.Cluster, id string) run.Run {
	t.Helper()
	for _, rec := range c.Recorded(t) {
		for _, r := range rec.Runs {
			if r.ID == id {
				return r
			}
		}
	}
	return run.Run{}
}

// A drain hands over at once, while a run is in flight, which the drained sidecar then reports; the
// process stays until SIGTERM. R093, R123, R178.
func TestDrainHandsOverWhileARunIsInFlight(t *testing.T) {
	t.Parallel()
	c, leader, other := pair(t, nil)
	all := []*cluster.Sidecar{leader, other}
	id := inFlight(t, leader, "slow", 2*time.Second)

	asked := time.Now()
	if status, state := drainState(t, leader); status != 202 || state != "draining" {
		t.Errorf("POST /drain with a run in flight = %d %s, want 202 draining", status, state)
	}
	cluster.Eventually(t, 5*time.Second, "the other leads", other.Leads)
	t.Logf("the successor led %s after POST /drain was sent", time.Since(asked).Round(time.Millisecond))
	if took := time.Since(asked); took > time.Second {
		t.Errorf("the successor led after %s, want milliseconds", took)
	}
	if r := recordOf(t, c, id); r.State.Ended() {
		t.Errorf("the run in flight is %s already, so nothing was shown", r.State)
	}
	// A second drain joins the first and returns when the run is reported.
	if code, out := runDrain(t, leader); code != 0 || !strings.Contains(out, "drained after") {
		t.Errorf("sidecar drain = %d\n%s", code, out)
	}
	if r := recordOf(t, c, id); r.State != run.StateSucceeded || r.Node == "" {
		t.Errorf("the run is %s after the drain, want Succeeded", r.State)
	}
	if status, state := drainState(t, leader); status != 200 || state != "drained" {
		t.Errorf("POST /drain after it = %d %s, want 200 drained", status, state)
	}

	// It goes on, follows, says so, and takes work for the others.
	_, name := other.Get("/leader")
	_, drained := leader.Get("/leader")
	var want, got struct {
		Name, Self         string
		IsLeader, Draining bool
		AgeSeconds         *float64
	}
	if err := json.Unmarshal([]byte(name), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(drained), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != want.Self || got.IsLeader || !got.Draining || got.AgeSeconds == nil {
		t.Errorf("/leader of the drained sidecar = %s, want it to name %s and to say that it drains", drained, want.Self)
	}
	if status, body := leader.Get("/readyz?verbose"); status != 200 || !strings.Contains(body, "[!]drain: drained at") {
		t.Errorf("/readyz?verbose = %d\n%s", status, body)
	}
	if status, body := leader.Get("/livez"); status != 200 {
		t.Errorf("/livez = %d\n%s", status, body)
	}
	if _, err := leader.Enqueue("slow"); err != nil {
		t.Errorf("a drained sidecar does not pass on: %v", err)
	}
	cluster.Eventually(t, 10*time.Second, "the successor runs what the drained sidecar was asked for", func() bool {
		return len(cluster.Arrivals("slow", other.App)) == 1
	})
	ticks := len(cluster.Arrivals("tick", other.App))
	cluster.Eventually(t, 10*time.Second, "the successor goes on", func() bool {
		return len(cluster.Arrivals("tick", other.App)) > ticks+1
	})
	if late := cluster.Arrivals("tick", leader.App); late[len(late)-1].At.After(asked.Add(time.Second)) {
		t.Errorf("the drained sidecar fired %s after it was asked", late[len(late)-1].At.Sub(asked))
	}
	leader.Stop(t, 5*time.Second)
	checkNothingTwice(t, all)
}

// A run that outlives the grace is recorded as lost, so that recovery applies; the hook says so.
func TestDrainEndsWithTheGrace(t *testing.T) {
	t.Parallel()
	c, leader, other := pair(t, func(s cluster.Settings) { s["SHUTDOWN_GRACE"] = "1s" })
	id := inFlight(t, leader, "repair", 30*time.Second)
	code, out := runDrain(t, leader)
	if code != 1 || !strings.Contains(out, "1 run did not end within the grace and is recorded as lost") {
		t.Errorf("sidecar drain = %d\n%s", code, out)
	}
	if r := recordOf(t, c, id); r.State != run.StateLost {
		t.Errorf("the run is %s, want Lost", r.State)
	}
	cluster.Eventually(t, 10*time.Second, "the successor repeats it", func() bool {
		return len(cluster.Arrivals("repair", other.App)) == 1
	})
	if again := cluster.Arrivals("repair", other.App)[0].Body; again.Attempt != 2 || again.Cause != "recovery" {
		t.Errorf("what the successor sent: %+v", again)
	}
	if leader.Exited() {
		t.Error("the process ended with its drain, want it to wait for SIGTERM")
	}
	leader.Stop(t, 5*time.Second)
}

// SIGTERM joins a drain that is under way: its run is waited for, once.
func TestSIGTERMContinuesADrain(t *testing.T) {
	t.Parallel()
	c, leader, _ := pair(t, nil)
	id := inFlight(t, leader, "slow", 1500*time.Millisecond)
	if status, _ := drainState(t, leader); status != 202 {
		t.Errorf("POST /drain = %d, want 202", status)
	}
	leader.Stop(t, 10*time.Second)
	if r := recordOf(t, c, id); r.State != run.StateSucceeded {
		t.Errorf("the run is %s after SIGTERM in a drain, want Succeeded", r.State)
	}
}

// R181: killed in its drain, a sidecar has handed over already: the other leads, and the run that was in
// flight is settled once, as lost.
func TestKilledInADrain(t *testing.T) {
	t.Parallel()
	c, leader, other := pair(t, nil)
	id := inFlight(t, leader, "slow", time.Minute)
	if status, _ := drainState(t, leader); status != 202 {
		t.Errorf("POST /drain = %d, want 202", status)
	}
	cluster.Eventually(t, 5*time.Second, "the other leads", other.Leads)
	leader.Kill()
	cluster.Eventually(t, cluster.NodeTimeout+20*time.Second, "the run in flight is settled", func() bool {
		return recordOf(t, c, id).State.Ended()
	})
	if r := recordOf(t, c, id); r.State != run.StateLost {
		t.Errorf("the run is %s, want %s: its sidecar is gone", r.State, run.StateLost)
	}
	records := 0
	for _, rec := range c.Recorded(t) {
		for _, r := range rec.Runs {
			if r.Occurrence == recordOf(t, c, id).Occurrence {
				records++
			}
		}
	}
	if records != 1 {
		t.Errorf("%d records of the occurrence, want one", records)
	}
	other.Stop(t, 10*time.Second)
}

// A follower has nothing to hand over, and when the leader dies it does not take its place.
func TestDrainOfAFollower(t *testing.T) {
	t.Parallel()
	c, leader, other := pair(t, nil)
	began := time.Now()
	if code, out := runDrain(t, other); code != 0 {
		t.Errorf("sidecar drain = %d\n%s", code, out)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the drain of a follower took %s, want it to return at once", took)
	}
	if !leader.Leads() {
		t.Error("the leader does not lead any more")
	}
	leader.Kill()
	cluster.Eventually(t, 15*time.Second, "the dead leader's time is over", func() bool {
		_, body := other.Get("/leader")
		return strings.Contains(body, `"name":""`)
	})
	third := c.Start(t, "shop-2")
	cluster.Eventually(t, 15*time.Second, "one that is not drained leads", third.Leads)
	cluster.Eventually(t, 15*time.Second, "the drained follower sees it lead", func() bool { // as soon as its watch tells
		_, body := other.Get("/leader")
		return strings.Contains(body, `"name":"shop-2"`)
	})
	if calls := len(cluster.Arrivals("", other.App)); calls != 0 {
		t.Errorf("the drained follower sent %d callbacks", calls)
	}
	other.Stop(t, 5*time.Second)
}

// Without the API server a drain cannot report: it says so when the grace is over and does not hang,
// nothing new starts, and what is left is reported when the API server is back.
func TestDrainWithoutTheAPIServer(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), drainJobs)
	proxy := faultproxy.Start(t, c.Access)
	a := cluster.StartApp(t)
	settings := c.Settings(a, "shop-0")
	settings["!KUBECONFIG"], settings["SHUTDOWN_GRACE"] = controlplane.WriteKubeconfig(t, proxy.Config(), c.Namespace), "2s"
	s := cluster.Start(t, a, settings)
	cluster.Eventually(t, 15*time.Second, "the jobs are in force", func() bool { return len(cluster.Arrivals("tick", a)) > 0 })
	id := inFlight(t, s, "repair", time.Second)
	proxy.Cut()
	began := time.Now()
	code, out := runDrain(t, s)
	took := time.Since(began)
	if code != 1 || !strings.Contains(out, "could not be recorded") {
		t.Errorf("sidecar drain = %d\n%s", code, out)
	}
	if took > 12*time.Second {
		t.Errorf("the drain took %s with a grace of 2s, want it to end soon after", took)
	}
	calls := len(cluster.Arrivals("", a))
	proxy.Heal()
	cluster.Eventually(t, 20*time.Second, "the run is recorded when the API server is back", func() bool {
		return recordOf(t, c, id).State.Ended()
	})
	if n := len(cluster.Arrivals("", a)); n != calls {
		t.Errorf("%d callbacks after the drain", n-calls)
	}
	s.Stop(t, 10*time.Second)
}

// Whoever cannot wait for the grace says so twice.
func TestASecondSignalEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	_, leader, _ := pair(t, func(s cluster.Settings) { s["SHUTDOWN_GRACE"] = "1m" })
	inFlight(t, leader, "slow", time.Minute)
	if err := leader.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	leader.WaitLog(t, "handed over, finishing runs", 10*time.Second)
	cluster.Eventually(t, 10*time.Second, "the process ends", func() bool {
		_ = leader.Signal(syscall.SIGTERM) // it may have ended
		return leader.Exited()
	})
}
