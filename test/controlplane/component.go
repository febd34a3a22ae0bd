package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/spawn"
)

const (
	// readyTimeout is generous: a loaded two-core machine is the normal case in CI.
	readyTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
	pollInterval = 50 * time.Millisecond
)

// Component is one process of a control plane: etcd or kube-apiserver. Its methods may be
// called from several goroutines; they fail the test at once when they cannot do what they
// say. Those of a shared control plane always fail: other tests live there.
type Component struct {
	name    string
	path    string
	args    []string
	logFile string
	ready   func(context.Context) error

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended; nil before the first start
}

// Stop ends the component with SIGTERM and waits for its end.
func (c *Component) Stop(t testing.TB) {
	t.Helper()
	c.must(t, c.End(syscall.SIGTERM))
}

// Kill ends the component with SIGKILL.
func (c *Component) Kill(t testing.TB) {
	t.Helper()
	c.must(t, c.End(syscall.SIGKILL))
}

// Start runs a component that was stopped or killed again, on the same address and with
// the same data, and returns when it is ready.
func (c *Component) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	c.must(t, c.Up(ctx))
}

// Restart is Stop followed by Start.
func (c *Component) Restart(t testing.TB) {
	t.Helper()
	c.Stop(t)
	c.Start(t)
}

// Pause freezes the component with SIGSTOP: connections stay open and nothing answers. It
// returns when the component stands still.
func (c *Component) Pause(t testing.TB) {
	t.Helper()
	c.must(t, c.Signal(syscall.SIGSTOP))
}

// Resume lets a paused component go on.
func (c *Component) Resume(t testing.TB) {
	t.Helper()
	c.must(t, c.Signal(syscall.SIGCONT))
}

// PID is the component's process, 0 while it is not running.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return 0
	}
	return c.cmd.Process.Pid
}

func (c *Component) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("control plane: %v", err)
	}
}

var errShared = errors.New("the control plane is shared with other tests: use controlplane.Start to break one")

// Up is Start for those who have no test to fail.
func (c *Component) Up(ctx context.Context) error {
	if err := c.start(); err != nil {
		return err
	}
	return c.waitReady(ctx)
}

func (c *Component) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return errShared
	}
	if c.running() {
		return fmt.Errorf("%s is running already", c.name)
	}
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(c.path, c.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	exited := make(chan struct{})
	c.cmd, c.exited = cmd, exited
	go func() {
		// How it ended is in its log; that it ended is what callers wait for.
		_ = cmd.Wait()
		close(exited)
	}()
	return nil
}

// waitReady returns when the component answers, and early when it dies.
func (c *Component) waitReady(ctx context.Context) error {
	c.mu.Lock()
	exited := c.exited
	c.mu.Unlock()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%s ended while it was starting; its log ends:\n%s", c.name, c.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; its log ends:\n%s", c.name, err, c.logTail())
		case <-tick.C:
		}
	}
}

// End sends sig, which must end the process, and waits until it has. A component that is
// not running is left alone. It is Stop and Kill for those who have no test to fail.
func (c *Component) End(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return errShared
	}
	if !c.running() {
		return nil
	}
	if err := c.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	if sig != syscall.SIGKILL {
		// A paused process acts on SIGTERM only once it goes on.
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
	}
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-c.exited:
		return nil
	case <-timeout.C:
		return fmt.Errorf("%s did not end within %s of %s; its log ends:\n%s", c.name, stopTimeout, sig, c.logTail())
	}
}

// Signal sends a signal to the process; after a SIGSTOP it returns when that was obeyed. It is
// Pause and Resume for those who have no test to fail.
func (c *Component) Signal(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return errShared
	}
	if !c.running() {
		return fmt.Errorf("%s is not running", c.name)
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		return err
	}
	if sig == syscall.SIGSTOP {
		return spawn.WaitStopped(c.cmd.Process.Pid)
	}
	return nil
}

// running must be called with mu held.
func (c *Component) running() bool {
	if c.exited == nil {
		return false
	}
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// logTail is the end of the component's log, for error messages.
func (c *Component) logTail() []byte {
	const size = 4 << 10
	log, err := os.ReadFile(c.logFile)
	if err != nil {
		return []byte(err.Error())
	}
	if len(log) > size {
		log = log[len(log)-size:]
		if i := bytes.IndexByte(log, '\n'); i >= 0 {
			log = log[i+1:]
		}
	}
	return log
}
