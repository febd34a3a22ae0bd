package pack_test

import (
	"testing"
)

// TestExampleIsCurrent: examples/kubernetes/packed is what pack makes of the files beside it. To write it anew:
//
//	go test ./test/pack -run Example -update
func TestExampleIsCurrent(t *testing.T) {
	args := []string{
		"pack", "--deployment", exampleWorkload, "--jobs", exampleJobs, "-n", "shop", "--with", "pdb,networkpolicy",
		"--image", "leasecron:latest", "--out", "../../examples/kubernetes/packed",
	}
	if *update {
		if _, stderr, code := sidecar(t, nil, args...); code != 0 {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
	}
	if out, stderr, code := sidecar(t, nil, append(args, "--check")...); code != 0 {
		t.Errorf("examples/kubernetes/packed is not current (go test ./test/pack -run Example -update writes it):\n%s%s", out, stderr)
	}
}
