// Command go is an example app that uses package callback: it checks signatures and fencing
// tokens, does each occurrence once, and has a job that is done when it answers (/jobs/report) and
// one that is done later (/jobs/import).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/callback"
)

// grace is how long work may take to end after SIGTERM.
const grace = 20 * time.Second

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	api := flag.String("sidecar", callback.DefaultSidecar, "`URL` of the sidecar's API")
	secrets := flag.String("secrets", "", "`files` with the signing secrets, separated by commas; empty: signatures are not checked")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *api, *secrets); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then lets work end in good order.
func run(ctx context.Context, listen, api, secrets string) error {
	options := callback.Options{
		// In memory, both: enough for an app with one replica. With more, keep them in the
		// database that the replicas share; the examples of package callback show how.
		Store: callback.NewMemoryStore(callback.MemoryOptions{}),
		Fence: callback.NewMemoryFence(),
	}
	var err error
	if secrets != "" {
		if options.Verifier, err = callback.NewFileVerifier(strings.Split(secrets, ",")...); err != nil {
			return err
		}
	}
	if options.Sidecar, err = callback.NewSidecar(api, nil); err != nil {
		return err
	}
	receiver := callback.NewReceiver(options)
	mux := http.NewServeMux()
	mux.Handle("POST /jobs/report", receiver.Handler(report))
	mux.Handle("POST /jobs/import", receiver.AsyncHandler(importFiles))

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(server.Shutdown(ending), receiver.Shutdown(ending))
}

// report is done when it returns: its message becomes that of the run.
func report(_ context.Context, run *callback.Run) (string, error) {
	var data struct {
		Format    string
		Account   int64
		FailTimes int
	}
	if err := run.Decode(&data); err != nil {
		return "", err
	}
	fmt.Printf("work report occurrence=%s attempt=%d\n", run.Occurrence, run.Attempt)
	if run.Attempt <= data.FailTimes {
		return "", errors.New("the printer is out of paper") // the sidecar tries again
	}
	return fmt.Sprintf("%s of account %d for %s", data.Format, data.Account, run.ScheduledAt.Format(time.RFC3339)), nil
}

// importFiles works after its callback was answered. Its context ends when the run was canceled
// or has timed out.
func importFiles(ctx context.Context, run *callback.Run) (string, error) {
	var data struct{ Files int }
	if err := run.Decode(&data); err != nil {
		return "", err
	}
	fmt.Printf("work import occurrence=%s attempt=%d\n", run.Occurrence, run.Attempt)
	for n := range data.Files {
		callback.ReportProgress(ctx, 100*n/data.Files, fmt.Sprintf("%d of %d files", n, data.Files))
		select {
		case <-time.After(500 * time.Millisecond): // the work on one file
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return fmt.Sprintf("%d files imported", data.Files), nil
}
