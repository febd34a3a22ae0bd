package config_test

import (
	"strings"
	"testing"

	"github.com/leasecron/leasecron/config"
)

// What YAML makes of an expression without quotes is an error that says so, at the place of the expression.
func TestAnUnquotedCronIsToldToNeedQuotes(t *testing.T) {
	const (
		block   = "jobs:\n  - name: a\n    path: /a\n    schedule: %\n    timeout: 5s\n"
		last    = "jobs:\n  - name: a\n    path: /a\n    schedule: %"
		flow    = "jobs:\n  - {name: a, path: /a, schedule: %, timeout: 5s}\n  - {name: b, path: /b}\n"
		mapping = "jobs:\n  - name: a\n    path: /a\n    triggers:\n      - name: x\n        schedule: {cron: %}\n"
		item    = "jobs:\n  - name: a\n    path: /a\n    triggers:\n      - schedule: %\n        name: x\n"
	)
	forms := map[string]string{block: "f.yaml:4:15", last: "f.yaml:4:15", flow: "f.yaml:2:35", mapping: "f.yaml:6:26", item: "f.yaml:5:19"}
	for _, expr := range []string{
		"*/5 * * * *", "* * * * *", "*", "*/5", "*,*", "*/5,3 * * * *", "*/5 * * * * tz=UTC", "@daily", "[0-9] 3 * * *", "{a} 3 * * *",
		"&a * * * *", "& * * * *", "! * * *", "`0 3`", "'*/5' * * * *", `"*/5" * * * *`, "? * *",
	} {
		for form, place := range forms {
			_, _, err := config.Parse("f.yaml", []byte(strings.Replace(form, "%", expr, 1)), config.Options{})
			whole := strings.NewReplacer(`"`, "", "'", "").Replace(expr)
			checkOneError(t, expr, err, place, `in quotes: `, `: "`+whole+`")`)
		}
	}
	for name, tt := range map[string]struct{ doc, place, want string }{
		"a bracket that is not closed":   {strings.Replace(block, "%", "[0 3 * * *", 1), "f.yaml:4:15", `"[0 3 * * *"`},
		"a comment after it":             {strings.Replace(block, "%", "@daily # at night", 1), "f.yaml:4:15", `schedule: "@daily")`},
		"the second of two in a line":    {"jobs:\n  - {name: a, path: /a, triggers: [{name: x, schedule: \"*/5 * * * *\"}, {name: y, schedule: */5 * * * *}]}\n", "f.yaml:2:92", `schedule: "*/5 * * * *")`},
		"a tag":                          {strings.Replace(block, "%", "!daily", 1), "f.yaml:4:15", `schedule: "!daily")`},
		"a calendar's":                   {"calendars:\n  c: {cron: * * 0-7 * * *}\njobs: []\n", "f.yaml:2:13", `cron: "* * 0-7 * * *")`},
		"letters of more than one byte":  {"jobs:\n  - {description: \"日本\", path: /a, schedule: @daily}\n", "f.yaml:2:45", `schedule: "@daily")`},
		"lines that end with CR and LF":  {"jobs:\r\n  - name: a\r\n    path: /a\r\n    schedule: @daily\r\n", "f.yaml:4:15", `schedule: "@daily")`},
		"not another error of that kind": {"jobs:\n  - name: a\n    path: @a\n    schedule: '@daily'\n", "f.yaml:3:11", "reserved character"},
		"nor an alias that is misspelt":  {"jobs:\n  - name: a\n    path: /a\n    schedule: *nightly\n", "f.yaml:4:15", "alias *nightly names no anchor"},
	} {
		_, _, err := config.Parse("f.yaml", []byte(tt.doc), config.Options{})
		checkOneError(t, name, err, tt.place, tt.want)
	}
	_, _, err := config.Parse("f.yaml", []byte(strings.Replace(flow, "%", "0 3 1,15 * *", 1)), config.Options{})
	if want := `f.yaml:2:41: jobs[0]."15 * *" (job a): unknown key (within braces a comma ends`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a comma within braces: error is\n%v\nwant one that has %q", err, want)
	}
}

