package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/callback"
)

const body = `{"id":"r","occurrence":"0123456789abcdef","job":"hello","trigger":"default","scheduledAt":"2026-10-04T22:00:00Z","attempt":1,"data":{"a":1}}`

func post(t *testing.T, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestCallbacksArePrinted(t *testing.T) {
	var out bytes.Buffer
	server := httptest.NewServer(newApp(t.Context(), &out, nil))
	defer server.Close()

	steps := []struct {
		does       string
		path, body string
		want       int
		prints     string
	}{
		{"a callback succeeds", "/jobs/hello", body, http.StatusOK, "attempt 1, token none, occurrence 01234567…, data {\"a\":1}: done"},
		{"the first attempt of a flaky job fails", "/jobs/flaky", body, http.StatusServiceUnavailable, "answers 503"},
		{"the second succeeds", "/jobs/flaky", body, http.StatusOK, "done"},
		{"a further attempt is not called late", "/jobs/hello", strings.Replace(body, `"attempt":1`, `"attempt":2`, 1), http.StatusOK, "s, attempt 2"},
		{"what is no callback is refused", "/jobs/hello", "hello", http.StatusBadRequest, ""},
		{"what is no job is not found", "/elsewhere", body, http.StatusNotFound, ""},
	}
	for _, step := range steps {
		out.Reset()
		if got := post(t, server.URL+step.path, step.body); got != step.want {
			t.Errorf("%s: status %d, want %d", step.does, got, step.want)
		}
		if !strings.Contains(out.String(), step.prints) {
			t.Errorf("%s: printed %q, want it to contain %q", step.does, out.String(), step.prints)
		}
	}
}

func TestStopsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "", in) }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "app: listening on http://127.0.0.1:") {
		t.Fatalf("first line %q, %v", line, err)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("run() = %v, want nil", err)
		}
	case <-time.After(2 * time.Second):
		t.Error("still running after 2 s")
	}
}

// The sidecar's side of what package callback asks is played by a server that writes it down.
func TestSlowWorkIsEndedLater(t *testing.T) {
	type request struct{ path, body string }
	asked := make(chan request, 100)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- request{r.URL.Path, string(body)}
		_, _ = io.WriteString(w, `{"state":"Running"}`)
	}))
	defer api.Close()
	sidecar, err := callback.NewSidecar(api.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	a := newApp(t.Context(), &out, sidecar)
	a.step = time.Millisecond
	server := httptest.NewServer(a)
	defer server.Close()
	const id = "0192f1c2a7b97c3e8d5f6a7b8c9d0e1f"
	if got := post(t, server.URL+"/jobs/archive", strings.Replace(body, `"id":"r"`, `"id":"`+id+`"`, 1)); got != http.StatusAccepted {
		t.Errorf("status %d, want %d", got, http.StatusAccepted)
	}
	next := func() (r request) {
		select {
		case r = <-asked:
		case <-time.After(5 * time.Second):
			t.Fatalf("nothing more is asked; printed %s", out.text())
		}
		return r
	}
	for i := range steps {
		if r := next(); r.path != "/v1/runs/"+id+"/heartbeat" || !strings.Contains(r.body, "of 8 boxes") {
			t.Errorf("request %d: %s %s, want a heartbeat with progress", i, r.path, r.body)
		}
	}
	if r := next(); r.path != "/v1/runs/"+id+"/complete" || !strings.Contains(r.body, "8 boxes archived") {
		t.Errorf("last request: %s %s, want the completion", r.path, r.body)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}
