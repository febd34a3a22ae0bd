package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leasecron/leasecron/test/controlplane"
)

// Main is the body of a TestMain: it builds the sidecar anew, runs the tests, and ends the control
// plane that they share.
func Main(m *testing.M) {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controlplane.Main(m)
}

// program is what [Main] has built. Each test program has its own, because several run at once.
var program string

// Program is the path of the sidecar's program that [Main] has built.
func Program() string { return program }

func build() error {
	root, err := root()
	if err != nil {
		return err
	}
	program = filepath.Join(root, "bin", "test", filepath.Base(os.Args[0]), "sidecar")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", program, "./cmd/sidecar")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the sidecar: %w\n%s", err, out)
	}
	return nil
}

// root is the repository's folder, wherever in it the test program was started.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "sidecar")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cmd/sidecar is in no folder above %s: start the tests inside the repository", dir)
		}
	}
}
