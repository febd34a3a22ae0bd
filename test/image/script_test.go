package image_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMakeImageSaysWhatToDoWithoutAnEngine(t *testing.T) {
	const works, daemonless, failing = "exit 0", "exit 1", `[ "$1" = info ]`
	tests := map[string]struct {
		engines map[string]string // what each does
		built   string            // with which; empty: with none
		says    []string
	}{
		"no engine":                   {nil, "", []string{"needs docker, podman or buildah", "make image-tar"}},
		"docker without its daemon":   {map[string]string{"docker": daemonless}, "", []string{"docker does not work here ('docker info' says why", "make image-tar"}},
		"none of two works":           {map[string]string{"docker": daemonless, "podman": daemonless}, "", []string{"docker, podman does not work here ('docker info'", "make image-tar"}},
		"another engine works":        {map[string]string{"docker": daemonless, "buildah": works}, "buildah", []string{"docker does not work here, so buildah builds"}},
		"docker works":                {map[string]string{"docker": works, "podman": failing}, "docker", nil},
		"an engine that cannot build": {map[string]string{"podman": failing}, "", []string{"podman build failed", "make image-tar"}},
		"nobody else is asked then":   {map[string]string{"docker": failing, "podman": works}, "", []string{"docker build failed", "make image-tar"}},
	}
	dirname, err := exec.LookPath("dirname")
	if err != nil {
		t.Fatal("scripts/image.sh needs dirname:", err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("scripts/image.sh needs bash:", err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(dirname, filepath.Join(dir, "dirname")); err != nil {
				t.Fatal(err)
			}
			for engine, does := range tt.engines {
				if err := os.WriteFile(filepath.Join(dir, engine), []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), bash, "../../scripts/image.sh", "leasecron:x", "x", "y")
			cmd.Env = []string{"PATH=" + dir}
			out, err := cmd.CombinedOutput()
			if (err == nil) != (tt.built != "") {
				t.Errorf("it ended with %v, want built with %q", err, tt.built)
			}
			if tt.built != "" && !strings.Contains(string(out), "built leasecron:x with "+tt.built) {
				t.Errorf("want it built with %s", tt.built)
			}
			for _, want := range tt.says {
				if !strings.Contains(string(out), want) {
					t.Errorf("want %q", want)
				}
			}
			if t.Failed() {
				t.Logf("it says:\n%s", out)
			}
		})
	}
}
