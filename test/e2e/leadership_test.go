package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

const leaseObject = "shop-leasecron"

// fiveASecond are due each 200 ms, so that one sees when the sending stops.
func fiveASecond() string {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 5 {
		fmt.Fprintf(&b, "- {name: tick-%d, path: /tick, schedule: rate 1s start=2026-01-01T00:00:00.%dZ}\n", i, 2*i)
	}
	return b.String()
}

// TestWhoeverWritesTheLeaseIsBelieved has another identity write itself into the Lease: the leader says
// at once that it does not lead, in its answers, its metrics and by what it sends. R072.
func TestWhoeverWritesTheLeaseIsBelieved(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), fiveASecond())
	s := c.Start(t, "shop-0")
	cluster.Leader(t, 15*time.Second, []*cluster.Sidecar{s})
	cluster.Eventually(t, 15*time.Second, "callbacks", func() bool { return len(cluster.Arrivals("", s.App)) > 5 })
	before := *cluster.Arrivals("", s.App)[0].Body.Term

	const intrusion = 3 * time.Second
	written := time.Now()
	kubetest.PatchLease(t, c.ControlPlane.AdminConfig(), c.Namespace, leaseObject, `{"spec":{"holderIdentity":"intruder_1","leaseDurationSeconds":3}}`)
	cluster.Eventually(t, 5*time.Second, "/leader names the other", func() bool {
		_, body := s.Get("/leader")
		return strings.Contains(body, `"isLeader":false`) && strings.Contains(body, `"name":"intruder`)
	})
	noticed := time.Now()
	if got := noticed.Sub(written); got > cluster.LeaseDuration/3+time.Second {
		t.Errorf("/leader named the other %s after it wrote, want at once, at the latest when the next renewal is due", got)
	}
	if got := s.Metric("leasecron_leader"); got != "0" {
		t.Errorf("leasecron_leader is %q while another holds the Lease, want 0", got)
	}

	cluster.Eventually(t, 20*time.Second, "it leads again", func() bool {
		all := cluster.Arrivals("", s.App)
		return *all[len(all)-1].Body.Term > before
	})
	for _, a := range cluster.Arrivals("", s.App) {
		if *a.Body.Term == before && a.Body.FiredAt.After(noticed) {
			t.Errorf("%s of %s was sent at %s under the term that had ended by %s", a.Body.Job, a.Body.ScheduledAt, a.Body.FiredAt, noticed)
		}
		if *a.Body.Term > before && a.At.Before(written.Add(intrusion)) {
			t.Errorf("a callback came %s after the intruder wrote, want none before its %s are over", a.At.Sub(written), intrusion)
		}
	}
}

// TestOutagesOfTheAPIServer takes the API server away from all sidecars: for a moment, which changes
// nothing; for longer than a lease, during which they stand by and afterwards catch up; and with errors,
// during which they ask little. Nobody exits and every pod stays ready, standbys too. R087, R088, R089, R097.
func TestOutagesOfTheAPIServer(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: tick, path: /tick, schedule: rate 1s, historyLimit: 200}\n")
	proxy := faultproxy.Start(t, c.Access)
	kubeconfig := controlplane.WriteKubeconfig(t, proxy.Config(), c.Namespace)
	var all []*cluster.Sidecar
	for _, name := range []string{"shop-0", "shop-1", "shop-2"} {
		a := cluster.StartApp(t)
		settings := c.Settings(a, name)
		settings["!KUBECONFIG"] = kubeconfig
		all = append(all, cluster.Start(t, a, settings))
	}
	cluster.Leader(t, 15*time.Second, all)
	cluster.Eventually(t, 15*time.Second, "callbacks", func() bool { return len(arrivals(all, "tick")) > 1 })
	healthy := func(when string) {
		t.Helper()
		for _, s := range all {
			for _, path := range []string{"/readyz", "/livez"} {
				if status, body := s.Get(path); status != http.StatusOK {
					t.Errorf("%s: %s answers %d %s, want 200 on leader and standbys", when, path, status, body)
				}
			}
		}
	}
	term := func() int64 {
		came := arrivals(all, "tick")
		return *came[len(came)-1].Body.Term
	}
	// leads waits for callbacks after the API server is back, which a lease and a moment may take.
	leads := func(healed time.Time) {
		t.Helper()
		cluster.Eventually(t, 30*time.Second, "callbacks after the outage", func() bool {
			came := arrivals(all, "tick")
			return came[len(came)-1].At.After(healed) && came[len(came)-1].Lateness() < time.Second
		})
		if took := firstAfter(t, all, "tick", healed).At.Sub(healed); took > cluster.LeaseDuration+2*time.Second {
			t.Errorf("the first callback came %s after the API server was back, want at most %s", took, cluster.LeaseDuration)
		}
	}
	begin := time.Now()
	healthy("before")

	// Less than what is left of a lease when a renewal is due.
	before := term()
	proxy.Cut()
	awaitElapsed(t, time.Now(), time.Second)
	proxy.Heal()
	leads(time.Now())
	if got := term(); got != before {
		t.Errorf("term %d after an outage of 1s, want still %d", got, before)
	}

	cut := time.Now()
	proxy.Cut()
	awaitElapsed(t, cut, 2*cluster.LeaseDuration)
	healthy("while the API server is away")
	healed := time.Now()
	proxy.Heal()
	leads(healed)
	for _, a := range arrivals(all, "tick") {
		if a.At.After(cut.Add(cluster.LeaseDuration)) && a.At.Before(healed) {
			t.Errorf("tick of %s came %s into the outage", a.Body.ScheduledAt, a.At.Sub(cut))
		}
	}
	if got := term(); got <= before {
		t.Errorf("term %d after an outage of two leases, want more than %d", got, before)
	}

	proxy.Inject(faultproxy.Status(http.StatusServiceUnavailable, 0))
	awaitElapsed(t, time.Now(), cluster.LeaseDuration) // that long the leader hurries
	proxy.ResetRequests()
	refused := time.Now()
	awaitElapsed(t, refused, 3*cluster.LeaseDuration/2)
	healthy("while the API server refuses")
	requests := proxy.Requests(faultproxy.Resource("leases"))
	most := 3 * int(time.Since(refused)/(cluster.LeaseDuration*2/15)) // a call each 2 s with a lease of 15 s
	t.Logf("%d requests for the Lease of %d in all while three sidecars were refused for %s", len(requests), proxy.Count(), time.Since(refused))
	if len(requests) > most {
		t.Errorf("three sidecars sent %d requests for the Lease while they were refused, want at most %d", len(requests), most)
	}
	healed = time.Now()
	proxy.Heal()
	leads(healed)
	healthy("after")

	for _, s := range all {
		if s.Exited() {
			t.Error("a sidecar has ended")
		}
	}
	checkNothingTwice(t, all)
	checkAccounted(t, arrivals(all, "tick"), c.Recorded(t)[run.Key{Job: "tick", Trigger: "default"}], time.Now())
	late := 0
	for _, a := range arrivals(all, "tick") {
		if a.Lateness() > cluster.LeaseDuration/2 && a.Body.ScheduledAt.After(begin) {
			late++
		}
	}
	if late < 2*int(cluster.LeaseDuration/time.Second)-4 {
		t.Errorf("%d instants of the outages ran late, want all of them: that is no misfire within the grace", late)
	}
}

