package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// A drain finishes what every replica runs for itself, too, and takes nothing on of that any more;
// what other replicas could run is still written down for them.
func TestDrainOfAStandaloneSidecar(t *testing.T) {
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	base := startBeside(t, twoScopes, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			arrived <- struct{}{}
			<-release
		}
	})
	waitFor(t, "both jobs", func() bool { return len(paused(t, base)) == 2 })
	for _, job := range []string{"own", "shared"} {
		if status, body := request(t, http.MethodPost, base+"/v1/jobs/"+job+"/enqueue"); status != http.StatusAccepted {
			t.Fatalf("enqueue %s = %d\n%s", job, status, body)
		}
		<-arrived
	}
	steps := []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/drain", 200, `"state":"serving"`},
		{"GET", "/leader?require=self", 200, `"isLeader":true`},
		{"POST", "/drain?wait=0s", 202, `"runs":2`},
		{"release", "", 0, ""},
		{"POST", "/drain", 200, `"state":"drained"`},
		{"POST", "/drain", 200, `"lost":0`},
		{"GET", "/drain", 200, `"runs":0`},
		{"GET", "/leader?require=self", 503, `"draining":true`},
		{"GET", "/readyz", 200, "ok"},
		{"GET", "/livez", 200, "ok"},
		{"GET", "/readyz?verbose", 200, "[!]drain: drained at"},
		{"GET", "/readyz?verbose", 200, "does not lead again until it is restarted"},
		{"POST", "/v1/jobs/own/enqueue", 503, "this sidecar is drained"},
		{"POST", "/v1/jobs/shared/enqueue", 202, `"state":"Queued"`},
	}
	for _, step := range steps {
		if step.method == "release" {
			close(release)
			continue
		}
		status, body := request(t, step.method, base+step.path)
		if status != step.status || !strings.Contains(body, step.has) {
			t.Errorf("%s %s = %d, want %d and %q\n%s", step.method, step.path, status, step.status, step.has, body)
		}
	}
	select {
	case <-arrived:
		t.Error("a drained sidecar called the app")
	default:
	}
}
