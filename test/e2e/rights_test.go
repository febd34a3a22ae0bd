package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// A right that is missing is named in one line with the commands to see and to grant it, in /readyz
// and by a metric; the app is not touched, and when it is granted the sidecar goes on.
func TestAMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), drainJobs)
	setRole := func(leaseVerbs string) {
		t.Helper()
		kubetest.Send(t, c.ControlPlane.AdminConfig(), http.MethodPut,
			"/apis/rbac.authorization.k8s.io/v1/namespaces/"+c.Namespace+"/roles/shop-leasecron",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"shop-leasecron"},"rules":[
			{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["shop-leasecron"],"verbs":[`+leaseVerbs+`]},
			{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["shop-leasecron-ledger","shop-leasecron-catalog","shop-leasecron-history","shop-leasecron-leases"],"verbs":["get","list","watch","update"]},
			{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["shop-jobs"],"verbs":["list","watch"]},
			{"apiGroups":[""],"resources":["events"],"verbs":["create","patch"]}]}`)
	}
	setRole(`"get","list","watch"`)
	lease := "/apis/coordination.k8s.io/v1/namespaces/" + c.Namespace + "/leases/shop-leasecron"
	cluster.Eventually(t, 10*time.Second, "the smaller Role is in force", func() bool {
		return kubetest.Status(t, c.Access, http.MethodPut, lease, `{}`) == http.StatusForbidden
	})

	s := c.Start(t, "shop-0")
	line := s.WaitLog(t, "a right is missing", 15*time.Second)
	account := "system:serviceaccount:" + c.Namespace + ":shop"
	for key, want := range map[string]string{
		"verb": "update", "resource": "leases.coordination.k8s.io", "name": "shop-leasecron", "namespace": c.Namespace,
		"check": "kubectl auth can-i update leases.coordination.k8s.io/shop-leasecron -n " + c.Namespace + " --as=" + account,
		"fix":   "to grant it: sidecar pack --app shop -n " + c.Namespace + " | kubectl apply --server-side --force-conflicts -f -",
	} {
		if line[key] != want {
			t.Errorf("%s = %v, want %q", key, line[key], want)
		}
	}
	if n := strings.Count(s.Log(), `"a right is missing"`); n != 1 {
		t.Errorf("%d lines, want one for the one right", n)
	}
	if status, body := s.Get("/readyz?verbose"); status != 200 || !strings.Contains(body, "[!]rights: missing in namespace "+c.Namespace+": update leases.coordination.k8s.io/shop-leasecron;") {
		t.Errorf("/readyz?verbose = %d\n%s", status, body)
	}
	if status, body := s.Get("/readyz"); status != 200 || body != "ok" {
		t.Errorf("/readyz = %d %s: a missing right must not take the app out of its Service", status, body)
	}
	if got := s.Metric("leasecron_missing_rights"); got != "1" {
		t.Errorf("leasecron_missing_rights is %q, want 1", got)
	}

	setRole(`"get","list","watch","update"`)
	cluster.Leader(t, 30*time.Second, []*cluster.Sidecar{s})
	s.WaitLog(t, "a right that was missing is granted", 40*time.Second)
	cluster.Eventually(t, 10*time.Second, "the metric follows", func() bool { return s.Metric("leasecron_missing_rights") == "0" })
	if status, body := s.Get("/readyz?verbose"); status != 200 || !strings.Contains(body, "[+]rights ok: ") {
		t.Errorf("/readyz?verbose = %d\n%s", status, body)
	}
}

// With all rights there is nothing to say.
func TestWithAllRightsNothingIsSaid(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), drainJobs)
	s := c.Start(t, "shop-0")
	cluster.Eventually(t, 15*time.Second, "the check is made", func() bool {
		_, body := s.Get("/readyz?verbose")
		return strings.Contains(body, "[+]rights ok: ")
	})
	if strings.Contains(s.Log(), `"component":"rights"`) {
		t.Errorf("the check complains:\n%s", s.Log())
	}
}
