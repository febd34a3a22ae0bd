// Command app is an example application: it receives the callbacks of a leasecron sidecar and
// prints each as one line. An app in any language does the same: answer POST with 2xx when the
// work is done.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/callback"
)

// callbackBody is the part of the request's body that this app looks at.
type callbackBody struct {
	ID          string          `json:"id"`
	Occurrence  string          `json:"occurrence"`
	Job         string          `json:"job"`
	Trigger     *string         `json:"trigger"` // null for a run that was asked for by hand
	ScheduledAt time.Time       `json:"scheduledAt"`
	Attempt     int             `json:"attempt"`
	Data        json.RawMessage `json:"data"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on")
	api := flag.String("sidecar", callback.DefaultSidecar, "`URL` of the sidecar's API, for what is answered before it is done")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *api, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example app:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then stops at once: an example has no work worth waiting for.
func run(ctx context.Context, address, api string, out io.Writer) error {
	sidecar, err := callback.NewSidecar(api, nil)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newApp(ctx, out, sidecar), ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintf(out, "app: listening on http://%s\n", listener.Addr())

	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// app prints callbacks. Flaky ones fail the first time, so that a retry can be seen; slow ones are
// accepted at once and end later.
type app struct {
	out     io.Writer
	ctx     context.Context //nolint:containedctx // the life of the app, and of what it works on
	sidecar *callback.Sidecar
	step    time.Duration // how long a step of slow work takes

	mu     sync.Mutex
	failed map[string]bool // occurrences that have failed once
}

func newApp(ctx context.Context, out io.Writer, sidecar *callback.Sidecar) *app {
	return &app{ctx: ctx, out: out, sidecar: sidecar, step: time.Second, failed: make(map[string]bool)}
}

// ServeHTTP routes callbacks by their path.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /jobs/flaky", a.flaky)
	mux.HandleFunc("POST /jobs/archive", a.archive)
	mux.HandleFunc("POST /jobs/{name...}", a.done)
	mux.ServeHTTP(w, r)
}

// done answers 200: the sidecar keeps the body as the run's message.
func (a *app) done(w http.ResponseWriter, r *http.Request) {
	if c, ok := a.read(w, r); ok {
		a.print(c, r, "done")
		fmt.Fprintf(w, "%s is done\n", c.Job)
	}
}

// flaky answers 503 to the first attempt of each occurrence. The occurrence stays the same over
// all attempts: it is what an app remembers in order to do the work once.
func (a *app) flaky(w http.ResponseWriter, r *http.Request) {
	c, ok := a.read(w, r)
	if !ok {
		return
	}
	a.mu.Lock()
	first := !a.failed[c.Occurrence]
	if first {
		a.failed[c.Occurrence] = true
	} else {
		delete(a.failed, c.Occurrence)
	}
	a.mu.Unlock()
	if first {
		a.print(c, r, "answers 503, a retry will follow")
		http.Error(w, "not this time", http.StatusServiceUnavailable)
		return
	}
	a.print(c, r, "done")
	fmt.Fprintf(w, "%s is done\n", c.Job)
}

// archive takes longer than a connection should stay open: it answers 202, goes on without the
// request, and tells its own sidecar how far it is and when it is done. Package callback has a handler
// that does all of this; here are the steps.
func (a *app) archive(w http.ResponseWriter, r *http.Request) {
	c, ok := a.read(w, r)
	if !ok {
		return
	}
	a.print(c, r, "accepted")
	w.WriteHeader(http.StatusAccepted)
	go a.work(c, r.Header)
}

const steps = 8

func (a *app) work(c callbackBody, header http.Header) {
	for i := range steps {
		select {
		case <-time.After(a.step):
		case <-a.ctx.Done():
			return
		}
		said := callback.Progress{Percent: 100 * (i + 1) / steps, Message: fmt.Sprintf("%d of %d boxes", i+1, steps)}
		if _, err := a.sidecar.Heartbeat(a.ctx, c.ID, &said); errors.Is(err, callback.ErrRunOver) {
			a.report(c, header, "stopped: "+err.Error())
			return
		}
	}
	if err := a.sidecar.Complete(a.ctx, c.ID, fmt.Sprintf("%d boxes archived", steps)); err != nil {
		a.report(c, header, "done, but "+err.Error())
		return
	}
	a.report(c, header, "done")
}

func (a *app) read(w http.ResponseWriter, r *http.Request) (callbackBody, bool) {
	var c callbackBody
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&c); err != nil {
		http.Error(w, "the body is no callback: "+err.Error(), http.StatusBadRequest)
		return c, false
	}
	return c, true
}

func (a *app) print(c callbackBody, r *http.Request, result string) { a.report(c, r.Header, result) }

func (a *app) report(c callbackBody, header http.Header, result string) {
	name := c.Job
	if c.Trigger != nil {
		name += "/" + *c.Trigger
	}
	token := header.Get("Leasecron-Fencing-Token")
	if token == "" {
		token = "none"
	}
	data := ""
	if len(c.Data) > 0 && string(c.Data) != "null" {
		data = fmt.Sprintf(", data %s", c.Data)
	}
	line := fmt.Sprintf("app: %-20s scheduled %s, %s, attempt %d, token %s, occurrence %.8s…%s: %s\n",
		name, c.ScheduledAt.Local().Format("15:04:05.000"), since(c), c.Attempt, token, c.Occurrence, data, result)
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = io.WriteString(a.out, line)
}

// since says how long after its instant a callback came. Only a first attempt is late by that: a
// further one was meant to come later.
func since(c callbackBody) string {
	passed := time.Since(c.ScheduledAt)
	if c.Attempt > 1 {
		return "after " + passed.Round(time.Second).String()
	}
	return passed.Round(time.Millisecond).String() + " late"
}
