package leases_test

import (
	"path/filepath"
	"testing"

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

// get and update on the one name are all the rights that there are.
func TestKubernetes(t *testing.T) {
	cp := controlplane.Shared(t)
	leasestest.Run(t, func(t *testing.T) leasestest.Backend {
		t.Helper()
		namespace := cp.Namespace(t)
		kubetest.ConfigMap(t, cp.AdminConfig(), namespace, "shop-leasecron-leases", nil)
		access := cp.ServiceAccount(t, namespace, "sidecar", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"shop-leasecron-leases"},
			Verbs: []string{"get", "update"},
		})
		return leasestest.Backend{Open: func(t *testing.T) leases.Store {
			t.Helper()
			client, err := kube.New(access, "leases")
			if err != nil {
				t.Fatal(err)
			}
			store, err := ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: namespace, App: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			return tableIn(store)
		}}
	})
}