// A name from elsewhere is answered with the one that it has here.
func TestKeysThatPeopleBringAlong(t *testing.T) {
	const (
		job      = "jobs:\n  - {name: a, path: /a, %: 1}\n"
		defaults = "defaults: {%: 1}\njobs: []\n"
		trigger  = "jobs:\n  - {name: a, path: /a, triggers: [{name: x, schedule: rate 60s, %: 1}]}\n"
		schedule = "jobs:\n  - {name: a, path: /a, schedule: {rate: 60s, %: 1}}\n"
		retry    = "jobs:\n  - {name: a, path: /a, retry: {maxRetries: 1, %: 1}}\n"
		retries  = "want retry: {maxRetries: …}"
	)
	for _, tt := range []struct{ form, key, want string }{
		{job, "url", "want target, the base URL, and path"},
		{job, "endpoint", "want target, the base URL, and path"},
		{job, "uri", "want target, the base URL, and path"},
		{defaults, "url", "want target, the base URL)"},
		{job, "retries", retries},
		{job, "backoffLimit", retries},
		{job, "maxRetries", "maxRetries belongs into retry"},
		{job, "maxRetry", retries},
		{defaults, "retries", retries},
		{retry, "retries", "did you mean maxRetries?"},
		{retry, "maxRetry", "did you mean maxRetries?"},
		{schedule, "tz", "did you mean timeZone?"},
		{schedule, "timezone", "did you mean timeZone?"},
		{trigger, "tz", "did you mean timeZone?"},
		{job, "tz", "did you mean timeZone?"},
		{job, "concurrencyPolicy", "want overlap"},
		{job, "startingDeadlineSeconds", "want misfire of a trigger"},
		{trigger, "startingDeadlineSeconds", "want misfire, whose window"},
		{defaults, "startingDeadlineSeconds", "want misfire, whose window"},
		{job, "activeDeadlineSeconds", "want timeout for one attempt"},
		{job, "timeoutSeconds", "did you mean timeout?"},
		{job, "suspend", "want paused"},
		{trigger, "suspend", "want paused of the job"},
		{job, "successfulJobsHistoryLimit", "did you mean historyLimit?"},
		{job, "failedJobsHistoryLimit", "did you mean historyLimit?"},
		{job, "cron", "cron belongs into a schedule"},
		{retry, "url", "want one of"}, // there is no counterpart here
	} {
		_, _, err := config.Parse("f.yaml", []byte(strings.Replace(tt.form, "%", tt.key, 1)), config.Options{})
		checkOneError(t, tt.form+tt.key, err, tt.key, "unknown key ("+tt.want)
	}
}

// A manifest in place of the document that it carries is one error, not one for each of its keys.
func TestAManifestIsNoJobsDocument(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop-jobs}\n"
	for name, tt := range map[string]struct {
		doc  string
		want []string
	}{
		"a ConfigMap with one key":    {head + "data:\n  jobs.yaml: |\n    jobs: []\n", []string{"f.yaml:5:3", "the value of data.jobs.yaml)"}},
		"the key that has the jobs":   {head + "data:\n  a.ics: x\n  jobs.yaml: |\n    jobs: []\n", []string{"f.yaml:6:3", "the value of data.jobs.yaml)"}},
		"a key that has to be quoted": {head + "data:\n  \"a b\": x\n", []string{"f.yaml:5:3", `the value of data."a b")`}},
		"a ConfigMap without data":    {head, []string{"f.yaml:2:7: kind: ", "the value of data.<key>)"}},
		"as JSON":                     {`{"apiVersion":"v1","kind":"ConfigMap","data":{"jobs.yaml":"jobs: []"}}`, []string{"the value of data.jobs.yaml)"}},
		"another kind":                {"apiVersion: apps/v1\nkind: Deployment\nspec: {}\n", []string{"f.yaml:2:7: kind: ", `manifest of kind "Deployment" (want a jobs document)`}},
	} {
		_, _, err := config.Parse("f.yaml", []byte(tt.doc), config.Options{})
		checkOneError(t, name, err, tt.want...)
	}
}

// checkOneError wants one line that holds all of want.
func checkOneError(t *testing.T, name string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want one that has %q", name, want)
		return
	}
	for _, w := range want {
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error is\n%v\nwant one line with %q", name, err, w)
		}
	}
}
