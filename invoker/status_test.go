package invoker_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// R131, R137: what each status means. The table of docs/callback.md.
func TestStatusDecides(t *testing.T) {
	failed := func(status int, retryable bool) run.Outcome {
		return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: status, Retryable: retryable}
	}
	tests := map[int]struct {
		want    run.Outcome
		message string
	}{
		200: {want: run.Outcome{State: run.StateSucceeded, Status: 200}, message: "said"},
		201: {want: run.Outcome{State: run.StateSucceeded, Status: 201}, message: "said"},
		202: {want: run.Outcome{State: run.StateSucceeded, Status: 202}, message: "said"},
		204: {want: run.Outcome{State: run.StateSucceeded, Status: 204}},
		299: {want: run.Outcome{State: run.StateSucceeded, Status: 299}},
		300: {want: failed(300, false), message: "redirects are not followed"},
		301: {want: failed(301, false), message: "redirects are not followed"},
		302: {want: failed(302, false), message: "redirects are not followed"},
		304: {want: failed(304, false), message: "redirects are not followed"},
		307: {want: failed(307, false), message: "redirects are not followed"},
		308: {want: failed(308, false), message: "redirects are not followed"},
		400: {want: failed(400, false), message: "said"},
		401: {want: failed(401, false), message: "bearerFile?: said"},
		403: {want: failed(403, false), message: "bearerFile?: said"},
		404: {want: failed(404, false), message: "404 Not Found for POST /jobs/report: does the app serve it there?"},
		405: {want: failed(405, false), message: "check the job's target, path and method: said"},
		408: {want: failed(408, true), message: "said"},
		409: {want: failed(409, false), message: "said"},
		410: {want: failed(410, false), message: "said"},
		413: {want: failed(413, false), message: "said"},
		422: {want: failed(422, false), message: "said"},
		425: {want: failed(425, true), message: "said"},
		429: {want: failed(429, true), message: "said"},
		499: {want: failed(499, false), message: "said"},
		500: {want: failed(500, true), message: "said"},
		501: {want: failed(501, false), message: "said"},
		502: {want: failed(502, true), message: "said"},
		503: {want: failed(503, true), message: "said"},
		504: {want: failed(504, true), message: "said"},
		599: {want: failed(599, true), message: "said"},
		600: {want: failed(600, false), message: "said"},
		999: {want: failed(999, false), message: "said"},
	}
	client := newClient(t, invoker.Options{})
	target := startApp(t, app.Options{})
	elsewhere := startApp(t, app.Options{})
	for status, tt := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			before := len(target.Calls())
			target.Script("/jobs/report", app.Reply(status, "said", "Location", elsewhere.URL()+"/moved"))
			checkOutcome(t, invoke(client, attempt(target.URL()+"/jobs/report?key=hunter2")), tt.want, tt.message)
			if n := len(target.Calls()) - before; n != 1 {
				t.Errorf("%d requests for one attempt", n)
			}
		})
	}
	if n := len(elsewhere.Calls()); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// R131: a failed run ends only that run.
func TestRunAfterAFailedOneIsDeliveredAsUsual(t *testing.T) {
	target := startApp(t, app.Options{})
	target.Script("/", app.Reply(500, "broken"), app.Reset(), app.Raw("nonsense\r\n\r\n"), app.Status(200))
	client := newClient(t, invoker.Options{})
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), run.Outcome{
		State: run.StateFailed, Code: run.CodeFailed, Status: 500, Retryable: true,
	}, "broken")
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), lost, "may have done the work")
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), lost, "may have done the work")
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
}

// R136: Retry-After in both forms, capped; junk asks for nothing.
func TestRetryAfter(t *testing.T) {
	const month = 30 * 24 * time.Hour
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	tests := map[string]struct {
		header   string
		min, max time.Duration
	}{
		"seconds":                      {header: "7", min: 7 * time.Second, max: 7 * time.Second},
		"seconds with blanks":          {header: "  7 ", min: 7 * time.Second, max: 7 * time.Second},
		"zero":                         {header: "0"},
		"a day":                        {header: "86400", min: 24 * time.Hour, max: 24 * time.Hour},
		"more than the cap":            {header: "2592001", min: month, max: month},
		"more than any integer":        {header: strings.Repeat("9", 100), min: month, max: month},
		"a date":                       {header: in(90 * time.Second), min: 85 * time.Second, max: 90 * time.Second},
		"a date in the past":           {header: in(-time.Hour)},
		"a date beyond the cap":        {header: "Fri, 31 Dec 9999 23:59:59 GMT", min: month, max: month},
		"a date in the oldest form":    {header: time.Now().Add(90 * time.Second).UTC().Format(time.ANSIC), min: 85 * time.Second, max: 90 * time.Second},
		"none":                         {header: ""},
		"a negative number":            {header: "-7"},
		"a fraction":                   {header: "1.5"},
		"words":                        {header: "soon"},
		"digits of another script":     {header: "٧"},
		"a number with something else": {header: "7 seconds"},
	}
	client := newClient(t, invoker.Options{})
	target := startApp(t, app.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target.Script("/", app.Reply(503, "busy", "Retry-After", tt.header))
			got := invoke(client, attempt(target.URL()+"/"))
			if got.RetryAfter < tt.min || got.RetryAfter > tt.max {
				t.Errorf("Retry-After %q = %s, want %s to %s", tt.header, got.RetryAfter, tt.min, tt.max)
			}
			if !got.Retryable || got.Status != 503 {
				t.Errorf("outcome %+v, want a retryable 503", got)
			}
		})
	}
	t.Run("does not delay anything after a success", func(t *testing.T) {
		target.Script("/", app.Reply(200, "", "Retry-After", "7"))
		checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
	})
}

// R198: the cause that the app names is kept, and nothing that could harm who reads it.
func TestMessageIsWhatTheAppSaid(t *testing.T) {
	tests := map[string]struct{ body, want string }{
		"as it is":                            {"out of stock", "out of stock"},
		"on one line":                         {"{\r\n\t\"error\": \"x\"\n}\n", `{   "error": "x" }`},
		"without terminal control":            {"\x1b[31mred\x1b[0m\x00\x07", "[31mred[0m"},
		"without C1 control characters":       {"a\u009bb\u0085c", "abc"},
		"without direction overrides":         {"safe\u202egnp.exe", "safegnp.exe"},
		"other scripts and emoji stay":        {"失敗 👩‍💻 é", "失敗 👩‍💻 é"},
		"what is no UTF-8 is marked":          {"caf\xe9 ok", "caf\uFFFD ok"},
		"a status alone where nothing is":     {"", "the app answered 500 Internal Server Error"},
		"cut at 1 KiB":                        {strings.Repeat("x", 5000), strings.Repeat("x", 1024)},
		"cut between two characters":          {strings.Repeat("x", 1023) + "é", strings.Repeat("x", 1023)},
		"cut between two, after replacements": {strings.Repeat("\xff a", 600), strings.Repeat("\uFFFD a", 204) + "\uFFFD"},
	}
	client := newClient(t, invoker.Options{})
	target := startApp(t, app.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target.Script("/", app.Reply(500, tt.body))
			if got := invoke(client, attempt(target.URL()+"/")).Message; got != tt.want {
				t.Errorf("message = %q, want %q", got, tt.want)
			}
		})
	}
}
