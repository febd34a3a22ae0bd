package pack_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// kubectl is the real one, with one access.
type kubectl struct {
	t          *testing.T
	path       string
	kubeconfig string
	home       string // its caches end with the test
}

// newKubectl returns kubectl as somebody, in a namespace. The first call ever builds it.
func newKubectl(t *testing.T, cfg *rest.Config, namespace string) *kubectl {
	t.Helper()
	dir, err := controlplane.Build(t.Context(), os.Stderr, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	return &kubectl{
		t: t, path: filepath.Join(dir, "kubectl"), home: t.TempDir(),
		kubeconfig: controlplane.WriteKubeconfig(t, cfg, namespace),
	}
}

// try runs kubectl.
func (k *kubectl) try(stdin []byte, args ...string) (stdout, stderr string, err error) {
	k.t.Helper()
	return execute(k.t, k.path, []string{"HOME=" + k.home, "KUBECONFIG=" + k.kubeconfig}, stdin, args...)
}

// run is try for what has to succeed, and to say nothing on stderr: no warning, above all.
func (k *kubectl) run(stdin []byte, args ...string) string {
	k.t.Helper()
	stdout, stderr, err := k.try(stdin, args...)
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s\ninput:\n%s", strings.Join(args, " "), err, stderr, stdin)
	}
	if stderr != "" {
		k.t.Errorf("kubectl %s warns:\n%s", strings.Join(args, " "), stderr)
	}
	return stdout
}

// sidecar runs a command of the real program.
func sidecar(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, err := execute(t, cluster.Program(), nil, stdin, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return stdout, stderr, exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("sidecar %s: %v", strings.Join(args, " "), err)
	}
	return stdout, stderr, 0
}

func execute(t *testing.T, program string, env []string, stdin []byte, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}
