package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func runValidate(args ...string) (stdout, stderr string, err error) {
	return runValidateIn(nil, args...)
}

func runValidateIn(environ map[string]string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := newValidateCommand(environ)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

func TestValidate(t *testing.T) {
	const after = "--after=2026-01-01T00:00:00Z"
	tests := map[string]struct {
		doc           string
		out, err, bad string
	}{
		"a good document shows when its triggers are due, on both clocks": {
			doc: "jobs:\n  - {name: b, path: /b, schedule: manual}\n" +
				"  - {name: a, path: /a, paused: true, schedule: {cron: \"0 3 1 * *\", timeZone: Asia/Shanghai, end: 2026-03-01T00:00:00Z}}\n",
			out: `jobs.yaml: OK, 2 jobs, 1 trigger
a/default (paused): on day 1 of the month at 03:00 Asia/Shanghai, until before 2026-03-01 00:00:00 UTC
  2026-01-31T19:00:00Z  Sun 2026-02-01 03:00:00 +08:00
  2026-02-28T19:00:00Z  Sun 2026-03-01 03:00:00 +08:00
b: when it is asked for
`,
		},
		"a schedule that is over and one that meets a clock change are worth a warning": {
			doc: "jobs:\n  - {name: a, path: /a, schedule: once 2025-01-01T00:00:00Z}\n" +
				"  - {name: b, path: /b, schedule: {cron: \"30 2 8 3 *\", timeZone: America/New_York, end: 2026-12-01T00:00:00Z}}\n",
			out: `jobs.yaml: OK, 2 jobs, 2 triggers
a/default: once at 2025-01-01 00:00:00 UTC
  no instant
b/default: on day 8 of the month at 02:30 in March America/New_York, until before 2026-12-01 00:00:00 UTC
  no instant
`,
			err: `warning: jobs.yaml:2:35: jobs[0].schedule (job a): lies in the past: it will not fire
warning: jobs.yaml:3:35: jobs[1].schedule (job b): has no instant any more: it will not fire again
warning: jobs.yaml: b/default: 2026-03-08 02:30:00 does not exist in America/New_York, the clock skips it: it is left out
`,
		},
		"a bad one shows each error": { // R057
			doc: "jobs:\n  - {name: a, path: /a, schedule: \"0 0 30 2 *\"}\n  - {name: b, pth: /b}\n",
			bad: `jobs.yaml:2:35: jobs[0].schedule (job a): no future date: cron 0 0 30 2 * names a date that exists in no year
jobs.yaml:3:5: jobs[1] (job b): path is missing (want one such as /jobs/report)
jobs.yaml:3:15: jobs[1].pth (job b): unknown key (did you mean path?)`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("jobs.yaml", []byte(tt.doc), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, err := runValidate(after, "jobs.yaml")
			if diff := cmp.Diff(tt.out, out); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.err, errs); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			bad := ""
			if err != nil {
				bad = err.Error()
				if !errors.As(err, new(usageError)) {
					t.Errorf("error %v is no usage error, so that the exit code is not 2", err)
				}
			}
			if diff := cmp.Diff(tt.bad, bad); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateAcceptsTheExample(t *testing.T) {
	if _, _, err := runValidate("../../examples/jobs.yaml"); err != nil {
		t.Error(err)
	}
}

// A document is judged by the settings that its errors name.
func TestValidateReadsTheSettingsAboutDocuments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte("defaults: {target: http://app.internal}\njobs:\n  - {name: a, path: /a, schedule: manual}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const variable = "LEASECRON_ALLOWED_HOSTS"
	tests := map[string]struct {
		environ map[string]string
		args    []string
		bad     string // empty: it is good
	}{
		"no host is allowed":             {bad: "or list it in LEASECRON_ALLOWED_HOSTS"},
		"by the variable":                {environ: map[string]string{variable: "other, App.Internal"}},
		"by the flag":                    {args: []string{"--allowed-hosts", "APP.internal"}},
		"the flag wins":                  {environ: map[string]string{variable: "app.internal"}, args: []string{"--allowed-hosts=other"}, bad: "is not loopback"},
		"a variable that is wrong":       {environ: map[string]string{variable: "http://app.internal"}, bad: `LEASECRON_ALLOWED_HOSTS="http://app.internal": want host names`},
		"a flag that is wrong":           {args: []string{"--allowed-hosts=169.254.169.254"}, bad: `--allowed-hosts="169.254.169.254": is a link-local`},
		"other settings are no matter":   {environ: map[string]string{variable: "app.internal", "LEASECRON_LEDGER": "nowhere"}},
		"the other ones about documents": {environ: map[string]string{variable: "app.internal", "LEASECRON_MISFIRE_GRACE": "soon"}, bad: "LEASECRON_MISFIRE_GRACE"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := runValidateIn(tt.environ, append(tt.args, file)...)
			switch {
			case tt.bad == "" && err != nil:
				t.Error(err)
			case tt.bad != "" && (err == nil || !strings.Contains(err.Error(), tt.bad) || !errors.As(err, new(usageError))):
				t.Errorf("validate says %v, want a usage error with %q", err, tt.bad)
			}
		})
	}
}

func TestValidateWithoutItsFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "jobs.yaml")
	_, _, err := runValidate(missing)
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("validate says %v, want an error that names %s", err, missing)
	}
	if _, _, err := runValidate(); !errors.As(err, new(usageError)) {
		t.Errorf("validate without arguments says %v, want a usage error", err)
	}
}

