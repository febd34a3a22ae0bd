package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
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
	server := httptest.NewServer(newApp(&out))
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
	go func() { ended <- run(ctx, "127.0.0.1:0", in) }()
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
