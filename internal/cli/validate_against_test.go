package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeFiles writes files into a new folder that becomes the current one.
func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	oldDocument = `jobs:
  - {name: a, path: /a, schedule: "0 3 * * *"}
  - {name: b, path: /b, schedule: "0 3 * * *"}
  - {name: c, path: /c, schedule: "0 3 * * *"}
  - {name: d, path: /d, schedule: rate 60s}
`
	newDocument = `jobs:
  - {name: a, path: /a, schedule: "0 3,15 * * *"}
  - {name: b, path: /b2, schedule: "0 0 3 * * *"}
  - {name: d, path: /d, schedule: rate 90s}
  - {name: e, path: /e, paused: true, schedule: "0 4 * * *"}
`
)

func TestValidateAgainst(t *testing.T) {
	writeFiles(t, map[string]string{"old.yaml": oldDocument, "new.yaml": newDocument, "bad.yaml": "jobs: 1\n"})
	const after = "--after=2026-01-01T00:00:00Z"
	tests := map[string]struct {
		args          []string
		out, problems string
	}{
		"what an edit changes in the next 30 days": {
			args: []string{"new.yaml", "--against=old.yaml"},
			out: `new.yaml against old.yaml, from 2026-01-01T00:00:00Z to 2026-01-31T00:00:00Z:
changed a/default: cron 0 3 * * * tz=UTC → cron 0 3,15 * * * tz=UTC
  + 30 instants: 2026-01-01T15:00:00Z, 2026-01-02T15:00:00Z, 2026-01-03T15:00:00Z, …
changed b/default: cron 0 3 * * * tz=UTC → cron 0 0 3 * * * tz=UTC
  at the same instants
removed c/default: cron 0 3 * * * tz=UTC
  - 30 instants: 2026-01-01T03:00:00Z, 2026-01-02T03:00:00Z, 2026-01-03T03:00:00Z, …
changed d/default: rate 60s → rate 90s
  ? instants that depend on runs, or on when it is first seen, are not listed
added e/default: cron 0 4 * * * tz=UTC (paused)
  no instant in this time
other settings change of b
`,
		},
		"nothing": {
			args: []string{"old.yaml", "--against=old.yaml"},
			out: `old.yaml against old.yaml, from 2026-01-01T00:00:00Z to 2026-01-31T00:00:00Z:
no trigger is due at other times
nothing else changes
`,
		},
		"an old document that is invalid is named": {
			args:     []string{"new.yaml", "--against=bad.yaml"},
			problems: "bad.yaml:1:7: jobs: ",
		},
		"one that is missing too": {
			args:     []string{"new.yaml", "--against=none.yaml"},
			problems: "none.yaml",
		},
		"there is one new document": {
			args:     []string{"new.yaml", "old.yaml", "--against=old.yaml"},
			problems: "takes one jobs file, but has 2",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := runValidate(append(tt.args, after)...)
			if diff := cmp.Diff(tt.out, out); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			switch {
			case tt.problems == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), tt.problems):
				t.Errorf("error %v, want a usage error with %q", err, tt.problems)
			}
		})
	}
}

func TestValidateAgainstAsJSON(t *testing.T) {
	writeFiles(t, map[string]string{"old.yaml": oldDocument, "new.yaml": newDocument})
	out, _, err := runValidate("new.yaml", "--against=old.yaml", "--after=2026-01-01T00:00:00Z", "-o=json")
	if err != nil {
		t.Fatal(err)
	}
	var r againstReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Triggers) != 5 || r.From != "2026-01-01T00:00:00Z" || r.Against != "old.yaml" {
		t.Fatalf("got %+v", r)
	}
	want := changeReport{
		Trigger: "c/default", Change: "removed",
		Old:  &sideReport{Schedule: "cron 0 3 * * * tz=UTC", English: "every day at 03:00 UTC"},
		Gone: instantsReport{Count: 30, First: []string{"2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z", "2026-01-03T03:00:00Z"}},
	}
	if diff := cmp.Diff(want, r.Triggers[2]); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestValidateAsJSON(t *testing.T) {
	writeFiles(t, map[string]string{
		"good.yaml": "jobs:\n  - {name: a, path: /a, schedule: {cron: \"0 3 1 * MON\", end: 2026-01-02T00:00:00Z}}\n  - {name: b, path: /b}\n",
		"bad.yaml":  "jobs:\n  - {name: a}\n",
	})
	out, _, err := runValidate("good.yaml", "bad.yaml", "--after=2026-01-01T00:00:00Z", "-o=json")
	if !errors.As(err, new(usageError)) {
		t.Errorf("error %v, want a usage error", err)
	}
	const want = `{
  "files": [
    {
      "file": "good.yaml",
      "jobs": 2,
      "manual": [
        "b"
      ],
      "triggers": [
        {
          "trigger": "a/default",
          "schedule": "cron 0 3 1 * MON tz=UTC end=2026-01-02T00:00:00Z",
          "english": "on day 1 of the month or every Monday at 03:00 UTC, until before 2026-01-02 00:00:00 UTC",
          "timeZone": "UTC",
          "next": [
            "2026-01-01T03:00:00Z"
          ],
          "warnings": [
            {
              "reason": "dom-or-dow",
              "text": "the dom and dow fields are both restricted: a day that matches either one counts; write ? in the one that you do not mean"
            }
          ]
        }
      ]
    },
    {
      "file": "bad.yaml",
      "jobs": 0,
      "errors": [
        "bad.yaml:2:5: jobs[0] (job a): path is missing (want one such as /jobs/report)"
      ]
    }
  ]
}
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestValidateWarnsOfCrowds(t *testing.T) {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 21 {
		fmt.Fprintf(&b, "  - {name: a%02d, path: /a, schedule: \"0 3 * * *\"}\n", i)
	}
	writeFiles(t, map[string]string{"jobs.yaml": b.String()})
	_, warnings, err := runValidate("jobs.yaml", "--after=2026-01-01T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	const want = "warning: jobs.yaml: 21 jobs are due in the minute of 2026-01-01T03:00:00Z: " +
		"write H in place of the minute, or a jitter, to spread a00/default, a01/default, a02/default and 18 more\n"
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}
