package leases_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// fenced is what the holders of a lease work on. It notices whoever comes too late.
type fenced struct {
	mu     sync.Mutex
	newest int64
	visits int
	broken []string
}

// work is done by a holder that believes in its lease until then. It reports whether it still did.
func (f *fenced) work(who string, token int64, until time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !time.Now().Before(until) {
		return false
	}
	if token < f.newest {
		f.broken = append(f.broken, fmt.Sprintf("%s with token %d worked after one with token %d", who, token, f.newest))
	}
	f.newest = max(f.newest, token)
	f.visits++
	return true
}

// Six workers at three sidecars contend for one lease of a real API server while each sidecar's way to
// it breaks in all manners. No two of them ever believe in the lease at one time, and none is shut out
// when all is well again.
func TestFaultsOnTheWayToTheAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	namespace := cp.Namespace(t)
	kubetest.ConfigMap(t, cp.AdminConfig(), namespace, "shop-leasecron-leases", nil)
	access := cp.ServiceAccount(t, namespace, "sidecar", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"shop-leasecron-leases"},
		Verbs: []string{"get", "update"},
	})
	var sidecars []*leases.Service
	var ways []*faultproxy.Proxy
	for i := range 3 {
		proxy := faultproxy.Start(t, access)
		client, err := kube.New(proxy.Config(), "leases")
		if err != nil {
			t.Fatal(err)
		}
		store, err := ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: namespace, App: "shop", Timeout: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s, err := leases.New(leases.Options{
			Store: tableIn(store), Self: leases.Self{Node: fmt.Sprintf("shop-%d_a", i), Place: fmt.Sprintf("uid-%d", i)}, Timeout: 3 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		sidecars, ways = append(sidecars, s), append(ways, proxy)
	}

	target := new(fenced)
	ctx, stop := context.WithTimeout(t.Context(), 7*time.Second)
	defer stop()
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() { contend(ctx, t, sidecars[i%3], fmt.Sprintf("worker-%d", i), target) })
	}
	breakWays(ctx, ways)
	group.Wait()
	for _, proxy := range ways {
		proxy.Heal()
	}

	for _, words := range target.broken {
		t.Error(words)
	}
	t.Logf("%d visits, newest token %d", target.visits, target.newest)
	if target.visits == 0 {
		t.Error("nobody ever worked")
	}
	for i, s := range sidecars {
		l, err := s.Acquire(t.Context(), leases.AcquireRequest{Name: "rebuild", Holder: "after", TTL: 10 * time.Second, Wait: 20 * time.Second})
		if err != nil || l.Token <= target.newest {
			t.Errorf("sidecar %d, when all is well: %+v, %v", i, l, err)
		}
		if err := s.Release(t.Context(), "rebuild", l.Token); err != nil {
			t.Errorf("sidecar %d: %v", i, err)
		}
	}
	for i, proxy := range ways {
		if n := proxy.Count(faultproxy.Verb("list", "watch", "patch")); n > 0 {
			t.Errorf("sidecar %d sent %d requests other than get and update", i, n)
		}
	}
}

// contend takes the lease again and again, works under it for a while, and gives it up or lets it expire.
func contend(ctx context.Context, t *testing.T, s *leases.Service, who string, target *fenced) {
	t.Helper()
	for i := 0; ctx.Err() == nil; i++ {
		l, err := s.Acquire(ctx, leases.AcquireRequest{
			Name: "rebuild", Holder: who, TTL: time.Second, Wait: time.Second, Key: fmt.Sprintf("%s/%d", who, i/2),
		})
		if err != nil {
			wait(ctx, 10*time.Millisecond)
			continue
		}
		// It waited, so that its validity is told as of its answer; what a renewal says counts from here.
		token, until := l.Token, time.Time{}
		for range 1 + rand.N(4) {
			before := time.Now()
			l, err = s.Renew(ctx, "rebuild", token)
			if err == nil {
				until = before.Add(l.Valid)
			} else if _, lost := errors.AsType[*leases.LostError](err); lost {
				break
			}
			for range rand.N(10) {
				target.work(who, token, until)
				wait(ctx, 20*time.Millisecond)
			}
		}
		if rand.N(2) == 0 {
			_ = s.Release(ctx, "rebuild", token)
			continue
		}
		for ctx.Err() == nil && target.work(who, token, until) { // to the end
			wait(ctx, 20*time.Millisecond)
		}
	}
}

// breakWays has one fault after the other on each way, until ctx ends.
func breakWays(ctx context.Context, ways []*faultproxy.Proxy) {
	update, all := faultproxy.Verb("update"), faultproxy.Verb("get", "update")
	var group sync.WaitGroup
	for _, proxy := range ways {
		faults := []func(){
			func() {}, func() {}, func() {}, func() {},
			func() { proxy.Inject(faultproxy.DropAnswer().Times(2), update) },
			func() { proxy.Inject(faultproxy.Reset().Times(2), all) },
			func() { proxy.Inject(faultproxy.Status(503, 0).Times(2), all) },
			func() { proxy.Inject(faultproxy.Delay(200*time.Millisecond).Times(3), all) },
			func() { proxy.Inject(faultproxy.DelayAnswer(250*time.Millisecond).Times(2), update) },
			func() { proxy.Inject(faultproxy.Hang().Times(1), all) },
			func() { proxy.Inject(faultproxy.HangAnswer().Times(1), update) },
			func() { proxy.Blackhole() },
			func() { proxy.Cut() },
		}
		group.Go(func() {
			for ctx.Err() == nil {
				faults[rand.N(len(faults))]()
				wait(ctx, 200*time.Millisecond+rand.N(400*time.Millisecond))
				proxy.Heal()
				wait(ctx, rand.N(300*time.Millisecond))
			}
		})
	}
	group.Wait()
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
