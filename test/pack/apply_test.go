package pack_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/manifests"
	"github.com/leasecron/leasecron/rbac"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

var update = flag.Bool("update", false, "write the golden files anew")

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// restricted makes a namespace that refuses pods which are not "restricted", and warns of workloads that would make some.
func restricted(t *testing.T) (namespace string, k *kubectl) {
	t.Helper()
	cp := controlplane.Shared(t)
	namespace = cp.Namespace(t)
	k = newKubectl(t, cp.AdminConfig(), namespace)
	k.run(nil, "label", "namespace", namespace,
		"pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted", "pod-security.kubernetes.io/audit=restricted")
	return namespace, k
}

func packed(t *testing.T, args ...string) []byte {
	t.Helper()
	out, stderr, code := sidecar(t, nil, append([]string{"pack", "--jobs", exampleJobs}, args...)...)
	if code != 0 {
		t.Fatalf("sidecar pack %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return []byte(out)
}

// TestAppliesWhereItIsRestricted: the output applies without a warning into a namespace that enforces pod security
// "restricted", and so do the pods that the workload would make.
func TestAppliesWhereItIsRestricted(t *testing.T) {
	t.Parallel()
	example := string(read(t, exampleWorkload))
	tests := map[string]struct {
		workload string
		args     []string
	}{
		"native":      {workload: example},
		"plain":       {workload: example, args: []string{"--plain"}},
		"readiness":   {workload: example, args: []string{"--readiness"}},
		"own token":   {workload: strings.Replace(example, "      securityContext:\n        runAsNonRoot", "      automountServiceAccountToken: false\n      securityContext:\n        runAsNonRoot", 1)},
		"StatefulSet": {workload: strings.Replace(example, "kind: Deployment", "kind: StatefulSet", 1)},
		"DaemonSet":   {workload: strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "  replicas: 3\n", "").Replace(example)},
		"existing init container": {workload: example + "      initContainers:\n        - name: migrate\n          image: shop:latest\n" +
			"          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ns, k := restricted(t)
			path := filepath.Join(t.TempDir(), "deployment.yaml")
			write(t, path, []byte(tt.workload))
			stream := packed(t, append([]string{"--deployment", path, "-n", ns, "--with", "pdb,networkpolicy"}, tt.args...)...)
			if name == "native" {
				k.run(stream, "apply", "--server-side", "--dry-run=server", "-f", "-")
			}
			k.run(stream, "apply", "--server-side", "-f", "-")

			var pod []byte
			for _, o := range byName(t, string(stream)) {
				if spec, ok := o["spec"].(map[string]any); ok && spec["template"] != nil {
					template, _ := spec["template"].(map[string]any)
					template["apiVersion"], template["kind"] = "v1", "Pod"
					meta, _ := template["metadata"].(map[string]any)
					meta["name"] = "one"
					pod = manifests.YAML(template)
				}
			}
			k.run(pod, "create", "--dry-run=server", "-f", "-")
		})
	}
	t.Run("the namespace does refuse", func(t *testing.T) {
		_, k := restricted(t)
		_, stderr, err := k.try([]byte("apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec: {containers: [{name: a, image: a}]}\n"), "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(stderr, "violates PodSecurity") {
			t.Errorf("a pod that is not restricted: %v, %s", err, stderr)
		}
	})
}

// TestCanIList pins what a token of the packed service account may do.
func TestCanIList(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	admin := newKubectl(t, cp.AdminConfig(), ns)
	admin.run(packed(t, "--deployment", exampleWorkload, "-n", ns), "apply", "--server-side", "-f", "-")
	own := newKubectl(t, cp.TokenFor(t, ns, "shop"), ns)
	awaitRights(t, &cluster.Cluster{Access: cp.TokenFor(t, ns, "shop"), Namespace: ns}, []rbac.Right{
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "shop-leasecron"},
	})
	got := own.run(nil, "auth", "can-i", "--list")
	path := filepath.Join("testdata", "can-i.txt")
	if *update {
		write(t, path, []byte(got))
	}
	if diff := cmp.Diff(string(read(t, path)), got); diff != "" {
		t.Errorf("what the service account may do (-want +got; go test ./test/pack -update writes it):\n%s", diff)
	}
}

// TestCheck: --check is silent while folder and cluster are as they were packed, and tells what differs, with exit code 1.
func TestCheck(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	k := newKubectl(t, cp.AdminConfig(), ns)
	args := []string{"pack", "--deployment", exampleWorkload, "-n", ns, "--jobs", exampleJobs, "--with", "pdb", "--image", "leasecron:v1"}

	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		inDir := append(args, "--out", dir)
		if out, _, code := sidecar(t, nil, append(inDir, "--check")...); code != 1 || !strings.Contains(out, "+kind: Kustomization") {
			t.Errorf("nothing is there yet: exit code %d, %s", code, out)
		}
		sidecar(t, nil, inDir...)
		if out, stderr, code := sidecar(t, nil, append(inDir, "--check")...); code != 0 || out != "" {
			t.Errorf("as it was written: exit code %d\n%s%s", code, out, stderr)
		}
		role := filepath.Join(dir, "component", "rbac.yaml")
		write(t, role, []byte(strings.Replace(string(read(t, role)), "  - watch\n", "", 1)))
		out, stderr, code := sidecar(t, nil, append(inDir, "--check")...)
		if code != 1 || !strings.Contains(out, "+  - watch\n") || strings.Contains(out, "\n-  -") || stderr == "" {
			t.Errorf("one verb is missing: exit code %d\n%s%s", code, out, stderr)
		}
	})
	t.Run("cluster", func(t *testing.T) {
		check := func() (string, int) {
			out, stderr, err := execute(t, cluster.Program(), []string{"KUBECONFIG=" + k.kubeconfig}, nil, append(args, "--check")...)
			code := 0
			if err != nil {
				code = 1
			}
			return out + stderr, code
		}
		if out, code := check(); code != 1 || !strings.Contains(out, "+  name: shop-leasecron-ledger") {
			t.Errorf("nothing was applied yet: exit code %d, %s", code, out)
		}
		stream := packed(t, args[1:]...)
		k.run(stream, "apply", "--server-side", "-f", "-")
		if out, code := check(); code != 0 || out != "" {
			t.Errorf("as it was applied: exit code %d\n%s", code, out)
		}
		k.run(nil, "patch", "role", "shop-leasecron", "--type=json", `-p=[{"op":"remove","path":"/rules/0/verbs/0"}]`)
		k.run(nil, "patch", "configmap", "shop-leasecron-ledger", `-p={"data":{"ledger.json":"{}"}}`) // which is the sidecars' own
		if out, code := check(); code != 1 || !strings.Contains(out, "+  - get\n") || strings.Contains(out, "ledger") {
			t.Errorf("one verb is missing: exit code %d\n%s", code, out)
		}
	})
}

// decode reads an object that kubectl printed as JSON.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}
