package electionbench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// How many requests a minute cost when nothing fires.
const (
	followerRequests = 1
	leaderRequests   = 15
)

// requests counts what three sidecars, and three of client-go's candidates, ask of the API server
// while nothing happens. Ours are whole: what they do about definitions, ledger and clock counts too.
func requests(t *testing.T, table *table) {
	t.Helper()
	s := sizes()
	cp := controlplane.Shared(t)
	c := cluster.New(t, cp, "jobs:\n- {name: yearly, path: /yearly, schedule: 0 0 1 1 *}\n")
	proxies := make(map[*cluster.Sidecar]*faultproxy.Proxy)
	var all []*cluster.Sidecar
	for i := range 3 {
		proxy := faultproxy.Start(t, c.Access)
		a := cluster.StartApp(t)
		settings := c.Settings(a, fmt.Sprintf("shop-%d", i))
		settings["LEASE_DURATION"], settings["NODE_TIMEOUT"] = s.lease.String(), (2 * s.lease).String()
		settings["!KUBECONFIG"] = controlplane.WriteKubeconfig(t, proxy.ConfigFor(c.Access), c.Namespace)
		sidecar := cluster.Start(t, a, settings)
		proxies[sidecar] = proxy
		all = append(all, sidecar)
	}
	leader := cluster.Leader(t, time.Minute, all)
	rivals := make(map[*rival]*faultproxy.Proxy)
	namespace := cp.Namespace(t)
	var candidates []*rival
	for i := range 3 {
		proxy := faultproxy.Start(t, cp.AdminConfig())
		r := startRival(t, proxy.Config(), namespace, "rivals", fmt.Sprintf("rival-%d", i), s)
		rivals[r] = proxy
		candidates = append(candidates, r)
	}
	ahead, _ := firstRival(t, time.Minute, candidates...)
	proxies[leader].WaitFor(t, time.Minute, 3, faultproxy.Resource("leases"), faultproxy.Verb("update"))

	for _, p := range proxies {
		p.ResetRequests()
	}
	for _, p := range rivals {
		p.ResetRequests()
	}
	began := time.Now()
	for left := s.quiet; left > 0; left -= time.Minute {
		wait(min(left, time.Minute))
		say("requests counted for %s of %s", time.Since(began).Round(time.Second), s.quiet)
	}
	minutes := time.Since(began).Minutes()
	perMinute := func(p *faultproxy.Proxy) float64 { return float64(p.Count()) / minutes }
	if !leader.Leads() {
		t.Fatal("the leader changed")
	}
	var follows, rivalFollows float64
	for sidecar, p := range proxies {
		if sidecar == leader {
			continue
		}
		follows = max(follows, perMinute(p))
		for _, r := range p.Requests() {
			t.Logf("a follower's request: %s %s", r.Verb, r.Path)
		}
		if n := p.Count(); !*full && n > 1 { // one may be a watch that was closed and is opened again
			t.Errorf("a follower sent %d requests within %s, want none: %v", n, s.quiet, p.Requests())
		}
	}
	for r, p := range rivals {
		if r != ahead {
			rivalFollows = max(rivalFollows, perMinute(p))
		}
	}
	leads := perMinute(proxies[leader])
	if *full && (leads > leaderRequests || follows > followerRequests) {
		t.Errorf("a leader sends %.1f requests a minute and a follower up to %.1f, want at most %d and %d", leads, follows, leaderRequests, followerRequests)
	}
	number := func(n float64) string { return fmt.Sprintf("%.1f", n) }
	table.add(row{
		3, fmt.Sprintf("API requests per minute, nothing firing, counted for %s: leader", s.quiet),
		number(leads), number(perMinute(rivals[ahead])), fmt.Sprint(leaderRequests),
	})
	table.add(row{3.1, "  the busier follower", number(follows), number(rivalFollows), fmt.Sprint(followerRequests)})
}
