package electionbench_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// crashMost is how long after the holder's time a follower may take to lead.
const crashMost = 250 * time.Millisecond

const leaseName = "shop-leasecron"

// crash takes the holder off the network, in clusters of three electors each, a little apart. The
// followers' monotonic clocks say when the holder's time is over: none leads before, and one soon after.
func crash(t *testing.T, table *table) {
	t.Helper()
	s := sizes()
	var mu sync.Mutex
	var bySight, byRecord, clientGo durations
	t.Run("trials", func(t *testing.T) {
		for trial := range s.crashes {
			t.Run(strconv.Itoa(trial+1), func(t *testing.T) {
				t.Parallel()
				wait(time.Duration(trial) * s.lease / 10)
				sight, since := crashOne(t, s)
				mu.Lock()
				bySight, byRecord = append(bySight, sight), append(byRecord, since)
				mu.Unlock()
				rival := crashRival(t, s)
				mu.Lock()
				defer mu.Unlock()
				clientGo = append(clientGo, rival)
				say("crash %d of %d: led %s after the holder's time was over by its own clock; client-go %s after it by the record",
					len(clientGo), s.crashes, ms(sight), ms(rival))
			})
		}
	})
	if len(bySight) == 0 {
		return
	}
	if bySight.min() < 0 {
		t.Errorf("a follower led %s before the holder's time was over by its clock", -bySight.min())
	}
	table.limit("takeover after a crash, max", bySight.max(), crashMost)
	table.add(row{
		2, fmt.Sprintf("crash, %d trials: takeover after the holder's time ran out by the follower's monotonic clock, least / max", s.crashes),
		ms(bySight.min()) + " / " + ms(bySight.max()), "", "0 / " + ms(crashMost),
	})
	table.add(row{2.1, "  the same counted from the last renewal's time in the record, median / max", byRecord.medianAndMax(), clientGo.medianAndMax(), ""})
}

// crashOne is one trial with our electors. It returns how long after the end of the holder's time
// another led, by that one's own sight of the last renewal and by the record's time of it.
func crashOne(t *testing.T, s size) (bySight, byRecord time.Duration) {
	t.Helper()
	cp := controlplane.Shared(t)
	namespace := cp.Namespace(t)
	kubetest.Lease(t, cp.AdminConfig(), namespace, leaseName, nil)
	proxy := faultproxy.Start(t, cp.AdminConfig())
	field := electiontest.NewField()
	holder := field.Start(t, newElector(t, proxy.Config(), namespace, "holder", s))
	lost := holder.Lead(t)
	var followers []*electiontest.Candidate
	for _, name := range []string{"follower-0", "follower-1"} {
		followers = append(followers, field.Start(t, newElector(t, cp.AdminConfig(), namespace, name, s)))
	}
	// The end comes right after a renewal.
	first := holder.Elector.Status().RenewedAt
	electiontest.Until(t, "a renewal that everyone has seen", func() bool {
		last := holder.Elector.Status().RenewedAt
		for _, f := range followers {
			if !f.Elector.Status().RenewedAt.Equal(last) {
				return false
			}
		}
		return last.After(first)
	})
	proxy.Cut()
	last := followers[0].Elector.Status().RenewedAt
	seen := make(map[*electiontest.Candidate]time.Time)
	for _, f := range followers {
		seen[f] = f.Elector.Status().SeenAt
	}
	wait(s.lease - time.Second)
	next := electiontest.First(t, followers...)
	if lost.Lease.Valid() {
		t.Error("two lead")
	}
	began := next.WonAfter(seen[next.Candidate])
	return began - s.lease, next.WonAfter(last) - s.lease
}

// crashRival is the same with client-go's electors.
func crashRival(t *testing.T, s size) (byRecord time.Duration) {
	t.Helper()
	for range 3 {
		if byRecord, ok := tryCrashRival(t, s); ok {
			return byRecord
		}
	}
	t.Fatal("client-go's holder lost its term by itself three times: the machine is too busy")
	return 0
}

// tryCrashRival reports false where the holder had lost its term before it was disturbed.
func tryCrashRival(t *testing.T, s size) (byRecord time.Duration, ok bool) {
	t.Helper()
	cp := controlplane.Shared(t)
	namespace := cp.Namespace(t)
	proxy := faultproxy.Start(t, cp.AdminConfig())
	holder := startRival(t, proxy.Config(), namespace, leaseName, "holder", s)
	firstRival(t, time.Minute, holder)
	followers := []*rival{
		startRival(t, cp.AdminConfig(), namespace, leaseName, "follower-0", s),
		startRival(t, cp.AdminConfig(), namespace, leaseName, "follower-1", s),
	}
	proxy.ResetRequests()
	proxy.WaitFor(t, time.Minute, 2, faultproxy.Verb("update"))
	wait(200 * time.Millisecond) // for the answer
	proxy.Cut()
	last := record(t, cp, namespace)
	if *last.HolderIdentity != "holder" {
		return 0, false // by itself: the machine was too busy
	}
	_, began := firstRival(t, 3*s.lease, followers...)
	return began.Sub(last.RenewTime.Time) - s.lease, true
}

func newElector(t *testing.T, cfg *rest.Config, namespace, name string, s size) *election.Kubernetes {
	t.Helper()
	client, err := kube.New(cfg, "lease")
	if err != nil {
		t.Fatal(err)
	}
	opts := election.KubernetesOptions{
		Options: election.Options{Identity: election.NewIdentity(name), Logger: slog.New(slog.DiscardHandler)},
		Client:  client, Namespace: namespace, Name: leaseName, Duration: s.lease,
	}
	e, err := election.NewKubernetes(opts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// record is the election record, with times by the clock of this machine.
func record(t *testing.T, cp *controlplane.ControlPlane, namespace string) coordinationv1.LeaseSpec {
	t.Helper()
	client, err := kube.New(cp.AdminConfig(), "onlooker")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	lease, err := client.GetLease(ctx, namespace, leaseName)
	if err != nil {
		t.Fatal(err)
	}
	return lease.Spec
}

func wait(d time.Duration) { <-time.After(d) }
