// Command controlplane builds the control plane that tests use, or runs a command with one:
//
//	controlplane build [component...]      etcd and kube-apiserver unless named; prints the folder
//	controlplane run [-- command arg...]   with CONTROLPLANE_STATE and KUBECONFIG set
//
// Without a command, run prints the two settings and waits for Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/test/controlplane"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(args) > 0 && args[0] == "build":
		err = build(ctx, args[1:])
	case len(args) > 0 && args[0] == "run":
		command := args[1:]
		if len(command) > 0 && command[0] == "--" {
			command = command[1:]
		}
		err = runWith(ctx, command)
	default:
		fmt.Fprintln(os.Stderr, "usage: controlplane build [component...] | run [-- command arg...]")
		return 2
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1) // -1 when a signal ended it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		return 1
	}
	return 0
}

func build(ctx context.Context, names []string) error {
	if len(names) == 0 {
		names = []string{"etcd", "kube-apiserver"}
	}
	dir, err := controlplane.Build(ctx, os.Stderr, names...)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}

func runWith(ctx context.Context, command []string) (err error) {
	cp, err := controlplane.New(ctx, os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Close()) }()
	env := []string{controlplane.Env + "=" + cp.Dir(), "KUBECONFIG=" + cp.Kubeconfig()}
	if len(command) == 0 {
		for _, setting := range env {
			fmt.Println("export", setting)
		}
		<-ctx.Done()
		return nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.Run()
}
