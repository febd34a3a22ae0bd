package pack_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/manifests"
	"github.com/leasecron/leasecron/test/controlplane"
)

const (
	exampleWorkload = "../../examples/kubernetes/deployment.yaml"
	exampleJobs     = "../../examples/kubernetes/jobs.yaml"
)

// byName are the objects of a stream.
func byName(t *testing.T, stream string) map[string]manifests.Object {
	t.Helper()
	objects, err := manifests.ParseStream([]byte(stream))
	if err != nil {
		t.Fatalf("%v in\n%s", err, stream)
	}
	out := make(map[string]manifests.Object)
	for _, o := range objects {
		out[o.Namespace()+"/"+o.String()] = o
	}
	return out
}

// TestKustomizeBuildsThePlainOutput: what kubectl kustomize (the library of kustomize) makes of the folder is what pack prints.
func TestKustomizeBuildsThePlainOutput(t *testing.T) {
	t.Parallel()
	k := newKubectl(t, controlplane.Shared(t).AdminConfig(), "")
	paths, err := filepath.Glob("../../manifests/testdata/workloads/*.yaml")
	if err != nil || len(paths) < 7 {
		t.Fatalf("workloads: %v, %v", paths, err)
	}
	for _, path := range append(paths, exampleWorkload) {
		for _, form := range []string{"native", "plain"} {
			if form == "plain" && !slices.Contains([]string{"init-containers.yaml", "rollout.yaml", "service-account.yaml"}, filepath.Base(path)) {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml")+" "+form, func(t *testing.T) {
				args := []string{"pack", "--deployment", path, "--jobs", exampleJobs, "--with", "pdb,networkpolicy"}
				switch filepath.Base(path) {
				case "several-containers.yaml", "service-account.yaml": // which name a namespace
				default:
					args = append(args, "-n", "apps")
				}
				if form == "plain" {
					args = append(args, "--plain")
				}
				dir := t.TempDir()
				plain, stderr, code := sidecar(t, nil, args...)
				if code != 0 {
					t.Fatalf("sidecar pack: exit code %d\n%s", code, stderr)
				}
				if _, stderr, code := sidecar(t, nil, append(args, "--out", dir)...); code != 0 {
					t.Fatalf("sidecar pack --out: exit code %d\n%s", code, stderr)
				}
				built := k.run(nil, "kustomize", dir)
				if diff := cmp.Diff(byName(t, plain), byName(t, built)); diff != "" {
					t.Errorf("kustomize builds something else (-plain +kustomize):\n%s", diff)
				}
			})
		}
	}
}

// The component fits a kustomization that has the workload already, also where pack was not shown it.
func TestKustomizeComponentForAWorkloadThatIsThere(t *testing.T) {
	t.Parallel()
	k := newKubectl(t, controlplane.Shared(t).AdminConfig(), "")
	dir := t.TempDir()
	if _, stderr, code := sidecar(t, nil, "pack", "--app", "shop", "-n", "apps", "--jobs", exampleJobs, "--out", filepath.Join(dir, "leasecron")); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	write(t, filepath.Join(dir, "deployment.yaml"), read(t, exampleWorkload))
	write(t, filepath.Join(dir, "kustomization.yaml"), []byte("namespace: apps\nresources: [deployment.yaml]\ncomponents: [leasecron/component]\n"))
	built := byName(t, k.run(nil, "kustomize", dir))
	want, stderr, code := sidecar(t, nil, "pack", "--deployment", exampleWorkload, "-n", "apps", "--jobs", exampleJobs)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if diff := cmp.Diff(byName(t, want), built); diff != "" {
		t.Errorf("-plain +kustomize:\n%s", diff)
	}
}
