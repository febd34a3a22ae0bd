package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/app"
)

const twoScopes = `
jobs:
  - {name: shared, path: /jobs/shared, schedule: "0 3 1 1 *"}
  - {name: own, path: /jobs/own, schedule: "0 3 1 1 *", scope: instance}
`

// Two engines answer as one: each step says what is paused after it.
func TestPausesReachTheEngineThatHasTheJob(t *testing.T) {
	base := start(t, twoScopes)
	waitFor(t, "both jobs", func() bool { return len(paused(t, base)) == 2 })
	steps := []struct {
		path   string
		status int
		want   map[string]bool
	}{
		{"/v1/jobs/shared/pause", 200, map[string]bool{"shared": true, "own": false}},
		{"/v1/jobs/shared/resume", 204, map[string]bool{"shared": false, "own": false}},
		{"/v1/jobs/own/pause", 200, map[string]bool{"shared": false, "own": true}},
		{"/v1/jobs/own/resume", 204, map[string]bool{"shared": false, "own": false}},
		{"/v1/pause", 200, map[string]bool{"shared": true, "own": true}},
		{"/v1/resume", 204, map[string]bool{"shared": false, "own": false}},
		{"/v1/jobs/neither/pause", 404, map[string]bool{"shared": false, "own": false}},
		{"/v1/jobs/own/triggers/neither/resume", 404, map[string]bool{"shared": false, "own": false}},
	}
	for _, step := range steps {
		if status, body := request(t, http.MethodPost, base+step.path); status != step.status {
			t.Fatalf("POST %s = %d, want %d\n%s", step.path, status, step.status, body)
		}
		// What is shown follows the ledger by a moment.
		waitFor(t, fmt.Sprintf("%v paused after %s", step.want, step.path), func() bool {
			return cmp.Equal(step.want, paused(t, base))
		})
	}
}

// Everything is paused: that is told, and is no reason to be unready.
func TestAPauseOfEverythingIsTold(t *testing.T) {
	base := start(t, twoScopes)
	waitFor(t, "both jobs", func() bool { return len(paused(t, base)) == 2 })
	tells := func(path string) bool {
		status, body := request(t, http.MethodGet, base+path)
		if status != http.StatusOK {
			t.Fatalf("GET %s = %d\n%s", path, status, body)
		}
		return strings.Contains(body, "every job is paused since ") || strings.Contains(body, `"pausedBy":{"by":"everything"`)
	}
	for _, step := range []struct {
		path   string
		status int
		want   bool
	}{
		{"/v1/resume", 204, false}, {"/v1/pause", 200, true}, {"/v1/jobs/shared/resume", 200, true}, {"/v1/jobs/own/resume", 200, true}, {"/v1/resume", 204, false},
	} {
		if status, body := request(t, http.MethodPost, base+step.path); status != step.status {
			t.Fatalf("POST %s = %d, want %d\n%s", step.path, status, step.status, body)
		}
		for _, path := range []string{"/readyz?verbose", "/v1/info"} {
			waitFor(t, fmt.Sprintf("%s after %s: told %v", path, step.path, step.want), func() bool { return tells(path) == step.want })
		}
	}
}

// Nobody has led yet, since the app does not answer: each answer says so.
func TestBeforeTheFirstLeaderTheAnswerSaysWhyThereIsNone(t *testing.T) {
	base := startAt(t, twoScopes, "http://127.0.0.1:1")
	for _, step := range []struct{ method, path string }{
		{http.MethodGet, "/v1/jobs"},
		{http.MethodPost, "/v1/jobs/shared/enqueue"},
		{http.MethodPost, "/v1/jobs/shared/pause"},
		{http.MethodPost, "/v1/jobs/shared/resume"},
	} {
		waitFor(t, step.path+" saying why", func() bool {
			status, body := request(t, step.method, base+step.path)
			return status == http.StatusServiceUnavailable && strings.Contains(body, "no leader has taken note of") &&
				strings.Contains(body, "nobody leads: ") && strings.Contains(body, "127.0.0.1:1")
		})
	}
	if status, body := request(t, http.MethodPost, base+"/v1/jobs/neither/pause"); status != http.StatusNotFound {
		t.Errorf("pause of a job that is not defined = %d, want 404\n%s", status, body)
	}
}

// start runs a sidecar, standalone, beside an app that does nothing, and returns where its API is.
func start(t *testing.T, jobs string) string {
	t.Helper()
	return startBeside(t, jobs, func(http.ResponseWriter, *http.Request) {})
}

// startBeside is start with an app that answers as it is told.
func startBeside(t *testing.T, jobs string, answer http.HandlerFunc) string {
	t.Helper()
	target := httptest.NewServer(answer)
	t.Cleanup(target.Close)
	return startAt(t, jobs, target.URL)
}

// startAt is start with an app at that address.
func startAt(t *testing.T, jobs, target string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := config.LoadSettings(map[string]string{
		"LEASECRON_ELECTION": "standalone", "LEASECRON_LEDGER": "memory", "LEASECRON_JOBS_FILE": file,
		"LEASECRON_TARGET": target, "LEASECRON_LISTEN": "127.0.0.1:0", "LEASECRON_API_LISTEN": "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := app.New(t.Context(), settings, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- sidecar.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
	})
	return "http://" + sidecar.APIAddress()
}

// paused says of each job whether it is paused, nil while nobody knows the jobs.
func paused(t *testing.T, base string) map[string]bool {
	t.Helper()
	status, body := request(t, http.MethodGet, base+"/v1/jobs")
	if status != http.StatusOK {
		return nil
	}
	var list struct {
		Jobs []struct {
			Name   string
			Paused bool
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, j := range list.Jobs {
		out[j.Name] = j.Paused
	}
	return out
}

func request(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 20 s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
