package controlplane

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawn starts cmd so that the kernel kills it when this process ends, by whatever cause.
// The kernel watches the *thread* that started the child, so all children are started from
// one goroutine that never gives its thread back.
func spawn(cmd *exec.Cmd) error {
	// A group of its own: Ctrl-C on a terminal reaches us, and we end the children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	spawner() <- spawnRequest{cmd: cmd, done: done}
	return <-done
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.done <- r.cmd.Start()
		}
	}()
	return requests
})

// waitStopped returns when all threads of a child have stopped: a SIGSTOP that was sent is not
// yet one that has been obeyed.
func waitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
