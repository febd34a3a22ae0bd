package config_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
)

// Whatever is in a document: no panic, and either errors with places, or jobs that survive being
// written down.
func FuzzParse(f *testing.F) {
	bad, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		everyKey, string(bad), "", "jobs: [", "jobs: &a [*a]", "a: &a [1]\njobs: [*a, *a]", "jobs: []\n<<: [{}, 1]",
		`{"jobs":[{"name":"a","path":"/x","data":{"a":1e400}}]}`, "? [a]\n: b", "%YAML 1.2\n---\n", "jobs: |\n x", "- - - a: b",
		"jobs:\n  - {name: a, path: /x, schedule: once 2026-01-01T00:00:00Z}\n", "jobs:\n  - {schedule: */5 * * * *}", "jobs:\n  - schedule: [0 3\n", "kind: ConfigMap\napiVersion: v1\ndata: {a: b}", "!!str a: b", "\n*\n\n0\n\n.\n", "jobs: \"\\ud800\"", "a: 'b\n\n c'", "\r\r0",
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, _, err := config.Parse("f", text, config.Options{Now: now})
		if err != nil {
			lines := strings.Count(strings.ReplaceAll(string(text), "\r", "\n"), "\n") + 1
			var joined interface{ Unwrap() []error }
			if !errors.As(err, &joined) {
				t.Fatalf("the error is no list: %v", err)
			}
			for _, one := range joined.Unwrap() {
				var at *config.FieldError
				if !errors.As(one, &at) || at.Line < 1 || at.Line > lines || at.Column < 1 {
					t.Errorf("an error without a place in %q: %v", text, one)
				}
				if strings.ContainsAny(one.Error(), "\n\x00") {
					t.Errorf("an error of several lines: %q", one)
				}
			}
			return
		}
		for _, job := range doc.Jobs {
			var again config.Job
			written, err := json.Marshal(job)
			if err != nil {
				t.Fatalf("job %s of %q cannot be written: %v", job.Name, text, err)
			}
			if err := json.Unmarshal(written, &again); err != nil {
				t.Fatalf("job %s of %q cannot be read back: %v", job.Name, text, err)
			}
			if job.Fingerprint() != again.Fingerprint() {
				t.Errorf("job %s of %q comes back as another: %s", job.Name, text, written)
			}
			for _, trigger := range job.Triggers {
				if _, err := trigger.Schedule.Compile(schedule.Env{Key: job.Name + "/" + trigger.Name, Calendars: job.Calendars}); err != nil {
					t.Errorf("trigger %s/%s of %q was accepted and does not compile: %v", job.Name, trigger.Name, text, err)
				}
			}
		}
	})
}
