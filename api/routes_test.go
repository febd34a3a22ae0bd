package api_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/api"
)

func TestLeader(t *testing.T) {
	w := serve(t, nil)
	for _, base := range []string{w.pod, w.api} {
		a := get(t, base+"/leader")
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("GET /leader = %d %s, want 200 application/json", a.status, a.header.Get("Content-Type"))
		}
		golden(t, "leader.json", a.body)
	}
}

func TestLeaderOnAFollower(t *testing.T) {
	w := serve(t, nil)
	w.leadership.leader = api.Leader{Name: "demo-1_9a", Self: "demo-0_4f1c", Term: 13, Lease: "demo-leasecron"}
	tests := map[string]struct {
		query  string
		status int
	}{
		"without a demand it is an answer like any other": {"", 200},
		"require=self fails, so that a Service leaves it": {"?require=self", 503},
		"another demand is refused":                       {"?require=leader", 400},
		"an empty demand is refused":                      {"?require=", 400},
		"a misspelled demand is refused":                  {"?requires=self", 400},
		"a demand made twice is refused":                  {"?require=self&require=self", 400},
		"an unreadable query is refused":                  {"?require=%zz", 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if a := get(t, w.pod+"/leader"+tt.query); a.status != tt.status {
				t.Errorf("GET /leader%s = %d, want %d\n%s", tt.query, a.status, tt.status, a.body)
			}
		})
	}
	golden(t, "leader-follower.json", get(t, w.pod+"/leader?require=self").body)
}

func TestLeaderRequireSelfOnTheLeader(t *testing.T) {
	w := serve(t, nil)
	if a := get(t, w.pod+"/leader?require=self"); a.status != 200 {
		t.Errorf("GET /leader?require=self = %d, want 200", a.status)
	}
}

func TestProbes(t *testing.T) {
	good := api.Check{Name: "loop", Probe: func() (string, error) { return "last turn 120ms ago", nil }}
	plain := api.Check{Name: "process", Probe: func() (string, error) { return "", nil }}
	bad := api.Check{Name: "watch", Probe: func() (string, error) { return "", errors.New("no turn\nfor 45s") }}
	note := api.Check{Name: "jobs", Informational: true, Probe: func() (string, error) {
		return "", errors.New("ConfigMap default/demo-jobs not found")
	}}
	tests := map[string]struct {
		checks []api.Check
		query  string
		status int
		body   string
	}{
		"all is well":               {[]api.Check{good, plain}, "", 200, "ok"},
		"nothing to check":          {nil, "", 200, "ok"},
		"all is well, told at once": {[]api.Check{good, plain}, "?verbose", 200, "[+]loop ok: last turn 120ms ago\n[+]process ok\n%s check passed\n"},
		"a failure tells everything without being asked, each on one line": {[]api.Check{good, bad}, "", 503, "[+]loop ok: last turn 120ms ago\n[-]watch failed: no turn; for 45s\n%s check failed\n"},
		"an absent ConfigMap is told and fails nothing":                    {[]api.Check{good, note}, "?verbose", 200, "[+]loop ok: last turn 120ms ago\n[!]jobs: ConfigMap default/demo-jobs not found\n%s check passed\n"},
		"and is silent without verbose":                                    {[]api.Check{good, note}, "", 200, "ok"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, func(o *api.Options) { o.Live, o.Ready = tt.checks, tt.checks })
			for _, base := range []string{w.pod, w.api} {
				for _, probe := range []string{"livez", "readyz", "healthz"} {
					a := get(t, base+"/"+probe+tt.query)
					want := strings.ReplaceAll(tt.body, "%s", probe)
					if a.status != tt.status || a.body != want {
						t.Errorf("GET /%s%s = %d %q, want %d %q", probe, tt.query, a.status, a.body, tt.status, want)
					}
				}
			}
		})
	}
}

func TestMetricsAreForThePodNetworkOnly(t *testing.T) {
	w := serve(t, nil)
	if a := get(t, w.pod+"/metrics"); a.status != 200 || !strings.Contains(a.body, "leasecron_leader 0") {
		t.Errorf("GET /metrics = %d\n%s", a.status, a.body)
	}
	for _, url := range []string{w.api + "/metrics", w.pod + "/v1/info", w.pod + "/v1/jobs", w.pod + "/v1"} {
		if a := get(t, url); a.status != 404 {
			t.Errorf("GET %s = %d, want 404", url, a.status)
		}
	}
}

