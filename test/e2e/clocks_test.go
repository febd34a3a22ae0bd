package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// TestClocksTenMinutesOff has a sidecar see an API server whose time differs by ten minutes. The reports
// want it not to steal a Lease; DESIGN has it not lead at all, because it would call instants due that
// are not, and say so. R083, R084.
func TestClocksTenMinutesOff(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: tick, path: /tick, schedule: rate 1s}\n")
	proxy := faultproxy.Start(t, c.Access)
	proxy.Inject(faultproxy.ShiftDate(-10 * time.Minute))
	a := cluster.StartApp(t)
	settings := c.Settings(a, "shop-0")
	settings["!KUBECONFIG"] = controlplane.WriteKubeconfig(t, proxy.Config(), c.Namespace)
	off := cluster.Start(t, a, settings)
	says := func(what string) func() bool {
		return func() bool { return strings.Contains(off.Log(), "this machine's clock is 10m0s "+what) }
	}
	cluster.Eventually(t, 10*time.Second, "it says that its clock is ahead", says("ahead of the API server's"))
	right := c.Start(t, "shop-1")
	cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{off, right})
	cluster.Eventually(t, 15*time.Second, "callbacks", func() bool { return len(cluster.Arrivals("tick", right.App)) > 3 })
	right.Stop(t, 15*time.Second)
	awaitElapsed(t, time.Now(), cluster.LeaseDuration/2)
	if came := cluster.Arrivals("tick", off.App); len(came) > 0 || off.Leads() {
		t.Errorf("the sidecar whose clock is off leads, with %d callbacks", len(came))
	}

	proxy.Heal()
	cluster.Eventually(t, 20*time.Second, "it leads once its clock is right", func() bool { return len(cluster.Arrivals("tick", off.App)) > 2 })
	proxy.Inject(faultproxy.ShiftDate(10 * time.Minute))
	cluster.Eventually(t, cluster.LeaseDuration, "it steps down when its clock is off", func() bool { return !off.Leads() })
	stopped := time.Now()
	cluster.Eventually(t, 10*time.Second, "it says that its clock is behind", says("behind the API server's"))
	awaitElapsed(t, stopped, 1500*time.Millisecond)
	came := cluster.Arrivals("tick", off.App)
	if last := came[len(came)-1]; last.Body.FiredAt.After(stopped) {
		t.Errorf("tick of %s was sent after it had stepped down", last.Body.ScheduledAt)
	}
	if off.Exited() {
		t.Error("the sidecar has ended")
	}
}
