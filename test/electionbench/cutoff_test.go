package electionbench_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// fiveASecond are due each 200 ms, so that one sees when the sending stops. One more hangs.
func fiveASecond() string {
	var b strings.Builder
	b.WriteString("jobs:\n- {name: hook, path: /hook, schedule: rate 1s, timeout: 1h}\n") // never answered
	for i := range 5 {
		fmt.Fprintf(&b, "- {name: tick-%d, path: /tick, schedule: rate 1s start=2026-01-01T00:00:00.%dZ}\n", i, 2*i)
	}
	return b.String()
}

// cutOff takes the API server away from a leader that fires all the time, while the others have it: by
// any clock that began to count at its last renewal or later, it has stopped when its time is over, and
// before its successor sends. client-go's elector at its defaults is told later than its successor, by
// as long as the call that is to release the Lease hangs. R074.
func cutOff(t *testing.T, table *table) {
	t.Helper()
	s := sizes()
	faults := []struct {
		name   string
		number float64
		inject func(*faultproxy.Proxy)
	}{
		{"everything hangs", 4, func(p *faultproxy.Proxy) { p.Inject(faultproxy.Hang()) }},
		{"what concerns the Lease hangs, the ledger can be written", 4.1, func(p *faultproxy.Proxy) {
			p.Inject(faultproxy.Hang(), faultproxy.Resource("leases"))
		}},
		{"packets vanish", 4.2, func(p *faultproxy.Proxy) { p.Blackhole() }},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			stopped, succeeded := cutOffOne(t, s, f.inject)
			say("cut off, %s: last callback %s, the successor's first %s after the last renewal", f.name, ms(stopped), ms(succeeded))
			table.add(row{
				f.number, fmt.Sprintf("cut off, %s: last callback / the successor's first, after the last renewal (duration %s)", f.name, s.lease),
				ms(stopped) + " / " + ms(succeeded), "", "last < " + s.lease.String(),
			})
		})
	}
	t.Run("client-go", func(t *testing.T) {
		t.Parallel()
		told, succeeded := cutOffRival(t, s)
		say("cut off, client-go: told that it does not lead %s, its successor that it does %s after the last renewal", ms(told), ms(succeeded))
		if told <= succeeded {
			t.Errorf("client-go's elector was told after %s, before its successor led after %s: it has changed, and docs/election.md says otherwise", told, succeeded)
		}
		table.clientGo(4, ms(told)+" (told to stop) / "+ms(succeeded))
	})
}

// cutOffOne returns when a leader's last callback came, and its successor's first, counted from when
// the last renewal was sent.
func cutOffOne(t *testing.T, s size, fault func(*faultproxy.Proxy)) (stopped, succeeded time.Duration) {
	t.Helper()
	cp := controlplane.Shared(t)
	c := cluster.New(t, cp, fiveASecond())
	proxy := faultproxy.Start(t, c.Access)
	start := func(name string, settings cluster.Settings) *cluster.Sidecar {
		a := cluster.StartApp(t)
		a.Script("/hook", app.Never())
		all := c.Settings(a, name)
		all["LEASE_DURATION"], all["NODE_TIMEOUT"] = s.lease.String(), (2 * s.lease).String()
		maps.Copy(all, settings)
		return cluster.Start(t, a, all)
	}
	leader := start("shop-0", cluster.Settings{"!KUBECONFIG": controlplane.WriteKubeconfig(t, proxy.ConfigFor(c.Access), c.Namespace)})
	cluster.Leader(t, time.Minute, []*cluster.Sidecar{leader})
	follower := start("shop-1", nil)
	cluster.Eventually(t, time.Minute, "callbacks", func() bool { return len(cluster.Arrivals("", leader.App)) > 5 })

	fault(proxy)
	wait(300 * time.Millisecond) // a renewal may have been under way
	renewed := record(t, cp, c.Namespace).RenewTime.Time
	cluster.Eventually(t, 3*s.lease+time.Minute, "a callback of the successor", func() bool { return len(cluster.Arrivals("", follower.App)) > 0 })
	old, young := cluster.Arrivals("", leader.App), cluster.Arrivals("", follower.App)
	last, first := old[len(old)-1], young[0]
	if leader.Exited() {
		t.Error("the sidecar that was cut off has ended")
	}
	if end := renewed.Add(s.lease); !last.At.Before(end) {
		t.Errorf("the last callback came %s after the last renewal, want none after %s", last.At.Sub(renewed), s.lease)
	}
	if !last.At.Before(first.At) || *last.Body.Term >= *first.Body.Term {
		t.Errorf("the last callback came at %s under term %d, the successor's first at %s under term %d", last.At, *last.Body.Term, first.At, *first.Body.Term)
	}
	for i, a := range cluster.Arrivals("", leader.App, follower.App) {
		if i > 0 && a.App == leader.App && a.At.After(first.At) {
			t.Errorf("%s of %s came from the old leader at %s, after the successor's first", a.Body.Job, a.Body.ScheduledAt, a.At)
		}
	}
	return last.At.Sub(renewed), first.At.Sub(renewed)
}

// cutOffRival is the same with client-go's elector: when it was told that its term is over, and when its
// successor was told that its own has begun.
func cutOffRival(t *testing.T, s size) (told, succeeded time.Duration) {
	t.Helper()
	for range 3 {
		if told, succeeded, ok := tryCutOffRival(t, s); ok {
			return told, succeeded
		}
	}
	t.Fatal("client-go's holder lost its term by itself three times: the machine is too busy")
	return 0, 0
}

// tryCutOffRival reports false where the holder had lost its term before it was disturbed.
func tryCutOffRival(t *testing.T, s size) (told, succeeded time.Duration, ok bool) {
	t.Helper()
	cp := controlplane.Shared(t)
	namespace := cp.Namespace(t)
	proxy := faultproxy.Start(t, cp.AdminConfig())
	holder := startRival(t, proxy.Config(), namespace, leaseName, "holder", s)
	firstRival(t, time.Minute, holder)
	follower := startRival(t, cp.AdminConfig(), namespace, leaseName, "follower", s)
	proxy.ResetRequests()
	proxy.WaitFor(t, time.Minute, 2, faultproxy.Verb("update"))
	proxy.Inject(faultproxy.Hang())
	wait(300 * time.Millisecond) // a renewal may have been under way
	last := record(t, cp, namespace)
	if *last.HolderIdentity != "holder" {
		return 0, 0, false // by itself: the machine was too busy
	}
	renewed := last.RenewTime.Time
	_, began := firstRival(t, 3*s.lease, follower)
	select {
	case at := <-holder.told:
		return at.Sub(renewed), began.Sub(renewed), true
	case <-time.After(3 * s.lease):
		t.Fatal("client-go's elector was never told that its term is over")
		return 0, 0, false
	}
}
