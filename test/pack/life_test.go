package pack_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// bakery is a workload as a newcomer has it: with a Service beside it, no namespace and no service account.
const bakery = `apiVersion: apps/v1
kind: Deployment
metadata: {name: bakery}
spec:
  selector: {matchLabels: {app: bakery}}
  template:
    metadata: {labels: {app: bakery}}
    spec:
      containers:
        - {name: web, image: bakery, ports: [{containerPort: 3000}]}
---
apiVersion: v1
kind: Service
metadata: {name: bakery}
spec: {selector: {app: bakery}, ports: [{port: 80, targetPort: 3000}]}
`

// TestUninstalling: the steps of docs/pack.md leave nothing behind.
func TestUninstalling(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	k := newKubectl(t, cp.AdminConfig(), ns)
	path := filepath.Join(t.TempDir(), "deploy.yaml")
	write(t, path, []byte(bakery))
	k.run(packed(t, "--deployment", path, "-n", ns), "apply", "--server-side", "-n", ns, "-f", "-")
	if text := k.run(nil, "get", "deployment", "bakery", "-o", "yaml"); !strings.Contains(text, "serviceAccountName: bakery") || !strings.Contains(text, "leasecron") {
		t.Fatalf("it is not installed:\n%s", text)
	}

	write(t, path, []byte(strings.Replace(bakery, "    spec:\n      containers", "    spec:\n      serviceAccountName: default\n      containers", 1)))
	k.run(nil, "apply", "--server-side", "-n", ns, "-f", path)
	text := k.run(nil, "get", "deployment", "bakery", "-o", "yaml")
	if strings.Contains(text, "leasecron") || !strings.Contains(text, "serviceAccountName: default") {
		t.Errorf("the Deployment has something of it still:\n%s", text)
	}
	k.run(nil, "delete", "-n", ns, "lease,role,rolebinding,configmap,poddisruptionbudget,networkpolicy", "-l", "leasecron.io/app=bakery,app.kubernetes.io/managed-by=leasecron")
	k.run(nil, "delete", "-n", ns, "serviceaccount", "bakery")
	if left := k.run(nil, "get", "-o", "name", "lease,role,rolebinding,configmap,serviceaccount"); strings.Contains(left, "bakery") {
		t.Errorf("this is left:\n%s", left)
	}
}

// TestEditedJobsAreAConflict: what was edited by hand is not written over by surprise, and with --force-conflicts it is.
func TestEditedJobsAreAConflict(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	k := newKubectl(t, cp.AdminConfig(), ns)
	stream := packed(t, "--app", "shop", "-n", ns)
	k.run(stream, "apply", "--server-side", "-n", ns, "-f", "-")
	k.run(nil, "patch", "configmap", "shop-jobs", "--field-manager=kubectl-edit", `-p={"data":{"jobs.yaml":"jobs: []\n"}}`)
	if _, stderr, err := k.try(stream, "apply", "--server-side", "-n", ns, "-f", "-"); err == nil || !strings.Contains(stderr, `conflict with "kubectl-edit"`) {
		t.Errorf("applied over an edit: %v, %s", err, stderr)
	}
	k.run(stream, "apply", "--server-side", "--force-conflicts", "-n", ns, "-f", "-")
	if text := k.run(nil, "get", "configmap", "shop-jobs", "-o", "yaml"); strings.Contains(text, "jobs: []") {
		t.Errorf("the edit is there still:\n%s", text)
	}
	// Who keeps the jobs in the cluster packs without them.
	without, _, _ := sidecar(t, nil, "pack", "--app", "shop", "-n", ns)
	k.run(nil, "patch", "configmap", "shop-jobs", "--field-manager=kubectl-edit", `-p={"data":{"jobs.yaml":"jobs: []\n"}}`)
	k.run([]byte(without), "apply", "--server-side", "-n", ns, "-f", "-")
	if text := k.run(nil, "get", "configmap", "shop-jobs", "-o", "yaml"); !strings.Contains(text, "jobs: []") {
		t.Errorf("the edit is gone:\n%s", text)
	}
}

// TestCheckOfAFileWithMore: what stands beside the workload is compared too, wherever it lives, and is clean when it was applied.
func TestCheckOfAFileWithMore(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	k := newKubectl(t, cp.AdminConfig(), "default")
	path := filepath.Join(t.TempDir(), "deploy.yaml")
	write(t, path, []byte(bakery+"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+ns+"}\nrules: [{apiGroups: [\"\"], resources: [nodes], verbs: [get]}]\n"+
		"---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: bakery}\nspec: {defaultBackend: {service: {name: bakery, port: {number: 80}}}}\n"))
	t.Cleanup(func() { _, _, _ = k.try(nil, "delete", "clusterrole", ns) })
	// No -n for kubectl, whose own namespace is another one: each object says where it goes.
	k.run(packed(t, "--deployment", path, "-n", ns), "apply", "--server-side", "-f", "-")
	out, stderr, err := execute(t, cluster.Program(), []string{"KUBECONFIG=" + k.kubeconfig}, nil, "pack", "--jobs", exampleJobs, "--deployment", path, "-n", ns, "--check")
	if err != nil || out != "" {
		t.Errorf("as it was applied: %v\n%s%s", err, out, stderr)
	}
}
