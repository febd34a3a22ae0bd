package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
)

func post(t *testing.T, url, body string) (status int, text string, err error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

func TestScriptAnswersInOrderAndTheLastStays(t *testing.T) {
	a, err := app.Start(app.Options{Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Script("/x", app.Status(500), app.Reply(202, "ok"), app.ReadThenClose())
	a.Script("*", app.Status(404))

	for i, want := range []int{500, 202, 0, 0} {
		if got, _, err := post(t, a.URL()+"/x", "{}"); got != want || (err != nil) != (want == 0) {
			t.Errorf("answer %d = %d, %v, want %d", i, got, err, want)
		}
	}
	if got, _, _ := post(t, a.URL()+"/y?z=1", `{"id":"a","attempt":2}`); got != 404 {
		t.Errorf("answer of another path = %d, want 404", got)
	}
	calls, err := a.WaitFor(5, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	last := calls[4]
	if last.Path != "/y?z=1" || last.Body.ID != "a" || last.Body.Attempt != 2 {
		t.Errorf("last call = %+v", last)
	}
	if !strings.HasPrefix(last.Raw, "POST /y?z=1 HTTP/1.1\r\n") || !strings.HasSuffix(last.Raw, "\r\n\r\n"+last.Text) {
		t.Errorf("raw = %q", last.Raw)
	}
	if _, err := a.WaitFor(6, 10*time.Millisecond); err == nil {
		t.Error("WaitFor(6) succeeded after 5 calls")
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	a, err := app.Start(app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Script("/", app.Never())
	done := make(chan error, 1)
	go func() {
		_, _, err := post(t, a.URL()+"/", "{}")
		done <- err
	}()
	if _, err := a.WaitFor(1, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	a.Close()
	a.Close()
	if err := <-done; err == nil {
		t.Error("the request was answered")
	}
}

// TestDownIsTheEndOfAProcess: connections break, whoever waits gets no answer, new connections are
// refused, and later it is there again, at the same address.
func TestDownIsTheEndOfAProcess(t *testing.T) {
	address, err := app.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Start(app.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Script("/", app.After(time.Hour, app.Status(200)))
	waiting := make(chan error, 1)
	go func() {
		_, _, err := post(t, a.URL()+"/", "{}")
		waiting <- err
	}()
	if _, err := a.WaitFor(1, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if broken := a.Down(); broken != 1 {
		t.Errorf("%d connections broke, want 1", broken)
	}
	if err := <-waiting; err == nil || errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the request under way ended with %v, want a broken connection", err)
	}
	if broken := a.Down(); broken != 0 {
		t.Errorf("%d connections broke while it was down", broken)
	}
	if _, _, err := post(t, a.URL()+"/x", "{}"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while it is down: %v, want connection refused", err)
	}
	for range 2 { // the second time it is up already
		if err := a.Up(); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, err := post(t, a.URL()+"/x", "{}"); status != 200 || a.Address() != address {
		t.Errorf("up again at %s: status %d, %v; want 200 at %s", a.Address(), status, err, address)
	}
	if calls := a.Calls(); len(calls) != 2 {
		t.Errorf("%d calls are recorded, want 2", len(calls))
	}
	a.Close()
	if err := a.Up(); err != nil {
		t.Errorf("Up after Close: %v", err)
	}
	if _, _, err := post(t, a.URL()+"/x", "{}"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Close: %v, want connection refused", err)
	}
}

func TestCommandPrintsItsAddressAndLogsArrivals(t *testing.T) {
	dir := t.TempDir()
	binary, log := filepath.Join(dir, "testapp"), filepath.Join(dir, "log")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/testapp").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-log", log, "-status", "201")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var printed struct{ Address, URL string }
	if err := json.Unmarshal(line, &printed); err != nil || printed.URL != "http://"+printed.Address {
		t.Fatalf("printed %s: %v", line, err)
	}
	for path, want := range map[string]int{"/": 201, "/status/503": 503, "/sleep/1ms": 200} {
		if got, _, err := post(t, printed.URL+path, `{"id":"a"}`); got != want {
			t.Errorf("%s answered %d, %v, want %d", path, got, err, want)
		}
	}
	cancel()
	if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the command ended with %v", err)
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines logged, want 3:\n%s", len(lines), raw)
	}
	for _, line := range lines {
		var c app.Call
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Body.ID != "a" || c.At.IsZero() {
			t.Errorf("logged %s: %v", line, err)
		}
	}
}
