package pack_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/test/controlplane"
)

// TestRecipeForFilesAndSockets: the kustomization of docs/pack.md brings the mounts into the packed container, and nothing of it is
// lost; and what was added by hand to an injected file stays when it is packed.
func TestRecipeForFilesAndSockets(t *testing.T) {
	t.Parallel()
	_, recipe, ok := strings.Cut(string(read(t, "../../docs/pack.md")), "```yaml\n# kustomization.yaml\n")
	recipe, _, closed := strings.Cut(recipe, "```\n")
	if !ok || !closed {
		t.Fatal("no recipe in docs/pack.md")
	}
	k := newKubectl(t, controlplane.Shared(t).AdminConfig(), "")
	dir := t.TempDir()
	args := []string{
		"pack", "--deployment", exampleWorkload, "-n", "prod", "--jobs", exampleJobs, "--image", "leasecron:v1",
		"--set", "SIGNING_SECRET_FILES=/etc/leasecron/signing/secret", "--target", "unix:///run/shop/app.sock",
	}
	_, stderr, code := sidecar(t, nil, append(args, "--out", filepath.Join(dir, "leasecron"))...)
	if code != 0 || strings.Count(stderr, "where no volume is mounted") != 2 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	write(t, filepath.Join(dir, "deployment.yaml"), read(t, exampleWorkload))
	write(t, filepath.Join(dir, "kustomization.yaml"), []byte(recipe))
	built := k.run(nil, "kustomize", dir)
	deployment, err := json.Marshal(byName(t, built)["prod/Deployment shop"])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"volumeMounts":[{"mountPath":"/etc/leasecron/signing","name":"signing","readOnly":true},{"mountPath":"/run/shop","name":"socket"}]`,
		`"volumeMounts":[{"mountPath":"/run/shop","name":"socket"}]`,
		`{"name":"signing","secret":{"defaultMode":292,"secretName":"shop-signing"}}`,
		`"args":["run"]`, `"restartPolicy":"Always"`, `"image":"leasecron:v1"`,
	} {
		if !strings.Contains(string(deployment), part) {
			t.Errorf("no %s in %s", part, deployment)
		}
	}

	// The second way: the mounts are in the file that is packed.
	path := filepath.Join(dir, "injected.yaml")
	write(t, path, []byte(built[strings.Index(built, "apiVersion: apps/v1\n"):]))
	again, stderr, code := sidecar(t, nil, append(args, "--deployment", path)...)
	if code != 0 || strings.Contains(stderr, "no volume is mounted") || !strings.Contains(again, "mountPath: /etc/leasecron/signing") {
		t.Errorf("packed again: exit code %d, %s\n%s", code, stderr, again)
	}
}
