package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
)

func ExampleParse() {
	doc, _, err := config.Parse("jobs.yaml", []byte(`
jobs:
  - name: cleanup.nightly
    path: /jobs/cleanup
    schedule: "0 3 * * *"
`), config.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	trigger := doc.Jobs[0].Triggers[0]
	fmt.Println(doc.Jobs[0].Name, trigger.Name, trigger.Schedule, trigger.Misfire.Policy)
	// Output: cleanup.nightly default cron 0 3 * * * tz=UTC run-once
}

func ExampleParse_errors() {
	_, _, err := config.Parse("jobs.yaml", []byte(`
jobs:
  - name: cleanup.nightly
    path: /jobs/cleanup
    scedule: "0 3 * * *"
    timeout: 60
`), config.Options{})
	fmt.Println(err)
	// Output:
	// jobs.yaml:5:5: jobs[0].scedule (job cleanup.nightly): unknown key (did you mean schedule?)
	// jobs.yaml:6:14: jobs[0].timeout (job cleanup.nightly): "60" has no unit (want a duration such as 30s, 5m or 2h)
}

// parse reads a document that has to be good.
func parse(t *testing.T, doc string) config.Document {
	t.Helper()
	d, _, err := config.Parse("jobs.yaml", []byte(doc), config.Options{})
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, doc)
	}
	return d
}

