package leases_test

import (
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/election/leases/leasestest"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

func tableIn(store ledger.Store) leases.Store {
	return ledger.NewPort[leases.Table](store, ledger.NameLeases)
}

func TestMemory(t *testing.T) {
	leasestest.RunInBubble(t, func(*testing.T) leasestest.Backend {
		store := ledger.NewSharedMemory()
		return leasestest.Backend{Open: func(*testing.T) leases.Store { return tableIn(store) }}
	})
}

func TestFile(t *testing.T) {
	leasestest.RunInBubble(t, func(t *testing.T) leasestest.Backend {
		t.Helper()
		store, err := ledger.OpenFile(filepath.Join(t.TempDir(), "ledger.json"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return leasestest.Backend{Exclusive: true, Open: func(*testing.T) leases.Store { return tableIn(store) }}
	})
}

func TestKubernetes(t *testing.T) {
	leasestest.Run(t, func(t *testing.T) leasestest.Backend {
		t.Helper()
		open := inCluster(t)
		return leasestest.Backend{Open: func(t *testing.T) leases.Store {
			t.Helper()
			return open(t)
		}}
	})
}

// inCluster makes a table in a real API server; what it returns opens it. get and update on the one
// name are all the rights that there are.
func inCluster(tb testing.TB) func(testing.TB) leases.Store {
	tb.Helper()
	cp := controlplane.Shared(tb)
	namespace := cp.Namespace(tb)
	kubetest.ConfigMap(tb, cp.AdminConfig(), namespace, "shop-leasecron-leases", nil)
	access := cp.ServiceAccount(tb, namespace, "sidecar", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"shop-leasecron-leases"},
		Verbs: []string{"get", "update"},
	})
	return func(tb testing.TB) leases.Store {
		tb.Helper()
		client, err := kube.New(access, "leases")
		if err != nil {
			tb.Fatal(err)
		}
		store, err := ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: namespace, App: "shop"})
		if err != nil {
			tb.Fatal(err)
		}
		return tableIn(store)
	}
}

// BenchmarkRenew renews a lease that is kept in a real API server: one PUT.
func BenchmarkRenew(b *testing.B) {
	s, err := leases.New(leases.Options{Store: inCluster(b)(b), Self: leases.Self{Node: "shop-0_a"}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l, err := s.Acquire(b.Context(), leases.AcquireRequest{Name: "rebuild", Holder: "worker", TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Renew(b.Context(), "rebuild", l.Token); err != nil {
			b.Fatal(err)
		}
	}
}
