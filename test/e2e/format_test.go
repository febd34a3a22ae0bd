package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// TestANewerFormatIsLeftToANewerProgram: a sidecar that reads only an older format does not take the Lease,
// writes nothing and says why; it leads once the ledger can be read again.
func TestANewerFormatIsLeftToANewerProgram(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: tick, path: /tick, schedule: rate 1s}\n")
	admin, object := c.ControlPlane.AdminConfig(), "shop-leasecron-ledger"
	const newer = `{\"format\":2,\"writeId\":\"x\",\"term\":3}`
	kubetest.PatchConfigMap(t, admin, c.Namespace, object, `{"data":{"ledger.json":"`+newer+`"}}`)
	uid := addPod(t, c, "shop-0", nil)
	a := cluster.StartApp(t)
	settings := c.Settings(a, "shop-0")
	settings["!POD_NAME"], settings["!POD_UID"], settings["!POD_NAMESPACE"] = "shop-0", uid, c.Namespace
	s := cluster.Start(t, a, settings)
	s.WaitLog(t, "a newer program has written what is stored: this one writes nothing and does not lead", 10*time.Second)
	cluster.Eventually(t, 10*time.Second, "readyz says so and stays ready", func() bool {
		status, body := s.Get("/readyz?verbose")
		return status == 200 && strings.Contains(body, "[!]format: ") && strings.Contains(body, "newer format") && strings.Contains(body, "nobody leads")
	})
	cluster.Eventually(t, 15*time.Second, "an Event says so", func() bool {
		list, _ := eventsOf(t, c)
		return slices.Contains(list, "Lease NewerFormat")
	})
	var lease coordinationv1.Lease
	if err := json.Unmarshal(kubetest.Get(t, admin, "/apis/coordination.k8s.io/v1/namespaces/"+c.Namespace+"/leases/"+leaseObject), &lease); err != nil {
		t.Fatal(err)
	}
	if n := lease.Spec.LeaseTransitions; n != nil && *n > 0 {
		t.Errorf("the Lease was taken %d times, want it left alone", *n)
	}
	if text := kubetest.Get(t, admin, "/api/v1/namespaces/"+c.Namespace+"/configmaps/"+object); !strings.Contains(string(text), newer) {
		t.Errorf("the ledger was written over: %s", text)
	}
	kubetest.PatchConfigMap(t, admin, c.Namespace, object, `{"data":{"ledger.json":null}}`)
	cluster.Eventually(t, 40*time.Second, "it works once the ledger can be read", func() bool { return len(cluster.Arrivals("tick", a)) > 1 })
}
