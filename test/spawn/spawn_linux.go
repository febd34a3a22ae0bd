// Package spawn starts the processes of tests so that none outlives the test, however that ends.
package spawn

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts cmd so that the kernel kills it when this process ends, by whatever cause.
// The kernel watches the *thread* that started the child, so all children are started from
// one goroutine that never gives its thread back.
func Start(cmd *exec.Cmd) error {
	// A group of its own: Ctrl-C on a terminal reaches us, and we end the children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	spawner() <- request{cmd: cmd, done: done}
	return <-done
}

type request struct {
	cmd  *exec.Cmd
	done chan<- error
}

var spawner = sync.OnceValue(func() chan<- request {
	requests := make(chan request)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.done <- r.cmd.Start()
		}
	}()
	return requests
})

// WaitStopped returns when all threads of a child have stopped: a SIGSTOP that was sent is not
// yet one that has been obeyed.
func WaitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
