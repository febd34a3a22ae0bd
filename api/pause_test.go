package api_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

func TestPauseAndResumeReachWhatThePathNames(t *testing.T) {
	const never = "0001-01-01T00:00:00Z"
	tests := map[string]struct {
		path, body string
		status     int
		asked      string
	}{
		"everything":                   {"/v1/pause", "", 200, `pause "" "" ` + never},
		"a job":                        {"/v1/jobs/nightly/pause", "", 200, `pause "nightly" "" ` + never},
		"a trigger":                    {"/v1/jobs/nightly/triggers/default/pause", "", 200, `pause "nightly/default" "" ` + never},
		"an empty object says nothing": {"/v1/pause", `{}`, 200, `pause "" "" ` + never},
		"with reason and end":          {"/v1/jobs/nightly/pause", `{"reason":"stock-taking","until":"2999-01-01T08:00:00+08:00"}`, 200, `pause "nightly" "stock-taking" 2999-01-01T00:00:00Z`},

		"resume everything":                  {"/v1/resume", "", 204, `resume "" skip=false`},
		"resume a job":                       {"/v1/jobs/nightly/resume", `{}`, 204, `resume "nightly" skip=false`},
		"resume a trigger, without its past": {"/v1/jobs/nightly/triggers/default/resume", `{"misfire":"skip"}`, 204, `resume "nightly/default" skip=true`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			for range 2 { // what is paused may be paused, what is not may be resumed
				a := do(t, "POST", w.api+tt.path, tt.body, nil)
				if a.status != tt.status {
					t.Fatalf("POST %s = %d, want %d\n%s", tt.path, a.status, tt.status, a.body)
				}
				if a.status == http.StatusOK {
					golden(t, "pause.json", a.body)
				}
			}
			if diff := cmp.Diff([]string{tt.asked, tt.asked}, w.engine.asked); diff != "" {
				t.Errorf("asked of the engine (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAResumeNamesWhatStillPauses(t *testing.T) {
	var log syncBuffer
	w := serve(t, func(o *api.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
	w.engine.holds = []plan.Hold{{By: plan.HoldDefinition, Since: noon}, {By: plan.HoldEverything, Reason: "stock-taking", Since: noon, Until: noon.Add(time.Hour)}}
	a := do(t, "POST", w.api+"/v1/jobs/nightly/resume", "", nil)
	const want = `{"stillPausedBy":[{"by":"definition","since":"2026-11-30T12:00:00Z"},{"by":"everything","reason":"stock-taking","since":"2026-11-30T12:00:00Z","until":"2026-11-30T13:00:00Z"}]}`
	if a.status != 200 || strings.TrimSpace(a.body) != want {
		t.Errorf("resume = %d %s, want 200 %s", a.status, a.body, want)
	}
	w.engine.holds = nil
	if a := do(t, "POST", w.api+"/v1/jobs/nightly/resume", "", nil); a.status != 204 || a.body != "" {
		t.Errorf("resume = %d %q, want 204 and nothing", a.status, a.body)
	}
	if got := strings.Count(log.String(), `"msg":"resumed"`); got != 2 {
		t.Errorf("%d lines say that it was resumed, want one each:\n%s", got, log.String())
	}
}

func TestAPauseLeavesOneLineInTheLog(t *testing.T) {
	tests := map[string]struct {
		err  error
		want []string
	}{
		"in force":   {nil, []string{`"what":"nightly/default"`, `"in_force":true`, `"node":"demo-0_4f1c"`, `"reason":"stock-taking"`, `"until":"2999-01-01T00:00:00Z"`}},
		"stored":     {engine.ErrNoLeader, []string{`"what":"nightly/default"`, `"in_force":false`}},
		"not stored": {engine.ErrJobNotFound, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log syncBuffer
			w := serve(t, func(o *api.Options) { o.Logger = slog.New(slog.NewJSONHandler(&log, nil)) })
			w.engine.err = tt.err
			do(t, "POST", w.api+"/v1/jobs/nightly/triggers/default/pause", `{"reason":"stock-taking","until":"2999-01-01T00:00:00Z"}`, nil)
			if got, want := strings.Count(log.String(), `"msg":"paused"`), min(len(tt.want), 1); got != want {
				t.Errorf("%d lines say paused, want %d:\n%s", got, want, log.String())
			}
			for _, has := range tt.want {
				if !strings.Contains(log.String(), has) {
					t.Errorf("the log does not say %s:\n%s", has, log.String())
				}
			}
		})
	}
}

func TestInfoSaysThatEverythingIsPaused(t *testing.T) {
	w := serve(t, nil)
	w.engine.status.Everything = &plan.Hold{By: plan.HoldEverything, Reason: "stock-taking", Since: noon}
	const want = `"pausedBy":{"by":"everything","reason":"stock-taking","since":"2026-11-30T12:00:00Z"}`
	if a := do(t, "GET", w.api+"/v1/info", "", nil); a.status != 200 || !strings.Contains(a.body, want) {
		t.Errorf("GET /v1/info = %d %s, want %s", a.status, a.body, want)
	}
}

func TestResolve(t *testing.T) {
	w := serve(t, nil)
	const id = "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b"
	for _, state := range []string{"Succeeded", "Failed", "Canceled"} {
		a := do(t, "POST", w.api+"/v1/runs/"+id+"/resolve", `{"state":"`+state+`","note":"seen in the books"}`, nil)
		if a.status != 200 || !strings.Contains(a.body, `"state":"`+state+`"`) {
			t.Errorf("resolve as %s = %d\n%s", state, a.status, a.body)
		}
	}
	want := []string{
		"resolve " + id + ` Succeeded "seen in the books"`,
		"resolve " + id + ` Failed "seen in the books"`,
		"resolve " + id + ` Canceled "seen in the books"`,
	}
	if diff := cmp.Diff(want, w.engine.asked); diff != "" {
		t.Errorf("asked of the engine (-want +got):\n%s", diff)
	}
}

func TestChangesThatAreRefusedDoNotReachTheEngine(t *testing.T) {
	const resolve = "/v1/runs/0193a1b2c3d47e5f8a9b0c1d2e3f4a5b/resolve"
	long := strings.Repeat("x", 1025)
	tests := map[string]struct {
		path, body string
		status     int
		has        string
	}{
		"an end that has passed":         {"/v1/pause", `{"until":"2001-01-01T00:00:00Z"}`, 400, "body.until: 2001-01-01T00:00:00Z has passed"},
		"an end that is no time":         {"/v1/pause", `{"until":"tomorrow"}`, 400, "body.until"},
		"a reason without an end":        {"/v1/pause", `{"reason":"` + long + `"}`, 400, "body.reason"},
		"an unknown key":                 {"/v1/jobs/nightly/pause", `{"end":"2999-01-01T00:00:00Z"}`, 400, "body.end: unknown key; allowed: reason, until"},
		"a name that can be no trigger":  {"/v1/jobs/nightly/triggers/A/pause", "", 400, "path.trigger"},
		"a misfire that is not known":    {"/v1/resume", `{"misfire":"run-once"}`, 400, "body.misfire"},
		"resolve without a body":         {resolve, "", 400, "body"},
		"resolve without a note":         {resolve, `{"state":"Failed"}`, 400, "note"},
		"resolve with an empty note":     {resolve, `{"state":"Failed","note":""}`, 400, "body.note"},
		"resolve with too long a note":   {resolve, `{"state":"Failed","note":"` + long + `"}`, 400, "body.note"},
		"resolve as what a run is not":   {resolve, `{"state":"Running","note":"x"}`, 400, "body.state"},
		"resolve what can be no run":     {"/v1/runs/a%20b/resolve", `{"state":"Failed","note":"x"}`, 400, "path.id"},
		"a query where there can be one": {"/v1/pause?until=x", "", 400, "query.until: unknown query parameter; this path has none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			a := do(t, "POST", w.api+tt.path, tt.body, nil)
			if a.status != tt.status || !strings.Contains(a.body, tt.has) || strings.Contains(a.body, "xxx") {
				t.Errorf("POST %s = %d, want %d with %q\n%s", tt.path, a.status, tt.status, tt.has, a.body)
			}
			if len(w.engine.asked) > 0 {
				t.Errorf("the engine was asked: %v", w.engine.asked)
			}
		})
	}
}

func TestErrorsOfChanges(t *testing.T) {
	paths := map[string]string{
		"/v1/jobs/nightly/pause":  "",
		"/v1/jobs/nightly/resume": "",
		"/v1/runs/0193a1/resolve": `{"state":"Failed","note":"x"}`,
	}
	tests := map[string]struct {
		err    error
		status int
		has    []string
	}{
		"nobody leads: it is stored": {engine.ErrNoLeader, 503, []string{"SCHEDULING_UNAVAILABLE_001", "stored and takes effect with the next leader"}},
		"no such job":                {fmt.Errorf("%w: %q", engine.ErrJobNotFound, "nightly"), 404, []string{"SCHEDULING_NOTFOUND_001"}},
		"no such trigger":            {run.Errorf(run.CodeTriggerNotFound, "no trigger"), 404, []string{"SCHEDULING_NOTFOUND_003"}},
		"no such run":                {run.Errorf(run.CodeRunNotFound, "no open run"), 404, []string{"SCHEDULING_NOTFOUND_004"}},
		"the ledger does not answer": {errors.New("secret thing broke"), 503, []string{"SCHEDULING_UNAVAILABLE_003", "all the same"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			w.engine.err = tt.err
			for path, body := range paths {
				a := do(t, "POST", w.api+path, body, nil)
				if a.status != tt.status || strings.Contains(a.body, "secret") {
					t.Errorf("POST %s = %d, want %d\n%s", path, a.status, tt.status, a.body)
				}
				for _, has := range tt.has {
					if !strings.Contains(a.body, has) {
						t.Errorf("POST %s does not say %q:\n%s", path, has, a.body)
					}
				}
			}
		})
	}
}
