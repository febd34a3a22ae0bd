package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

func TestOpenAPIIsWhatWasPublished(t *testing.T) {
	w := serve(t, nil)
	a := get(t, w.api+"/v1/openapi.json")
	if !strings.Contains(a.body, `"openapi":"3.1.0"`) {
		t.Errorf("not OpenAPI 3.1: %.80s", a.body)
	}
	golden(t, "openapi.json", a.body)
}

func TestInfo(t *testing.T) {
	w := serve(t, nil)
	var info map[string]any
	if err := json.Unmarshal([]byte(get(t, w.api+"/v1/info").body), &info); err != nil {
		t.Fatal(err)
	}
	if info["goVersion"] == "" {
		t.Error("no Go version")
	}
	info["goVersion"] = "go1.x"
	text, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "info.json", string(text))
}

func TestJobsShowStateAndNextInstantButNoSecrets(t *testing.T) {
	w := serve(t, nil)
	list, one := get(t, w.api+"/v1/jobs"), get(t, w.api+"/v1/jobs/nightly")
	golden(t, "jobs.json", list.body)
	golden(t, "job.json", one.body)
	if strings.Contains(list.body+one.body, "hidden") {
		t.Error("headers or data of a job were shown")
	}
}

func TestJobsThatCannotBeReadAreNoEmptyAnswer(t *testing.T) {
	w := serve(t, nil)
	w.engine.status = engine.Status{Node: "demo-0_4f1c"}
	for name, tt := range map[string]struct {
		err  error
		code string
	}{
		"nobody has led yet":        {run.Errorf(run.CodeNoScheduler, "no leader has taken note of the jobs yet"), "SCHEDULING_UNAVAILABLE_001"},
		"the store does not answer": {errors.New("read catalog: refused"), "SCHEDULING_UNAVAILABLE_003"},
	} {
		t.Run(name, func(t *testing.T) {
			w.engine.err = tt.err
			for _, path := range []string{"/v1/jobs", "/v1/jobs/nightly"} {
				if a := get(t, w.api+path); a.status != 503 || !strings.Contains(a.body, tt.code) {
					t.Errorf("GET %s = %d, want 503 %s\n%s", path, a.status, tt.code, a.body)
				}
			}
		})
	}
}

func TestRuns(t *testing.T) {
	w := serve(t, nil)
	a := get(t, w.api+"/v1/runs?job=nightly&limit=7")
	golden(t, "runs.json", a.body)
	if strings.Contains(a.body, "hidden") {
		t.Error("the data of a run was shown")
	}
	get(t, w.api+"/v1/runs")
	want := []string{`runs "nightly" 7`, `runs "" 100`}
	if diff := cmp.Diff(want, w.engine.asked); diff != "" {
		t.Errorf("asked of the engine (-want +got):\n%s", diff)
	}
}

func TestEnqueueHandsTheDataOnAsItCame(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"no body":                        {"", ""},
		"no data":                        {`{}`, ""},
		"an empty object":                {`{"data":{}}`, `{}`},
		"large numbers":                  {`{"data":{"id":9007199254740993}}`, `{"id":9007199254740993}`},
		"many decimals":                  {`{"data":{"r":0.1000000000000000055}}`, `{"r":0.1000000000000000055}`},
		"numbers beyond every float":     {`{"data":{"a":1e400,"b":[{"c":-1e999}]}}`, `{"a":1e400,"b":[{"c":-1e999}]}`},
		"keys may come again further in": {`{"data":{"a":{"a":[{"a":1},{"a":2}]}}}`, `{"a":{"a":[{"a":1},{"a":2}]}}`},
		"text in any script":             {`{"data":{"名":"夜间"}}`, `{"名":"夜间"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			a := do(t, "POST", w.api+"/v1/jobs/nightly/enqueue", tt.body, nil)
			if a.status != 202 {
				t.Fatalf("status = %d, want 202\n%s", a.status, a.body)
			}
			if diff := cmp.Diff(tt.want, string(w.engine.data)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			golden(t, "enqueue.json", a.body)
			if diff := cmp.Diff([]string{"enqueue nightly"}, w.engine.asked); diff != "" {
				t.Errorf("asked of the engine (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsOfTheEngine(t *testing.T) {
	tests := map[string]struct {
		err    error
		status int
		has    string
		hides  string
	}{
		"a refusal keeps its code and words": {
			run.Errorf(run.CodeAlreadyRunning, "run 0193 of job nightly has not ended"), 409, "run 0193", "",
		},
		"what lies beneath a refusal stays inside": {
			&run.Error{Code: run.CodeLedgerUnknown, Detail: "the ledger cannot be reached", Err: errors.New("10.0.0.1: refused")}, 503, "SCHEDULING_UNAVAILABLE_003", "10.0.0.1",
		},
		"an unknown job is not found": {
			fmt.Errorf("%w: %q", engine.ErrJobNotFound, "nightly"), 404, "SCHEDULING_NOTFOUND_001", "",
		},
		"a running job that must not overlap is a conflict": {
			fmt.Errorf("%w: %q", engine.ErrAlreadyRunning, "nightly"), 409, "SCHEDULING_CONFLICT_001", "",
		},
		"a sidecar on its way out takes nothing on": {engine.ErrDraining, 503, "SCHEDULING_UNAVAILABLE_001", ""},
		"an error of the ledger stays inside, and the run may exist": {
			errors.New("put 10.0.0.1: secret thing broke"), 503, "it may exist all the same", "secret",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log syncBuffer
			w := serve(t, func(o *api.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
			w.engine.err = tt.err
			a := do(t, "POST", w.api+"/v1/jobs/nightly/enqueue", "", map[string][]string{"X-Request-Id": {"request-1"}})
			if a.status != tt.status || !strings.Contains(a.body, tt.has) {
				t.Errorf("answer = %d, want %d with %q\n%s", a.status, tt.status, tt.has, a.body)
			}
			if tt.hides != "" && strings.Contains(a.body, tt.hides) {
				t.Errorf("the answer shows %q:\n%s", tt.hides, a.body)
			}
			if logged := strings.Contains(log.String(), `"request_id":"request-1"`); logged != (tt.status >= 500) {
				t.Errorf("logged = %v with status %d:\n%s", logged, tt.status, log.String())
			}
		})
	}
}
