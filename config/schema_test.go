package config_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leasecron/leasecron/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const schemaFile = "../schema/jobs.schema.json"

func TestPublishedSchemaIsCurrent(t *testing.T) {
	got, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, got)
}

// golden compares with a file, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not current, go test ./config -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(config.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(config.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What an editor accepts by the schema the sidecar accepts, and the other way round, as far as a
// schema can tell.
func TestSchemaAndParserAgree(t *testing.T) {
	schema := compileSchema(t)
	tests := map[string]struct {
		doc  string
		good bool
	}{
		"no jobs":                                     {"jobs: []", true},
		"every key of a document":                     {everyKey, true},
		"the example":                                 {readExample(t), true},
		"jobs missing":                                {"defaults: {}", false},
		"jobs without a value":                        {"jobs:", false},
		"a list":                                      {"[]", false},
		"unknown key at the top":                      {"jobs: []\njob: []", false},
		"unknown key in defaults":                     {"defaults: {path: /x}\njobs: []", false},
		"unknown key in a job":                        {job("cron: x"), false},
		"unknown key in a trigger":                    {job("triggers: [{name: a, schedule: rate 5s, path: /x}]"), false},
		"unknown key in a schedule":                   {job("schedule: {rate: 5s, zone: UTC}"), false},
		"unknown key in retry":                        {job("retry: {maxRetries: 1, max: 1}"), false},
		"unknown key in misfire":                      {job("triggers: [{name: a, schedule: rate 5s, misfire: {graze: 5s}}]"), false},
		"unknown key in a calendar":                   {"calendars: {a: {weekdays: [], x: 1}}\njobs: []", false},
		"a job without a name":                        {"jobs: [{path: /x}]", false},
		"a job without a path":                        {"jobs: [{name: a}]", false},
		"a bad name":                                  {"jobs: [{name: A, path: /x}]", false},
		"a bad calendar name":                         {"calendars: {A: {weekdays: []}}\njobs: []", false},
		"a path without a slash":                      {"jobs: [{name: a, path: x}]", false},
		"a key without a value":                       {job("description:"), false},
		"a trigger without a schedule":                {job("triggers: [{name: a}]"), false},
		"a trigger without a name":                    {job("triggers: [{schedule: rate 5s}]"), false},
		"schedule and triggers":                       {job("schedule: rate 5s\n    triggers: []"), false},
		"two kinds of schedule":                       {job("schedule: {rate: 5s, cron: '* * * * *'}"), false},
		"no kind of schedule":                         {job("schedule: {timeZone: UTC}"), false},
		"two kinds of calendar":                       {"calendars: {a: {weekdays: [], cron: '* * * * *'}}\njobs: []", false},
		"half a span":                                 {"calendars: {a: {from: '22:00'}}\njobs: []", false},
		"a duration without a unit":                   {job("timeout: 60"), false},
		"a duration in quotes, still without a unit":  {job("timeout: '60'"), false},
		"a negative duration":                         {job("timeout: -1s"), false},
		"a mixed duration":                            {job("timeout: 1h30m"), true},
		"a word for a bool":                           {job("paused: yes"), false},
		"a text for a number":                         {job("historyLimit: '5'"), false},
		"a number with a part":                        {job("historyLimit: 5.5"), false},
		"a number out of range":                       {job("historyLimit: 0"), false},
		"retries out of range":                        {job("retry: {maxRetries: 101}"), false},
		"a jitter out of range":                       {job("retry: {maxRetries: 1, jitter: 1.5}"), false},
		"a status out of range":                       {job("retry: {maxRetries: 1, statuses: [200]}"), false},
		"no statuses":                                 {job("retry: {maxRetries: 1, statuses: []}"), false},
		"an unknown overlap":                          {job("overlap: queue"), false},
		"an unknown method":                           {job("method: GET"), false},
		"an unknown back-off":                         {job("retry: {maxRetries: 1, backoff: linear}"), false},
		"an unknown misfire policy":                   {job("triggers: [{name: a, schedule: rate 5s, misfire: never}]"), false},
		"scope instance":                              {job("scope: instance"), true},
		"recovery review":                             {job("recovery: review"), true},
		"a run that ends later":                       {job("async: true"), true},
		"a run that ends later, or when it is silent": {job("async: true\n    heartbeatTimeout: 10s"), true},
		"a heartbeat timeout for a run that does not": {job("heartbeatTimeout: 10s"), false},
		"a word for async":                            {job("async: later"), false},
		"misfire on the job":                          {job("misfire: skip"), false},
		"data that is no mapping":                     {job("data: [1]"), false},
		"data of any shape":                           {job("data: {a: [1, {b: null}], c: x}"), true},
		"a header that is no text":                    {job("headers: {X-A: 5}"), false},
		"a header name with a space":                  {job("headers: {'X A': x}"), false},
		"a relative bearer file":                      {job("bearerFile: token"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := config.Parse("jobs.yaml", []byte(tt.doc), config.Options{})
			if (err == nil) != tt.good {
				t.Errorf("the parser says %v of\n%s", err, tt.doc)
			}
			text, err := yaml.YAMLToJSON([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != tt.good {
				t.Errorf("the schema says %v of\n%s", err, text)
			}
		})
	}
}

// job is a document with one job that has a further line.
func job(line string) string { return "jobs:\n  - name: a\n    path: /x\n    " + line + "\n" }

func readExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../examples/jobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// everyKey uses each key that there is.
const everyKey = `
defaults:
  target: http://localhost:8080/base/
  method: PUT
  headers: {X-Team: data}
  bearerFile: /var/run/secrets/token
  timeZone: Asia/Shanghai
  requireTimeZone: true
  timeout: 20s
  deadline: 1h
  overlap: parallel
  maxParallel: 3
  retry: {maxRetries: 1, delay: 2s}
  recovery: rerun
  historyLimit: 50
  priority: 7
  misfire: {policy: catch-up, grace: 30s, window: 12h, limit: 5}
calendars:
  holidays: {dates: [2026-10-01, 2026-10-02], timeZone: Asia/Shanghai}
  weekends: {weekdays: [SAT, SUN]}
  free: {weekdays: []}
  night: {from: "22:00", to: "06:00"}
  morning: {cron: "* * 0-7 * * *"}
  closed: {any: [holidays, weekends]}
jobs:
  - name: shorthand
    path: /jobs/a?b=c
    schedule: "0 3 * * *"
  - name: manual
    path: /jobs/m
    schedule: manual
  - name: all
    description: everything
    target: http://127.0.0.1:9999
    path: /jobs/all
    method: PATCH
    headers: {x-other: thing}
    bearerFile: /token
    timeZone: Europe/Berlin
    timeout: 20m
    deadline: 2h
    overlap: skip
    retry: {maxRetries: 3, delay: 1m, backoff: exponential, maxDelay: 30m, jitter: 0.1, statuses: [503, 409], unknown: false}
    recovery: none
    historyLimit: 5
    data: {format: pdf, big: 9007199254740993, fine: 0.1000000000000000055, huge: 1e400}
    paused: true
    scope: cluster
    triggers:
      - name: text
        schedule: cron 0 0 6 * * MON-FRI tz=Asia/Tokyo calendar=closed
      - name: cron
        description: last day of the month
        timeZone: America/New_York
        schedule: {cron: "0 0 22 L * ?", start: 2026-01-01T00:00:00Z, end: 2030-01-01T00:00:00+01:00, calendar: night, ambiguous: both, gap: next, jitter: 5s}
        data: {format: xlsx}
        priority: 8
        misfire: {policy: skip}
      - {name: zoned, schedule: {cron: "0 9 * * *", timeZone: UTC}, misfire: run-once}
      - {name: rate, schedule: {rate: 60s}}
      - {name: every, schedule: {every: 10m, count: 5}}
      - {name: once, schedule: {once: 2100-11-01T00:00:00Z}}
`
