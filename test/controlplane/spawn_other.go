//go:build !linux

package controlplane

import "os/exec"

// spawn starts cmd. Only Linux can tie a child's life to ours: elsewhere a test binary that
// is killed leaves its control plane behind.
func spawn(cmd *exec.Cmd) error { return cmd.Start() }

// waitStopped cannot tell when a SIGSTOP has been obeyed here.
func waitStopped(int) error { return nil }