// freezes is how often, and so at how many points of the way of a callback, a leader is frozen.
var freezes = 3

// TestALeaderFrozenOnTheWayOfACallback stops the leader for longer than its lease, at points from the
// decision ahead of the instant to the record of the result. When it goes on, it sends nothing that it
// had not begun; what was frozen between the last check and the send carries the lower term. R079.
func TestALeaderFrozenOnTheWayOfACallback(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: tick, path: /tick, schedule: rate 1s, historyLimit: 200}\n")
	var all []*cluster.Sidecar
	for _, name := range []string{"shop-0", "shop-1"} {
		a := cluster.StartApp(t)
		settings := c.Settings(a, name)
		settings["LEASE_DURATION"] = "2s"
		all = append(all, cluster.Start(t, a, settings))
	}
	late := 0
	for n := range freezes {
		leader := cluster.Leader(t, 15*time.Second, all)
		other := all[slices.IndexFunc(all, func(s *cluster.Sidecar) bool { return s != leader })]
		cluster.Eventually(t, 15*time.Second, "a callback of this leader", func() bool {
			came := cluster.Arrivals("tick", leader.App)
			return len(came) > 0 && time.Since(came[len(came)-1].At) < time.Second
		})
		came := cluster.Arrivals("tick", leader.App)
		next := came[len(came)-1].Body.ScheduledAt.Add(2 * time.Second)
		at := next.Add(-80*time.Millisecond + time.Duration(n)*120*time.Millisecond/time.Duration(freezes))
		awaitElapsed(t, time.Now(), time.Until(at))
		if err := leader.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		cluster.Eventually(t, 20*time.Second, "the other one's callback", func() bool {
			came := cluster.Arrivals("tick", other.App)
			return len(came) > 0 && came[len(came)-1].At.After(stopped.Add(2*time.Second))
		})
		resumed := time.Now()
		if err := leader.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		cluster.Eventually(t, 20*time.Second, "the one that was frozen follows", func() bool {
			_, body := leader.Get("/leader")
			return strings.Contains(body, `"isLeader":false`) && !leader.Leads()
		})
		successor := cluster.Arrivals("tick", other.App)
		for _, a := range cluster.Arrivals("tick", leader.App) {
			if a.At.Before(resumed) || *a.Body.Term >= *successor[len(successor)-1].Body.Term {
				continue
			}
			late++
			if a.Body.FiredAt.After(stopped) {
				t.Errorf("frozen %s from the instant: tick of %s was begun at %s, after the process went on at %s, under the old term %d",
					at.Sub(next), a.Body.ScheduledAt, a.Body.FiredAt, resumed, *a.Body.Term)
			}
		}
	}
	t.Logf("%d of %d freezes lay between the last check and the send: those came late, with the lower term", late, freezes)
	seen := make(map[string]bool)
	for _, a := range arrivals(all, "tick") {
		key := fmt.Sprintf("%s attempt %d", a.Body.Occurrence, a.Body.Attempt)
		if seen[key] {
			t.Errorf("tick of %s arrived twice", a.Body.ScheduledAt)
		}
		seen[key] = true
	}
}
