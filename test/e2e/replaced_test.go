package e2e_test

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// TestAllObjectsAreReplacedWhileThePodsLive deletes and makes anew what `kubectl delete -k` and then
// `kubectl apply -k` do, Lease and ledger together: the tokens go on growing and no instant is run again.
func TestAllObjectsAreReplacedWhileThePodsLive(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n"+
		"- name: tick\n  path: /tick\n  triggers: [{name: default, schedule: rate 1s start=2026-01-01T00:00:00Z, misfire: {policy: catch-up, limit: 100}}]\n")
	all := []*cluster.Sidecar{c.Start(t, "shop-0"), c.Start(t, "shop-1")}
	cluster.Leader(t, 15*time.Second, all)
	cluster.Eventually(t, 20*time.Second, "callbacks", func() bool { return len(arrivals(all, "tick")) > 3 })

	admin := c.ControlPlane.AdminConfig()
	documents := []string{"shop-leasecron-ledger", "shop-leasecron-catalog", "shop-leasecron-history"}
	kubetest.DeleteLease(t, admin, c.Namespace, leaseObject)
	for _, name := range documents {
		kubetest.DeleteConfigMap(t, admin, c.Namespace, name)
	}
	before := *arrivals(all, "tick")[len(arrivals(all, "tick"))-1].Body.Term
	for _, name := range documents {
		kubetest.ConfigMap(t, admin, c.Namespace, name, nil)
	}
	kubetest.Lease(t, admin, c.Namespace, leaseObject, map[string]string{"app.kubernetes.io/name": cluster.AppName})

	cluster.Eventually(t, 30*time.Second, "a later leader calls", func() bool {
		came := arrivals(all, "tick")
		return *came[len(came)-1].Body.Term > before
	})
	seen := make(map[string]int64)
	highest := int64(0)
	for _, a := range arrivals(all, "tick") {
		if term, twice := seen[a.Body.Occurrence]; twice {
			t.Errorf("occurrence %s of %s was run under term %d and again under %d", a.Body.Occurrence, a.Body.ScheduledAt, term, *a.Body.Term)
		}
		seen[a.Body.Occurrence] = *a.Body.Term
		if *a.Body.Term < highest {
			t.Errorf("a callback came with token %d after one with %d", *a.Body.Term, highest)
		}
		highest = *a.Body.Term
	}
}