func cron(text, zone string) schedule.Schedule {
	return schedule.Schedule{Kind: schedule.KindCron, Cron: text, TimeZone: zone}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	got := parse(t, "jobs:\n  - {name: a, path: /x, schedule: '0 3 * * *'}\n").Jobs
	want := []config.Job{{
		Name: "a", Path: "/x", Method: "POST", Timeout: 30 * time.Second,
		Overlap: config.OverlapSerial, Recovery: config.RecoveryNone, Scope: config.ScopeCluster, HistoryLimit: 20,
		Triggers: []config.Trigger{{
			Name: "default", Priority: 5, Schedule: cron("0 3 * * *", "UTC"),
			Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: time.Minute},
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestEveryKeyArrives(t *testing.T) {
	doc := parse(t, everyKey)
	if got, want := doc.Target, "http://localhost:8080/base"; got != want {
		t.Errorf("target = %q, want %q", got, want)
	}
	if len(doc.Jobs) != 3 || doc.Jobs[0].Name != "all" || doc.Jobs[1].Name != "manual" || doc.Jobs[2].Name != "shorthand" {
		t.Fatalf("jobs are not ordered by name: %v", doc.Jobs)
	}
	closed := map[string]schedule.CalendarSpec{
		"closed":   {Any: []string{"holidays", "weekends"}},
		"holidays": {Dates: []string{"2026-10-01", "2026-10-02"}, TimeZone: "Asia/Shanghai"},
		"weekends": {Weekdays: []string{"SAT", "SUN"}},
		"night":    {From: "22:00", To: "06:00"},
	}
	inherited := config.Misfire{Policy: config.MisfireCatchUp, Grace: 30 * time.Second, Window: 12 * time.Hour, Limit: 5}
	all := config.Job{
		Name: "all", Description: "everything", Target: "http://127.0.0.1:9999", Path: "/jobs/all", Method: "PATCH",
		Headers: map[string]string{"X-Other": "thing"}, BearerFile: "/token",
		Data:   json.RawMessage(`{"big":9007199254740993,"fine":0.1000000000000000055,"format":"pdf","huge":1e400}`),
		Paused: true, Timeout: 20 * time.Minute, Deadline: 2 * time.Hour, Overlap: config.OverlapSkip,
		Retry: config.Retry{
			MaxRetries: 3, Delay: time.Minute, Backoff: config.BackoffExponential, MaxDelay: 30 * time.Minute,
			Jitter: 0.1, Statuses: []int{503, 409}, NoUnknown: true,
		},
		Recovery: config.RecoveryNone, Scope: config.ScopeCluster, HistoryLimit: 5,
		Triggers: []config.Trigger{
			{
				Name: "text", Priority: 7, Misfire: inherited,
				Schedule: schedule.Schedule{Kind: schedule.KindCron, Cron: "0 0 6 * * MON-FRI", TimeZone: "Asia/Tokyo", Calendar: "closed"},
			},
			{
				Name: "cron", Description: "last day of the month", Data: json.RawMessage(`{"format":"xlsx"}`), Priority: 8,
				Schedule: schedule.Schedule{
					Kind: schedule.KindCron, Cron: "0 0 22 L * ?", TimeZone: "America/New_York", Calendar: "night",
					Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2029, 12, 31, 23, 0, 0, 0, time.UTC),
					Ambiguous: "both", Gap: "next", Jitter: 5 * time.Second,
				},
				Misfire: config.Misfire{Policy: config.MisfireSkip, Grace: 30 * time.Second},
			},
			{
				Name: "zoned", Priority: 7, Schedule: cron("0 9 * * *", "UTC"),
				Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: 30 * time.Second},
			},
			{Name: "rate", Priority: 7, Misfire: inherited, Schedule: schedule.Schedule{Kind: schedule.KindRate, Interval: time.Minute}},
			{Name: "every", Priority: 7, Misfire: inherited, Schedule: schedule.Schedule{Kind: schedule.KindEvery, Interval: 10 * time.Minute, Count: 5}},
			{Name: "once", Priority: 7, Misfire: inherited, Schedule: schedule.Schedule{Kind: schedule.KindOnce, At: time.Date(2100, 11, 1, 0, 0, 0, 0, time.UTC)}},
		},
		Calendars: closed,
	}
	if diff := cmp.Diff(all, doc.Jobs[0]); diff != "" {
		t.Errorf("job all (-want +got):\n%s", diff)
	}
	defaults := config.Job{
		Name: "manual", Target: "http://localhost:8080/base", Path: "/jobs/m", Method: "PUT",
		Headers: map[string]string{"X-Team": "data"}, BearerFile: "/var/run/secrets/token",
		Timeout: 20 * time.Second, Deadline: time.Hour, Overlap: config.OverlapParallel, MaxParallel: 3,
		Retry:    config.Retry{MaxRetries: 1, Delay: 2 * time.Second, Backoff: config.BackoffFixed},
		Recovery: config.RecoveryRerun, Scope: config.ScopeCluster, HistoryLimit: 50,
	}
	if diff := cmp.Diff(defaults, doc.Jobs[1]); diff != "" {
		t.Errorf("job manual (-want +got):\n%s", diff)
	}
	if len(doc.Calendars) != 6 {
		t.Errorf("%d calendars, want 6", len(doc.Calendars))
	}
}

// A version of a job in the catalog is its JSON form.
func TestJobsSurviveJSON(t *testing.T) {
	for _, job := range parse(t, everyKey).Jobs {
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		var again config.Job
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if diff := cmp.Diff(job, again); diff != "" {
			t.Errorf("job %s (-written +read):\n%s", job.Name, diff)
		}
	}
}

func TestZonePrecedence(t *testing.T) { // R052
	tests := map[string]struct{ defaults, job, trigger, schedule, want string }{
		"the schedule's comes first":   {"Asia/Tokyo", "Asia/Seoul", "Asia/Dubai", "Asia/Kabul", "Asia/Kabul"},
		"then the trigger's":           {"Asia/Tokyo", "Asia/Seoul", "Asia/Dubai", "", "Asia/Dubai"},
		"then the job's":               {"Asia/Tokyo", "Asia/Seoul", "", "", "Asia/Seoul"},
		"then the defaults'":           {"Asia/Tokyo", "", "", "", "Asia/Tokyo"},
		"and then UTC":                 {"", "", "", "", "UTC"},
		"names of old times are known": {"", "", "", "CET", "CET"},               // R048
		"and so are their aliases":     {"", "", "", "US/Pacific", "US/Pacific"}, // R048
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			zone := func(name string) string {
				if name == "" {
					return ""
				}
				return ", timeZone: " + name
			}
			doc := fmt.Sprintf("defaults: {timeout: 1s%s}\njobs:\n  - {name: a, path: /x%s, triggers: [{name: t%s, schedule: {cron: '0 3 * * *'%s}}]}\n",
				zone(tt.defaults), zone(tt.job), zone(tt.trigger), zone(tt.schedule))
			if got := parse(t, doc).Jobs[0].Triggers[0].Schedule.TimeZone; got != tt.want {
				t.Errorf("zone %q, want %q in\n%s", got, tt.want, doc)
			}
		})
	}
}

