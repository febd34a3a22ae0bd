package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/run"
)

const asyncRun = "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b"

func TestWhatAnAppSaysOfARunReachesTheEngine(t *testing.T) {
	complete := func(result string) string { return "complete " + asyncRun + " " + result }
	tests := map[string]struct{ verb, body, asked string }{
		"complete":                         {"complete", "", complete("{Failed:false Message: Code: Final:false RetryAfter:0s}")},
		"complete, an empty object":        {"complete", "{}", complete("{Failed:false Message: Code: Final:false RetryAfter:0s}")},
		"complete with a message":          {"complete", `{"message":"42 \u6587件"}`, complete("{Failed:false Message:42 文件 Code: Final:false RetryAfter:0s}")},
		"fail":                             {"fail", "", complete("{Failed:true Message: Code: Final:false RetryAfter:0s}")},
		"fail with all there is":           {"fail", `{"message":"locked","code":"SOURCE_LOCKED","retryable":true,"retryAfter":30}`, complete("{Failed:true Message:locked Code:SOURCE_LOCKED Final:false RetryAfter:30s}")},
		"fail for good":                    {"fail", `{"retryable":false}`, complete("{Failed:true Message: Code: Final:true RetryAfter:0s}")},
		"a heartbeat":                      {"heartbeat", "", `heartbeat ` + asyncRun + ` - ""`},
		"a heartbeat with progress":        {"heartbeat", `{"progress":40,"message":"17 of 42"}`, `heartbeat ` + asyncRun + ` 40 "17 of 42"`},
		"a heartbeat at the very start":    {"heartbeat", `{"progress":0}`, `heartbeat ` + asyncRun + ` 0 ""`},
		"a message of 100 KiB is no fault": {"fail", `{"message":"` + strings.Repeat("x", 100<<10) + `"}`, complete("{Failed:true Message:" + strings.Repeat("x", 100<<10) + " Code: Final:false RetryAfter:0s}")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			a := do(t, "POST", w.api+"/v1/runs/"+asyncRun+"/"+tt.verb, tt.body, nil)
			if a.status != 200 {
				t.Fatalf("%s = %d, want 200\n%s", tt.verb, a.status, a.body)
			}
			if diff := cmp.Diff([]string{tt.asked}, w.engine.asked); diff != "" {
				t.Errorf("asked of the engine (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersToAnApp(t *testing.T) {
	w := serve(t, nil)
	url := w.api + "/v1/runs/" + asyncRun
	golden(t, "async-complete.json", do(t, "POST", url+"/complete", `{"message":"done"}`, nil).body)
	golden(t, "async-fail.json", do(t, "POST", url+"/fail", `{"code":"SOURCE_LOCKED","message":"locked"}`, nil).body)
	golden(t, "async-heartbeat.json", do(t, "POST", url+"/heartbeat", "", nil).body)
	w.engine.nextBefore = noon.Add(time.Minute)
	golden(t, "async-heartbeat-next.json", do(t, "POST", url+"/heartbeat", "", nil).body)
}

func TestProgressIsShown(t *testing.T) {
	w := serve(t, nil)
	forty := 40
	w.engine.runs[0].State = run.StateRunning
	w.engine.runs[0].Async = true
	w.engine.runs[0].Progress = &run.Progress{Percent: &forty, Text: "17 of 42", At: noon}
	golden(t, "async-runs.json", get(t, w.api+"/v1/runs").body)
}

func TestWhatAnAppMayNotSay(t *testing.T) {
	tests := map[string]struct{ verb, body, has string }{
		"an unknown key":               {"complete", `{"result":1}`, "body.result: unknown key; allowed: message"},
		"a misspelled key":             {"heartbeat", `{"progres":40}`, "body.progres: unknown key; allowed: message, progress"},
		"a key that goes on from one":  {"heartbeat", `{"progress.x":40}`, "body.progress.x: unknown key; allowed: message, progress"},
		"progress in a completion":     {"complete", `{"progress":100}`, "body.progress"},
		"more than everything":         {"heartbeat", `{"progress":101}`, "body.progress"},
		"less than nothing":            {"heartbeat", `{"progress":-1}`, "body.progress"},
		"a part of a percent":          {"heartbeat", `{"progress":33.3}`, "body.progress"},
		"progress as text":             {"heartbeat", `{"progress":"40"}`, "body.progress"},
		"a code with a space":          {"fail", `{"code":"no good"}`, "body.code"},
		"a code of 65 characters":      {"fail", `{"code":"` + strings.Repeat("x", 65) + `"}`, "body.code"},
		"a retry in the past":          {"fail", `{"retryAfter":-1}`, "body.retryAfter"},
		"a retry in more than 30 days": {"fail", `{"retryAfter":2592001}`, "body.retryAfter"},
		"a word for whether to retry":  {"fail", `{"retryable":"no"}`, "body.retryable"},
		"a key that comes twice":       {"fail", `{"message":"a","message":"b"}`, "twice"},
		"a key in another case":        {"heartbeat", `{"Progress":40}`, "Progress"},
		"an array":                     {"complete", `[]`, "body"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			a := do(t, "POST", w.api+"/v1/runs/"+asyncRun+"/"+tt.verb, tt.body, nil)
			if a.status != 400 || !strings.Contains(a.body, tt.has) || !strings.Contains(a.body, string(run.CodeInvalidQuery)) {
				t.Errorf("%s %s = %d, want 400 with %q\n%s", tt.verb, tt.body, a.status, tt.has, a.body)
			}
			if len(w.engine.asked) > 0 {
				t.Errorf("asked of the engine: %q", w.engine.asked)
			}
		})
	}
}

func TestWhatAnAppIsToldOfARunThatIsNotItsOwn(t *testing.T) {
	tests := map[string]struct {
		err    error
		status int
		has    string
	}{
		"no such run":            {run.Errorf(run.CodeRunNotFound, "there is no run"), 404, string(run.CodeRunNotFound)},
		"it is over":             {run.Errorf(run.CodeRunOver, "it is Canceled"), 409, string(run.CodeRunOver)},
		"it is not awaited":      {run.Errorf(run.CodeRunNotAwaited, "not async"), 409, string(run.CodeRunNotAwaited)},
		"another sidecar has it": {run.Errorf(run.CodeNoScheduler, "ask demo-1"), 503, string(run.CodeNoScheduler)},
		"the ledger is away":     {fmt.Errorf("kept: %w", errors.New("10.0.0.1 is away")), 503, string(run.CodeLedgerUnknown)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			w.engine.err = tt.err
			for _, verb := range []string{"complete", "fail", "heartbeat"} {
				a := do(t, "POST", w.api+"/v1/runs/"+asyncRun+"/"+verb, "", nil)
				if a.status != tt.status || !strings.Contains(a.body, tt.has) || strings.Contains(a.body, "10.0.0.1") {
					t.Errorf("%s = %d, want %d with %s\n%s", verb, a.status, tt.status, tt.has, a.body)
				}
			}
		})
	}
}