// What the other port answers is told with its port and setting, and nothing more of its address.
func TestTheWrongPortNamesTheRightOne(t *testing.T) {
	w := serve(t, nil)
	port := func(base string) string { return base[strings.LastIndex(base, ":")+1:] }
	toAPI := "there is nothing at this path on this port: port " + port(w.api) + " (LEASECRON_API_LISTEN) answers it, to programs in the same pod"
	toPod := "there is nothing at this path on this port: port " + port(w.pod) + " (LEASECRON_LISTEN) answers it, to the pod network"
	tests := map[string]struct{ url, want string }{
		"the jobs":                   {w.pod + "/v1/jobs", toAPI},
		"one of them":                {w.pod + "/v1/jobs/a", toAPI},
		"a drain":                    {w.pod + "/drain", toAPI},
		"the metrics":                {w.api + "/metrics", toPod},
		"what is nowhere":            {w.pod + "/v1/nothing", "there is nothing at this path"},
		"what is nowhere, asked":     {w.api + "/v2", "there is nothing at this path"},
		"what takes another request": {w.pod + "/v1/jobs/a/enqueue", "there is nothing at this path"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p struct{ Detail string }
			a := get(t, tt.url)
			if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != 404 || p.Detail != tt.want {
				t.Errorf("GET %s = %d %s, want 404 with %q (%v)", tt.url, a.status, a.body, tt.want, err)
			}
		})
	}
	for _, change := range []func(*api.Options){func(o *api.Options) { o.Address = "" }, func(o *api.Options) { o.APIAddress = "" }} {
		w := serve(t, change)
		for _, base := range []string{w.pod, w.api} {
			if base == "http://" {
				continue
			}
			for _, path := range []string{"/metrics", "/v1/jobs"} {
				if a := get(t, base+path); a.status == 404 && strings.Contains(a.body, "LEASECRON") {
					t.Errorf("GET %s%s names a port that is not served: %s", base, path, a.body)
				}
			}
		}
	}
}

func TestEveryErrorIsAProblemDocument(t *testing.T) {
	w := serve(t, nil)
	tests := map[string]struct {
		method, path, body string
		header             http.Header
		status             int
		golden             string
	}{
		"no such path":              {method: "GET", path: "/v1/nothing", status: 404, golden: "problem-path.json"},
		"no such method":            {method: "DELETE", path: "/v1/jobs", status: 405, golden: "problem-method.json"},
		"no such job":               {method: "GET", path: "/v1/jobs/nothing", status: 404, golden: "problem-job.json"},
		"a name that can be no job": {method: "GET", path: "/v1/jobs/UPPER", status: 400, golden: "problem-name.json"},
		"an unknown parameter":      {method: "GET", path: "/v1/runs?jobs=a", status: 400, golden: "problem-parameter.json"},
		"a parameter given twice":   {method: "GET", path: "/v1/runs?job=a&job=b", status: 400, golden: "problem-repeated.json"},
		"a limit out of range":      {method: "GET", path: "/v1/runs?limit=1001", status: 400, golden: "problem-limit.json"},
		"a limit that is no number": {method: "GET", path: "/v1/runs?limit=ten", status: 400, golden: "problem-number.json"},
		"a body that is not JSON":   {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":`, status: 400, golden: "problem-json.json"},
		"an unknown key":            {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"Data":{}}`, status: 400, golden: "problem-key.json"},
		"data that is no object":    {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":[1]}`, status: 400, golden: "problem-data.json"},
		"a key that comes twice":    {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":{"a":{"b":1,"c":[{"b":2}],"b":3}}}`, status: 400, golden: "problem-twice.json"},
		"text that is not UTF-8":    {method: "POST", path: "/v1/jobs/nightly/enqueue", body: "{\"data\":{\"a\":\"\xff\"}}", status: 400, golden: "problem-utf8.json"},
		"something after the body":  {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":{}} {}`, status: 400, golden: "problem-after.json"},
		"endless nesting":           {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":` + strings.Repeat(`{"a":`, 20000), status: 400, golden: "problem-depth.json"},
		"another media type": {
			method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":{}}`,
			header: http.Header{"Content-Type": {"text/plain"}}, status: 415, golden: "problem-media.json",
		},
		"no media type": {
			method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":{}}`,
			header: http.Header{"Content-Type": {""}}, status: 415, golden: "problem-media.json",
		},
		"a form": {
			method: "POST", path: "/v1/jobs/nightly/enqueue", body: `a=b`,
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, status: 415, golden: "problem-media.json",
		},
		"data that is too large":   {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":{"x":"` + strings.Repeat("x", 300<<10) + `"}}`, status: 413, golden: "problem-large-data.json"},
		"a body that is too large": {method: "POST", path: "/v1/jobs/nightly/enqueue", body: `{"data":{"x":"` + strings.Repeat("x", 600<<10) + `"}}`, status: 413, golden: "problem-large-body.json"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"X-Request-Id": {"request-1"}}
			maps.Copy(header, tt.header)
			a := do(t, tt.method, w.api+tt.path, tt.body, header)
			if a.status != tt.status || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s = %d %s, want %d application/problem+json", tt.method, tt.path, a.status, a.header.Get("Content-Type"), tt.status)
			}
			if len(a.body) > 4096 {
				t.Errorf("the answer repeats the request: %d bytes", len(a.body))
			}
			golden(t, tt.golden, a.body)
		})
	}
}

func TestRequestID(t *testing.T) {
	w := serve(t, nil)
	tests := map[string]struct {
		sent string
		kept bool
	}{
		"one that the client chose is kept":           {"order-17.retry_2", true},
		"without one it is made":                      {"", false},
		"one that could forge a log line is replaced": {`a" level="ERROR`, false},
		"one without an end is replaced":              {strings.Repeat("a", 65), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var ids []string
			for _, path := range []string{"/livez", "/v1/info", "/v1/nothing"} {
				header := http.Header{}
				if tt.sent != "" {
					header.Set("X-Request-Id", tt.sent)
				}
				ids = append(ids, do(t, "GET", w.api+path, "", header).header.Get("X-Request-Id"))
			}
			for i, id := range ids {
				if (id == tt.sent) != tt.kept || id == "" {
					t.Errorf("X-Request-Id of answer %d to %q = %q", i, tt.sent, id)
				}
			}
			if !tt.kept && ids[0] == ids[1] {
				t.Errorf("two requests were given the same ID: %v", ids)
			}
		})
	}
}

