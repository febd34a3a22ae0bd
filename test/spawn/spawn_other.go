//go:build !linux

// Package spawn starts the processes of tests.
package spawn

import "os/exec"

// Start starts cmd. Only Linux can tie a child's life to ours: elsewhere a test binary that
// is killed leaves what it started behind.
func Start(cmd *exec.Cmd) error { return cmd.Start() }

// WaitStopped cannot tell when a SIGSTOP has been obeyed here.
func WaitStopped(int) error { return nil }
