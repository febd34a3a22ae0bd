// Command sidecar is leasecron: a cron sidecar for Kubernetes. See sidecar help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/leasecron/leasecron/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := cli.Main(ctx, os.Args[1:], os.Environ(), cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
