package controlplane

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Env names the environment variable with the folder of a running control plane that
// Shared uses.
const Env = "CONTROLPLANE_STATE"

// Start starts a control plane for one test, which may break it, and ends it with the test.
func Start(t testing.TB) *ControlPlane {
	t.Helper()
	cp, err := New(t.Context(), os.Stderr)
	if err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := cp.Close(); err != nil {
			t.Errorf("end the control plane: %v", err)
		}
	})
	return cp
}

// Shared returns the control plane that all tests of the package use, in namespaces of their
// own: the one that Env names, or one that is started when it is first asked for. The package
// needs a TestMain that calls Main, to end it.
func Shared(t testing.TB) *ControlPlane {
	t.Helper()
	cp, err := shared.get()
	if err != nil {
		t.Fatalf("shared control plane: %v", err)
	}
	return cp
}

// Main is the body of a TestMain: it runs the tests, ends the control plane that Shared
// started, if it did, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintf(os.Stderr, "end the shared control plane: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var shared sharedControlPlane

type sharedControlPlane struct {
	once  sync.Once
	owned *ControlPlane // what this process started and has to end; nil with Env
	cp    *ControlPlane // the same, with components that refuse to be stopped
	err   error
}

func (s *sharedControlPlane) get() (*ControlPlane, error) {
	s.once.Do(func() {
		if dir := os.Getenv(Env); dir != "" {
			if s.cp, s.err = attach(dir); s.err != nil {
				s.err = fmt.Errorf("%s=%s: %w", Env, dir, s.err)
			}
			return
		}
		// Not the test's context: it must outlive the test that happens to come first.
		if s.owned, s.err = New(context.Background(), os.Stderr); s.err == nil {
			s.cp, s.err = attach(s.owned.dir)
		}
	})
	return s.cp, s.err
}

func (s *sharedControlPlane) close() error {
	if s.owned == nil {
		return nil
	}
	return s.owned.Close()
}
