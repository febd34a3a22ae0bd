// Command testapp runs the scripted test app as a process of its own.
//
// It prints one JSON line with its address, appends each request that arrives to the file named
// by -log as one JSON line (before it answers), and ends on SIGTERM or an interrupt. Paths that
// start with /sleep/<duration>, /status/<code>, /close, /reset or /never behave as they say;
// all others answer -status after -delay.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/test/app"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "testapp:", err)
		os.Exit(1)
	}
}

func serve() error {
	listen := flag.String("listen", "127.0.0.1:0", "loopback address to listen at")
	logPath := flag.String("log", "", "file to which each arrival is appended as a JSON line")
	status := flag.Int("status", http.StatusOK, "status of the answer")
	delay := flag.Duration("delay", 0, "time before the answer")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	record := func(app.Call) {}
	if *logPath != "" {
		f, err := os.OpenFile(*logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		record = appendLines(f)
	}
	a, err := app.Start(app.Options{Address: *listen, OnCall: record, Keep: -1})
	if err != nil {
		return err
	}
	defer a.Close()
	a.Script("*", byPath(app.After(*delay, app.Status(*status))))

	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"address": a.Address(), "url": a.URL()}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// appendLines writes each call in one write, so that lines of a killed process are whole.
func appendLines(f *os.File) func(app.Call) {
	var mu sync.Mutex
	return func(c app.Call) {
		line, err := json.Marshal(c)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testapp:", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := f.Write(append(line, '\n')); err != nil {
			fmt.Fprintln(os.Stderr, "testapp:", err)
		}
	}
}

// byPath picks the behaviour that the path names.
func byPath(otherwise app.Behavior) app.Behavior {
	return func(a *app.App, w http.ResponseWriter, r *http.Request) {
		kind, arg, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		behave := otherwise
		switch kind {
		case "sleep":
			if d, err := time.ParseDuration(arg); err == nil {
				behave = app.After(d, app.Status(http.StatusOK))
			}
		case "status":
			if code, err := strconv.Atoi(arg); err == nil && code >= 200 && code <= 599 {
				behave = app.Status(code)
			}
		case "close":
			behave = app.ReadThenClose()
		case "reset":
			behave = app.Reset()
		case "never":
			behave = app.Never()
		}
		behave(a, w, r)
	}
}