func TestABrowserCannotBeUsedAgainstTheAPI(t *testing.T) {
	w := serve(t, nil)
	const enqueue = "/v1/jobs/nightly/enqueue"
	tests := map[string]struct {
		method, path string
		header       http.Header
		status       int
	}{
		"a program that asks for 127.0.0.1":            {"POST", enqueue, nil, 202},
		"a program that asks for localhost":            {"POST", enqueue, http.Header{"Host": {"localhost:9471"}}, 202},
		"a program that asks for localhost, no port":   {"POST", enqueue, http.Header{"Host": {"localhost"}}, 202},
		"a program that asks for IPv6 loopback":        {"GET", "/leader", http.Header{"Host": {"[::1]"}}, 200},
		"a page of another origin that writes":         {"POST", enqueue, http.Header{"Origin": {"https://evil.test"}}, 403},
		"a form of another site that writes":           {"POST", enqueue, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"a name that was rebound to loopback, reading": {"GET", "/v1/jobs", http.Header{"Host": {"evil.test:9471"}}, 403},
		"a name that was rebound to loopback, writing": {"POST", enqueue, http.Header{"Host": {"evil.test"}}, 403},
		"a name that only begins like a loopback one":  {"GET", "/v1/jobs", http.Header{"Host": {"127.0.0.1.evil.test"}}, 403},
		"an address of the network":                    {"GET", "/v1/jobs", http.Header{"Host": {"10.1.2.3:9471"}}, 403},
		"the API's own page that writes":               {"POST", enqueue, http.Header{"Sec-Fetch-Site": {"same-origin"}}, 202},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := do(t, tt.method, w.api+tt.path, "", tt.header)
			if a.status != tt.status {
				t.Errorf("%s %s with %v = %d, want %d\n%s", tt.method, tt.path, tt.header, a.status, tt.status, a.body)
			}
			if a.status == 403 && (a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("X-Request-Id") == "") {
				t.Errorf("refused without a problem document or a request ID: %v", a.header)
			}
		})
	}
}

func TestAHandlerThatPanicsCostsOneRequest(t *testing.T) {
	w := serve(t, func(o *api.Options) {
		o.Live = []api.Check{{Name: "bug", Probe: func() (string, error) { panic("bug") }}}
	})
	a := do(t, "GET", w.pod+"/livez", "", http.Header{"X-Request-Id": {"request-1"}})
	if a.status != 500 {
		t.Errorf("status = %d, want 500", a.status)
	}
	golden(t, "problem-panic.json", a.body)
	if a := get(t, w.pod+"/readyz"); a.status != 200 {
		t.Errorf("the next request = %d, want 200", a.status)
	}
}

func TestIndexPointsToTheAPI(t *testing.T) {
	w := serve(t, nil)
	a := get(t, w.api+"/")
	for _, want := range []string{"/v1/jobs", "/v1/openapi.json"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("GET / does not name %s:\n%s", want, a.body)
		}
	}
	if diff := cmp.Diff("no-store", a.header.Get("Cache-Control")); diff != "" {
		t.Errorf("Cache-Control (-want +got):\n%s", diff)
	}
}
