package pack_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/rbac"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// TestTheNamedFixWorks: the command that a sidecar names when rights are missing grants them, also to a service account of
// another name and for settings that need more. R184.
func TestTheNamedFixWorks(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	k := newKubectl(t, cp.AdminConfig(), ns)
	workload := strings.Replace(string(read(t, exampleWorkload)), "    spec:\n", "    spec:\n      serviceAccountName: robot\n", 1)
	path := filepath.Join(t.TempDir(), "deployment.yaml")
	write(t, path, []byte(workload))
	k.run(nil, "create", "serviceaccount", "robot")
	k.run(packed(t, "--deployment", path, "-n", ns, "--set", "LEADER_LABEL=true"), "apply", "--server-side", "-f", "-")
	c := &cluster.Cluster{ControlPlane: cp, Namespace: ns, Access: cp.TokenFor(t, ns, "robot")}
	c.Kubeconfig = controlplane.WriteKubeconfig(t, c.Access, ns)

	k.run(nil, "patch", "role", "shop-leasecron", "--type=merge", `-p={"rules":[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["shop-jobs"],"verbs":["list","watch"]}]}`)
	needed := rbac.Right{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "shop-leasecron"}
	cluster.Eventually(t, 10*time.Second, "the rights are gone", func() bool {
		ok, err := allowed(t, c, needed)
		return err == nil && !ok
	})
	a, settings := inPod(t, c, "shop-0")
	settings["LEADER_LABEL"] = "true"
	s := cluster.Start(t, a, settings)
	fix, _ := s.WaitLog(t, "a right is missing", 20*time.Second)["fix"].(string)
	command, ok := strings.CutPrefix(fix, "to grant it: sidecar ")
	pack, apply, piped := strings.Cut(command, " | kubectl ")
	if !ok || !piped {
		t.Fatalf("the fix is no command: %q", fix)
	}
	stream, stderr, code := sidecar(t, nil, strings.Fields(pack)...)
	if code != 0 {
		t.Fatalf("sidecar %s: exit code %d\n%s", pack, code, stderr)
	}
	k.run([]byte(stream), strings.Fields(apply)...)
	cluster.Leader(t, 30*time.Second, []*cluster.Sidecar{s})
	awaitRights(t, c, []rbac.Right{needed, {Verb: "patch", Resource: "pods"}})
}