func TestSchemaCommandPrintsThePublishedSchema(t *testing.T) {
	var out bytes.Buffer
	cmd := newSchemaCommand()
	cmd.SetOut(&out)
	cmd.SetArgs(nil)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../schema/jobs.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("sidecar schema differs from the published one:\n%s", diff)
	}
}

// "-" is standard input, as it is for pack and inject.
func TestValidateReadsStandardInput(t *testing.T) {
	const good = "jobs:\n  - {name: a, path: /a, schedule: manual}\n"
	tests := map[string]struct {
		args           []string
		in             string
		out, err, file string
	}{
		"a good document":         {args: []string{"-"}, in: good, out: "standard input: OK, 1 job"},
		"one that is bad":         {args: []string{"-"}, in: "jobs:\n  - {name: a}\n", err: "standard input:2:5: jobs[0] (job a): path is missing"},
		"beside files":            {args: []string{"jobs.yaml", "-"}, in: good, file: good, out: "standard input: OK, 1 job"},
		"as JSON":                 {args: []string{"-", "-o", "json"}, in: good, out: `"file": "standard input"`},
		"the new one of two":      {args: []string{"-", "--against", "jobs.yaml"}, in: good, file: good, out: "standard input"},
		"the old one of two":      {args: []string{"jobs.yaml", "--against", "-"}, in: good, file: good, out: "standard input"},
		"both of two":             {args: []string{"-", "--against", "-"}, in: good, err: "only one of the documents can be - for standard input"},
		"twice":                   {args: []string{"-", "-"}, in: good, err: "only one of the documents can be - for standard input"},
		"nothing":                 {args: []string{"-"}, err: "the document is empty"},
		"a file beside it":        {args: []string{"-"}, in: "calendars: {c: {ics: jobs.yaml}}\njobs: []\n", file: "x", err: "standard input:1:22: calendars.c.ics"},
		"no file in a folder":     {args: []string{"-"}, in: "calendars: {c: {ics: ../c.ics}}\njobs: []\n", err: "no name of a file in the working folder"},
		"more than a document is": {args: []string{"-"}, in: strings.Repeat("# long\n", 200_000), err: "want at most"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if tt.file != "" {
				if err := os.WriteFile("jobs.yaml", []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			cmd := newValidateCommand(nil)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetIn(strings.NewReader(tt.in))
			cmd.SetOut(&out)
			cmd.SetErr(&bytes.Buffer{})
			cmd.SetArgs(tt.args)
			err := cmd.Execute()
			switch {
			case tt.err == "" && (err != nil || !strings.Contains(out.String(), tt.out)):
				t.Errorf("validate %v = %v\n%swant %q", tt.args, err, out.String(), tt.out)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !errors.As(err, new(usageError))):
				t.Errorf("validate %v = %v, want a usage error with %q", tt.args, err, tt.err)
			}
		})
	}
}
