package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/api"
)

// playDrain answers each request with the next of these, and the last one for ever.
func playDrain(t *testing.T, answers ...api.DrainStatus) (address string) {
	t.Helper()
	next := make(chan api.DrainStatus, len(answers))
	for _, a := range answers {
		next <- a
	}
	last := answers[len(answers)-1]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/drain" {
			http.Error(w, "wrong request", http.StatusTeapot)
			return
		}
		answer := last
		select {
		case answer = <-next:
		default:
		}
		w.Header().Set("Content-Type", "application/json")
		if answer.State != api.DrainDrained {
			w.WriteHeader(http.StatusAccepted)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestDrainCommand(t *testing.T) {
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	draining := api.DrainStatus{State: api.DrainDraining, Since: began, Until: began.Add(25 * time.Second), Runs: 2}
	waiting, fewer, drained := draining, draining, draining
	waiting.HandedOverAt = began.Add(time.Millisecond)
	fewer.HandedOverAt, fewer.Runs = waiting.HandedOverAt, 1
	drained.State, drained.Runs, drained.EndedAt = api.DrainDrained, 0, began.Add(3*time.Second)
	lost, unrecorded := drained, drained
	lost.Lost = 2
	accepted := drained
	accepted.Runs = 1
	unrecorded.Runs, unrecorded.Error = 1, "context deadline exceeded"

	tests := map[string]struct {
		answers []api.DrainStatus
		args    []string
		code    int
		out     string
	}{
		"progress is told when it changes": {
			answers: []api.DrainStatus{draining, waiting, waiting, fewer, drained},
			out: "draining: handing over\nhanded over; waiting until 2026-11-30T12:00:25Z for 2 runs\n" +
				"handed over; waiting until 2026-11-30T12:00:25Z for 1 run\ndrained after 3s\n",
		},
		"runs that the app has accepted are no failure": {
			answers: []api.DrainStatus{accepted},
			out:     "drained after 3s\n1 run that the app has accepted can be completed until the sidecar ends\n",
		},
		"what is over is over": {answers: []api.DrainStatus{drained}, out: "drained after 3s\n"},
		"lost runs are a failure": {
			answers: []api.DrainStatus{lost}, code: 1,
			out: "drained after 3s\nsidecar: 2 runs did not end within the grace and are recorded as lost; make LEASECRON_SHUTDOWN_GRACE longer than the longest run\n",
		},
		"so are runs that could not be recorded": {
			answers: []api.DrainStatus{unrecorded}, code: 1,
			out: "drained after 3s\nsidecar: 1 run could not be recorded: context deadline exceeded; the sidecar goes on trying until it ends\n",
		},
		"the time that was given is kept": {
			answers: []api.DrainStatus{waiting}, args: []string{"--timeout", "50ms"}, code: 1,
			out: "handed over; waiting until 2026-11-30T12:00:25Z for 2 runs\nsidecar: not drained within 50ms: 2 runs left; the drain goes on\n",
		},
		"a time that is none":     {answers: []api.DrainStatus{drained}, args: []string{"--timeout", "soon"}, code: 2},
		"an argument":             {answers: []api.DrainStatus{drained}, args: []string{"now"}, code: 2},
		"an address without port": {answers: []api.DrainStatus{drained}, args: []string{"--address", "localhost"}, code: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := []string{"LEASECRON_API_LISTEN=" + playDrain(t, tt.answers...)}
			var both bytes.Buffer
			code := Main(t.Context(), append([]string{"drain"}, tt.args...), environ, Streams{In: strings.NewReader(""), Out: &both, Err: &both})
			if code != tt.code || tt.out != "" && both.String() != tt.out {
				t.Errorf("sidecar drain %v = %d\n%swant %d\n%s", tt.args, code, both.String(), tt.code, tt.out)
			}
		})
	}
}

func TestDrainCommandWithoutASidecar(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.Listener.Addr().String()
	run := func() string {
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"drain", "--address", address}, nil, Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		return out.String()
	}
	if out, want := run(), "sidecar: "+address+" answered 404 Not Found: this is not a sidecar's API"; !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
		t.Errorf("something else at the address: %q, want one line that begins with %q", out, want)
	}
	server.Close()
	if out := run(); !strings.Contains(out, fmt.Sprintf("no sidecar answers at %s", address)) {
		t.Errorf("nothing at the address: %s", out)
	}
}

// Whatever answers, the command says one line about it, and nothing of a page.
func TestDrainCommandIsAnsweredByOthers(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html>\n<body>hello</body>\n</html>\n"
	tests := map[string]struct {
		kind   string
		status int
		body   string
		want   string
	}{
		"a page":                        {"text/html", 200, page, "200 OK: this is not a sidecar's API"},
		"a page about an error":         {"text/html", 404, page, "404 Not Found: this is not a sidecar's API"},
		"another program's JSON":        {"application/json", 200, `{"status":"ok"}`, "200 OK: this is not a sidecar's API"},
		"another program's error":       {"application/json", 500, `{"detail":"hello"}`, "500 Internal Server Error: this is not a sidecar's API"},
		"a status that nobody knows":    {"text/html", 799, page, "799: this is not a sidecar's API"},
		"a sidecar that refuses":        {"application/problem+json; charset=utf-8", 503, `{"status":503,"detail":"too many\ndrains wait"}`, "503 Service Unavailable: too many drains wait"},
		"a problem of another's status": {"application/problem+json", 503, `{"status":200,"detail":"hello"}`, "this is not a sidecar's API"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			address := server.Listener.Addr().String()
			var out bytes.Buffer
			code := Main(t.Context(), []string{"drain", "--address", address}, nil, Streams{In: strings.NewReader(""), Out: &out, Err: &out})
			got := out.String()
			if code != 1 || !strings.Contains(got, address) || !strings.Contains(got, tt.want) || strings.Count(got, "\n") != 1 || strings.Contains(got, "hello") {
				t.Errorf("sidecar drain = %d, %q; want 1 and one line with %s and %q", code, got, address, tt.want)
			}
		})
	}
}