func TestEveryProblemOfADocumentIsReported(t *testing.T) { // R016, R050, R052, R056, R057, R065, R066, R141
	text, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = config.Parse("bad.yaml", text, config.Options{})
	if err == nil {
		t.Fatal("Parse succeeded")
	}
	golden(t, "testdata/bad.golden", []byte(err.Error()+"\n"))
}

func TestRefused(t *testing.T) {
	tests := map[string]struct{ doc, want string }{
		"an empty document, which would remove every job": {"", "f:1:1: the document is empty (want `jobs:`; write `jobs: []` for none)"},
		"comments alone":                     {"# nothing\n", "f:1:1: the document is empty (want `jobs:`; write `jobs: []` for none)"},
		"a document without jobs":            {"defaults: {}", "f:1:1: jobs is missing (write `jobs: []` for none)"},
		"broken YAML":                        {"jobs: [", "f:1:7: sequence end token ']' not found"},
		"a tab":                              {"jobs:\n\t- name: a", "f:2:1: found character '\t' that cannot start any token"},
		"two documents":                      {"jobs: []\n---\njobs: []\n", "f:3:1: a second document starts here (want one)"},
		"a tag":                              {"jobs: !!set {}", "f:1:7: tags are not supported (want plain YAML)"},
		"an alias of nothing":                {"jobs: *a", "f:1:7: alias *a names no anchor that is complete before it"},
		"an alias of itself":                 {"jobs: &a [*a]", "f:1:11: alias *a names no anchor that is complete before it"},
		"no text":                            {"jobs: \xff", "f:1:7: is not UTF-8 text without control characters (want UTF-8)"},
		"a zero byte":                        {"jobs: []\n\x00", "f:2:1: is not UTF-8 text without control characters (want UTF-8)"},
		"deep nesting":                       {"jobs: " + strings.Repeat("[", 100_000), "f:1:71: is nested too deep (want at most 64 levels)"},
		"deep nesting in blocks":             {strings.Repeat("- ", 100_000), "f:1:385: is nested too deep (want at most 64 levels)"},
		"deep nesting in JSON":               {`{"jobs":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", "f:1:73: is nested too deep (want at most 64 levels)"},
		"a mapping of very many keys":        {manyKeys(1001), "f:1001:6: is one key too many for a mapping (want at most 1000)"},
		"a document of more than a mebibyte": {strings.Repeat("#", 1<<20+1), "f:1:1: document has 1048577 bytes (want at most 1048576)"},
		"aliases that multiply": {
			"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
				"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" +
				"jobs: []",
			"f:6:7: holds more than 500000 values (an alias counts as all that it stands for)",
		},
		"data of more than 256 KiB, made by aliases": {
			"jobs:\n  - name: a\n    path: /x\n    data:\n      a: &a " + strings.Repeat("x", 50_000) + "\n      b: [*a, *a, *a, *a, *a, *a]\n",
			"f:5:7: jobs[0].data (job a): has more than 262144 bytes as JSON (want at most that)",
		},
		"data that are too large only when they are merged": {
			"jobs:\n  - name: a\n    path: /x\n    data: {a: " + strings.Repeat("x", 200_000) + "}\n    triggers:\n      - name: t\n        schedule: rate 5s\n        data: {b: " + strings.Repeat("x", 70_000) + "}\n",
			"f:8:15: jobs[0].triggers[0].data (job a): has more than 262144 bytes as JSON (want at most that)",
		},
		"a cron text of 300 characters": {
			job("schedule: '" + strings.Repeat("1,", 146) + "1 * * * *'"),
			"f:4:15: jobs[0].schedule (job a): cron expression has 301 characters, the limit is 256",
		},
		"a job without a zone, where one is wanted": { // R054
			"defaults: {requireTimeZone: true}\n" + job("schedule: '0 3 * * *'"),
			"f:5:15: jobs[0].schedule (job a): has no time zone, and defaults.requireTimeZone is set (want timeZone, UTC if that is meant)",
		},
		"silence of an app that answers when it is done": {
			job("heartbeatTimeout: 10s"),
			"f:4:23: jobs[0].heartbeatTimeout (job a): has a meaning only with async: true",
		},
		"a silence that the timeout ends": {
			job("async: true\n    timeout: 60s\n    heartbeatTimeout: 1m"),
			"f:6:23: jobs[0].heartbeatTimeout (job a): is 1m, and timeout, which ends the run whatever the app says, is 1m (want a shorter one)",
		},
		"a silence of less than a second": {
			job("async: true\n    heartbeatTimeout: 999ms"),
			"f:5:23: jobs[0].heartbeatTimeout (job a): \"999ms\" is out of range (want 1s to 720h)",
		},
		// DESIGN: an invalid document is refused whole; the last good one stays in force.
		"a paused job with a bad schedule": { // R172
			job("paused: true\n    schedule: '0 3 * *'"),
			"f:5:15: jobs[0].schedule (job a): cron expression has 4 fields, want 5 (minute hour dom month dow), 6 (second first) or 7 (year last)",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := config.Parse("f", []byte(tt.doc), config.Options{})
			if err == nil {
				t.Fatal("Parse succeeded")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%02d: 1\n", i)
	}
	return b.String()
}

func TestAWrongFileIsNotListedInFull(t *testing.T) {
	_, _, err := config.Parse("f", []byte("jobs:\n"+strings.Repeat("  - {}\n", 2000)), config.Options{})
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 101 {
		t.Fatalf("Parse lists something else than 100 problems and a remark: %.200v", err)
	}
	var last *config.FieldError
	if all := joined.Unwrap(); !errors.As(all[100], &last) || last.Line != 52 || last.Err.Error() != "3900 more problems from here on are not listed" {
		t.Errorf("the remark is %v", all[100])
	}
}

func TestSpellings(t *testing.T) {
	want := parse(t, "jobs:\n  - {name: a, path: /x, timeout: 20s, schedule: rate 5s, data: {n: 1, t: \"😀/\"}}\n")
	tests := map[string]string{
		"JSON, with tabs and surrogates": "{\n\t\"jobs\":\t[{\"name\": \"a\", \"path\": \"\\/x\", \"timeout\": \"20s\",\n\t\t\"schedule\": \"rate 5s\", \"data\": {\"n\": 1, \"t\": \"\\ud83d\\ude00\\/\"}}]\n}\n",
		"lines that end as on Windows":   "jobs:\r\n  - name: a\r\n    path: /x\r\n    timeout: 20s\r\n    schedule: rate 5s\r\n    data:\r\n      t: 😀/\r\n      n: 1\r\n",
		"a byte order mark":              "\ufeffjobs: [{name: a, path: /x, timeout: 20s, schedule: rate 5s, data: {t: 😀/, n: 1}}]",
		"a directive and markers":        "%YAML 1.2\n---\njobs: [{name: a, path: /x, timeout: 20s, schedule: rate 5s, data: {t: 😀/, n: 1}}]\n...\n",
		"anchors and merge keys":         "defaults: &d {timeout: 20s}\njobs:\n  - {<<: *d, name: a, path: /x, schedule: rate 5s, data: {t: 😀/, n: 1}}\n",
		"the mapping form":               "jobs: [{name: a, path: /x, timeout: 20s, triggers: [{name: default, schedule: {rate: 5s}}], data: {t: 😀/, n: 1}}]",
		"what is the default anyway":     "jobs: [{name: a, path: /x, method: POST, paused: false, overlap: serial, retry: {maxRetries: 0}, timeout: 20s, schedule: rate 5s, data: {t: 😀/, n: 1}}]",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(t, text)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Jobs[0].Fingerprint() != want.Jobs[0].Fingerprint() {
				t.Error("equal jobs have different fingerprints")
			}
		})
	}
}

func TestFingerprintsTellJobsApart(t *testing.T) { // R005: an edit is a new version
	lines := []string{
		"schedule: rate 5s", "schedule: rate 6s", "schedule: every 00:00:05", "schedule: manual", "timeout: 29s", "paused: true",
		"data: {a: 1}", "data: {a: 1.0}", "data: {a: '1'}", "description: x", "retry: {maxRetries: 1}", "overlap: skip",
	}
	seen := make(map[string]string)
	for _, line := range lines {
		f := parse(t, job(line)).Jobs[0].Fingerprint()
		if len(f) != 64 {
			t.Errorf("fingerprint %q is no SHA-256", f)
		}
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have one fingerprint", line, other)
		}
		seen[f] = line
	}
}

func TestDataArrivesAsWritten(t *testing.T) {
	tests := map[string]struct{ yaml, want string }{
		"a whole number beyond 2^53":       {"9007199254740993", "9007199254740993"},
		"more digits than a float has":     {"0.1000000000000000055", "0.1000000000000000055"},
		"a number beyond every float":      {"1e400", "1e400"},
		"a zero that is kept":              {"1.10", "1.10"},
		"a negative zero":                  {"-0", "-0"},
		"an exponent in capitals":          {"1E+5", "1E+5"},
		"forty digits":                     {"1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890"},
		"a number in quotes is text":       {"'1e400'", `"1e400"`},
		"a tag makes text":                 {"!!str 5", `"5"`},
		"yes and no are text":              {"[yes, no, on, off]", `["yes","no","on","off"]`},
		"a date is text":                   {"2026-01-01", `"2026-01-01"`},
		"digits with underscores are text": {"1_000", `"1_000"`},
		"true, false and null":             {"[true, FALSE, null, ~]", `[true,false,null,null]`},
		"no value is null":                 {"", "null"},
		"a block of text":                  {"|\n        one\n        <two> & three\n", `"one\n<two> & three\n"`},
		"a folded text":                    {">-\n        one\n        two\n", `"one two"`},
		"a list of mappings":               {"\n        - b: 1\n          a: [2]\n", `[{"a":[2],"b":1}]`},
		"keys that are numbers":            {"{1: a, true: b}", `{"1":"a","true":"b"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(t, "jobs:\n  - name: a\n    path: /x\n    data:\n      v: "+tt.yaml+"\n").Jobs[0].Data
			if diff := cmp.Diff(`{"v":`+tt.want+`}`, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeData(t *testing.T) {
	tests := map[string]struct{ job, trigger, manual, want, err string }{
		"nothing":                               {"", "", "", "", ""},
		"the later one wins, key by key":        {`{"a":1,"b":1,"c":1}`, `{"b":2,"c":2}`, `{"c":3,"d":3}`, `{"a":1,"b":2,"c":3,"d":3}`, ""},
		"keys below the top are not merged":     {`{"a":{"x":1}}`, `{"a":{"y":2}}`, "", `{"a":{"y":2}}`, ""},
		"null is a value":                       {`{"a":1}`, `{"a":null}`, "", `{"a":null}`, ""},
		"numbers stay digit for digit":          {`{"a":9007199254740993}`, `{"b":0.1000000000000000055}`, `{"c":1e400}`, `{"a":9007199254740993,"b":0.1000000000000000055,"c":1e400}`, ""},
		"equal data are equal bytes":            {`{ "b" : [ 1 , 2 ], "a":"<" }`, "", "", `{"a":"<","b":[1,2]}`, ""},
		"an empty object is no absence":         {"{}", "", "", "{}", ""},
		"a list is refused":                     {"", "", "[]", "", "data is no JSON object"},
		"null is refused":                       {"", "", "null", "", "data is no JSON object"},
		"what is no JSON is refused":            {"", "", "{a}", "", "data is no JSON object: invalid character 'a' looking for beginning of object key string"},
		"what grows too large is refused":       {`{"a":"` + strings.Repeat("x", 200_000) + `"}`, `{"b":"` + strings.Repeat("x", 70_000) + `"}`, "", "", "has more than 262144 bytes as JSON (want at most that)"},
		"what is too large already is not read": {"", "", strings.Repeat("[", 300_000), "", "has more than 262144 bytes as JSON (want at most that)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.MergeData(json.RawMessage(tt.job), json.RawMessage(tt.trigger), json.RawMessage(tt.manual))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff([]string{tt.want, tt.err}, []string{string(got), text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct{ schedule, want string }{
		"a once in the past":             {"once 2026-02-10T08:34:15Z", "f:4:15: jobs[0].schedule (job a): lies in the past: it will not fire"}, // R141
		"a once to come":                 {"once 2026-12-10T08:34:15Z", ""},
		"an end in the past":             {"rate 5s end=2026-10-01T00:00:00Z", "f:4:15: jobs[0].schedule (job a): ended in the past: it will not fire again"},
		"a year in the past":             {"0 0 0 1 1 ? 2020", "f:4:15: jobs[0].schedule (job a): has no instant any more: it will not fire again"},
		"an end before the next instant": {"0 0 1 1 * end=2026-12-01T00:00:00Z", "f:4:15: jobs[0].schedule (job a): has no instant any more: it will not fire again"},
		"a leap day":                     {"0 0 29 2 *", ""},
		"a fixed rate":                   {"rate 5s", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := config.Parse("f", []byte(job("schedule: "+tt.schedule)), config.Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("warnings %q, want %q", text, tt.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	const listed = "api.example.com"
	tests := map[string]struct {
		target string
		good   bool
	}{
		"loopback by name":                      {"http://localhost:8080", true},
		"loopback by address":                   {"http://127.0.0.1", true},
		"another loopback address":              {"https://127.1.2.3:1", true},
		"loopback of IPv6":                      {"http://[::1]:8080/base", true},
		"loopback of IPv4 in IPv6":              {"http://[::ffff:127.0.0.1]:8080", true},
		"a listed host":                         {"https://API.example.com:8443", true},
		"a host that is not listed":             {"http://example.com", false},
		"a part of a listed host":               {"http://example.com", false},
		"a listed host as a user":               {"http://api.example.com@evil.example", false},
		"the cloud's metadata":                  {"http://169.254.169.254", false},
		"the cloud's metadata in IPv6":          {"http://[::ffff:169.254.169.254]", false},
		"link-local IPv6":                       {"http://[fe80::1]", false},
		"link-local IPv6 with a zone":           {"http://[fe80::1%25eth0]", false},
		"all addresses":                         {"http://0.0.0.0:8080", false},
		"an address written as one number":      {"http://2130706433", false},
		"an address in hexadecimal":             {"http://0x7f.1", false},
		"no host":                               {"http://:8080", false},
		"no scheme":                             {"127.0.0.1:8080", false},
		"another scheme":                        {"ftp://127.0.0.1", false},
		"a password":                            {"http://a:b@127.0.0.1", false},
		"a port of more than 16 bits":           {"http://127.0.0.1:99999", false},
		"a fragment":                            {"http://127.0.0.1/#x", false},
		"a query, which a path would end up in": {"http://127.0.0.1/?x=1", false},
		"a line break":                          {"\"http://127.0.0.1/\\nx\"", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := config.Parse("f", []byte(job("target: "+tt.target)), config.Options{AllowedHosts: []string{listed, "169.254.169.254"}})
			if (err == nil) != tt.good {
				t.Errorf("target %s: %v, want good: %t", tt.target, err, tt.good)
			}
		})
	}
}

func TestIcsComesFromBesideTheDocument(t *testing.T) {
	const events = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20261225\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	files := map[string]string{"holidays.ics": events, "broken.ics": "hello", "empty.ics": "", "large.ics": strings.Repeat("x", 300_000)}
	opts := config.Options{Resolve: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("no such key")
	}}
	doc := func(name string) string {
		return "calendars: {feast: {ics: " + name + "}}\n" + job("schedule: {cron: '0 9 * * *', calendar: feast}")
	}
	d, _, err := config.Parse("f", []byte(doc("holidays.ics")), opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Jobs[0].Calendars["feast"].ICS; got != events {
		t.Errorf("the calendar holds %q", got)
	}
	for name, want := range map[string]string{
		"other.ics": `"other.ics" cannot be read: no such key`,
		"empty.ics": `"empty.ics" is empty (want an iCalendar file)`,
		"large.ics": `"large.ics" has more than 262144 bytes (want at most that)`,
	} {
		_, _, err := config.Parse("f", []byte(doc(name)), opts)
		if want = "f:1:26: calendars.feast.ics: " + want; err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
	if _, _, err := config.Parse("f", []byte(doc("broken.ics")), opts); err == nil || !strings.HasPrefix(err.Error(), "f:1:26: calendars.feast.ics: ") {
		t.Errorf("broken.ics: %v", err)
	}
}

func TestManyJobs(t *testing.T) {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 8000 {
		fmt.Fprintf(&b, "  - {name: job-%04d, path: /jobs/%04d, schedule: \"H/5 * * * *\", retry: {maxRetries: 3}}\n", i, i)
	}
	if got := len(parse(t, strings.ReplaceAll(b.String(), "H/5", "*/5")).Jobs); got != 8000 {
		t.Errorf("%d jobs, want 8000", got)
	}
}
