package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runNext runs the command alone; the command is not exported, so these tests are inside
// the package.
func runNext(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := newNextCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

func TestNextText(t *testing.T) {
	tests := map[string]struct {
		args     []string
		out, err string
	}{
		"each instant is shown in UTC and on the zone's clock": { // R051
			args: []string{"0 9 * * MON-FRI", "--tz", "Asia/Shanghai", "--after", "2026-12-03T12:00:00Z", "--count", "2"},
			out: "every weekday at 09:00 Asia/Shanghai\n" +
				"2026-12-04T01:00:00Z  Fri 2026-12-04 09:00:00 +08:00\n" +
				"2026-12-07T01:00:00Z  Mon 2026-12-07 09:00:00 +08:00\n",
		},
		"a clock change is warned of on stderr": {
			args: []string{"30 2 * * *", "--tz", "America/New_York", "--after", "2026-01-01T00:00:00Z", "--count", "1"},
			out:  "every day at 02:30 America/New_York\n2026-01-01T07:30:00Z  Thu 2026-01-01 02:30:00 -05:00\n",
			err:  "warning: 2026-03-08 02:30:00 does not exist in America/New_York, the clock skips it: it is left out\n",
		},
		"a year that is over has no instant": {
			args: []string{"0 0 0 1 1 ? 2020", "--after", "2026-01-01T00:00:00Z"},
			out:  "on day 1 of the month at 00:00 in January in 2020 UTC\nno instant\n",
			err:  "warning: there is no instant after 2026-01-01T00:00:00Z\n",
		},
		"a fixed delay counts from the start, as often as it may": {
			args: []string{"every 00:10:00 x2", "--after", "2026-01-01T00:00:00Z"},
			out: "10 minutes after the end of the previous run, 2 runs at most\n" +
				"2026-01-01T00:10:00Z  Thu 2026-01-01 00:10:00 +00:00\n" +
				"2026-01-01T00:20:00Z  Thu 2026-01-01 00:20:00 +00:00\n",
		},
		"H is computed from the key": { // R069
			args: []string{"H 3 * * *", "--key", "reports/nightly", "--after", "2026-01-01T00:00:00Z", "--count", "1"},
			out:  "every day at 03:29 UTC\n2026-01-01T03:29:00Z  Thu 2026-01-01 03:29:00 +00:00\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, err := runNext("", tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.out, out); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.err, errs); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextJSON(t *testing.T) {
	out, _, err := runNext("", "0 0 22 L * ?", "--after", "2026-01-01T00:00:00Z", "--count", "2", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "schedule": "cron 0 0 22 L * ?",
  "english": "on the last day of the month at 22:00 UTC",
  "timeZone": "UTC",
  "next": [
    "2026-01-31T22:00:00Z",
    "2026-02-28T22:00:00Z"
  ]
}
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNextRefuses(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an invalid expression":            {[]string{"61 * * * *"}, "minute field: 61 is out of range 0-59"},
		"a date that exists in no year":    {[]string{"0 0 30 2 *"}, "names a date that exists in no year"}, // R056, R057
		"the same as JSON":                 {[]string{"cron 0 0 31 4 * tz=Asia/Shanghai", "-o", "json"}, "names a date that exists in no year"},
		"an unknown zone":                  {[]string{"0 3 * * *", "--tz", "Europe/Berlim"}, "did you mean Europe/Berlin?"}, // R050
		"a zone in the expression":         {[]string{"CRON_TZ=Europe/Paris 0 8 * * *"}, "tz=Europe/Paris"},                 // R052
		"two zones":                        {[]string{"0 8 * * * tz=Europe/Paris", "--tz", "UTC"}, "give it once"},          // R052
		"a time that is none":              {[]string{"0 3 * * *", "--after", "yesterday"}, "after:"},
		"a count of nothing":               {[]string{"0 3 * * *", "--count", "0"}, "count: 0 is out of range"},
		"an unknown output":                {[]string{"0 3 * * *", "-o", "xml"}, "--output"},
		"an unknown policy":                {[]string{"0 3 * * *", "--ambiguous", "last"}, "ambiguous=last"},
		"no expression":                    {nil, "one expression"},
		"an expression that is not quoted": {[]string{"0", "3", "*", "*", "*"}, "in quotes"},
		"a batch with an expression":       {[]string{"--batch", "0 3 * * *"}, "stdin"},
		"H without a key":                  {[]string{"H 3 * * *"}, "; give --key job/trigger"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := runNext("", tt.args...)
			var usage usageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %v, want a usage error on one line with %q", err, tt.want)
			}
		})
	}
}

func TestNextBatch(t *testing.T) {
	tests := map[string]struct{ in, out string }{
		"lines are answered in order, errors among them": {
			in: `{"id":"a","expr":"0 3 * * *","after":"2026-01-01T00:00:00Z","count":1}` + "\n" +
				`{"id":2,"expr":"0 3 * *","after":"2026-01-01T00:00:00Z"}` + "\n" +
				`{"id":"c","expr":"rate 90s","after":"2026-01-01T00:00:00Z","count":2}`,
			out: `{"id":"a","next":["2026-01-01T03:00:00Z"]}` + "\n" +
				`{"id":2,"error":"cron expression has 4 fields, want 5 (minute hour dom month dow), 6 (second first) or 7 (year last)"}` + "\n" +
				`{"id":"c","next":["2026-01-01T00:01:30Z","2026-01-01T00:03:00Z"]}` + "\n",
		},
		"what never matches has an empty list": {
			in:  `{"id":1,"expr":"0 0 30 2 *"}` + "\n",
			out: `{"id":1,"next":[]}` + "\n",
		},
		"manual has an empty list, whatever is asked beside it": {
			in:  `{"id":1,"expr":"manual","tz":"Europe/Paris"}` + "\n",
			out: `{"id":1,"next":[]}` + "\n",
		},
		"empty lines are passed over": {
			in:  "\n  \n" + `{"id":1,"expr":"0 0 30 2 *"}` + "\r\n\n",
			out: `{"id":1,"next":[]}` + "\n",
		},
		"what is no JSON is answered": {
			in:  "nonsense\n",
			out: `{"id":null,"error":"line 1: invalid character 'o' in literal null (expecting 'u')"}` + "\n",
		},
		"a line that is too long is answered, and the next one too": {
			in:  `{"id":1,"expr":"` + strings.Repeat("1", 200_000) + `"}` + "\n" + `{"id":2,"expr":"0 0 30 2 *"}` + "\n",
			out: `{"id":null,"error":"line 1: longer than 65536 bytes"}` + "\n" + `{"id":2,"next":[]}` + "\n",
		},
		"nothing is answered with nothing": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, _, err := runNext(tt.in, "--batch")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.out, out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextBatchReportsReadErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	if err := answerBatch(iotest.ErrReader(broken), &bytes.Buffer{}, time.Now()); !errors.Is(err, broken) {
		t.Errorf("answerBatch() = %v, want %v", err, broken)
	}
}

// The cases that the schedule package is tested with give the same answers here.
func TestNextBatchCases(t *testing.T) {
	type line struct {
		ID     string   `json:"id"`
		Expr   string   `json:"expr"`
		TZ     string   `json:"tz"`
		After  string   `json:"after"`
		Policy string   `json:"policy"`
		Next   []string `json:"next"`
	}
	var in, want strings.Builder
	for _, file := range []string{"cron.jsonl", "cron-invalid.jsonl"} {
		f, err := os.Open("../../engine/schedule/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var c line
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			query := map[string]any{"id": c.ID, "expr": c.Expr, "tz": c.TZ, "after": c.After, "ambiguous": c.Policy}
			if len(c.Next) > 0 {
				query["count"] = len(c.Next)
			}
			text, err := json.Marshal(query)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&in, "%s\n", text)
			if strings.HasPrefix(file, "cron-invalid") {
				fmt.Fprintf(&want, "%s refused\n", c.ID)
			} else {
				fmt.Fprintf(&want, "%s %v\n", c.ID, c.Next)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := runNext(in.String(), "--batch")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for text := range strings.Lines(out) {
		var a struct {
			ID    string   `json:"id"`
			Next  []string `json:"next"`
			Error string   `json:"error"`
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		if a.Error != "" {
			fmt.Fprintf(&got, "%s refused\n", a.ID)
		} else {
			fmt.Fprintf(&got, "%s %v\n", a.ID, a.Next)
		}
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
