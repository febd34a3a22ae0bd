package review_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/review"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // a Thursday

// document reads jobs, one a line: a name and what follows its path.
func document(t *testing.T, lines ...string) config.Document {
	t.Helper()
	var b strings.Builder
	b.WriteString("calendars: {weekends: {weekdays: [SAT, SUN]}, sundays: {weekdays: [SUN]}}\njobs:\n")
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "  - {name: %s, path: /x, %s}\n", name, rest)
	}
	doc, _, err := config.Parse("jobs.yaml", []byte(b.String()), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestCrowds(t *testing.T) {
	jobs := func(n int, rest string) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprintf("a%02d %s", i, rest))
		}
		return lines
	}
	tests := map[string]struct {
		jobs []string
		want []string // minute, jobs, triggers that meet their first crowd there
	}{
		"twenty jobs have but nineteen others": {
			jobs: jobs(20, `schedule: "0 3 * * *"`),
		},
		"with the twenty-first each has twenty others": {
			jobs: jobs(21, `schedule: "0 3 * * *"`),
			want: []string{"2026-01-01T03:00:00Z 21 21"},
		},
		"the second does not matter": {
			jobs: append(jobs(20, `schedule: "0 3 * * *"`), `b schedule: "30 0 3 * * *"`),
			want: []string{"2026-01-01T03:00:00Z 21 21"},
		},
		"a crowd of the coming week is found": {
			jobs: jobs(21, `schedule: "0 3 * * WED"`),
			want: []string{"2026-01-07T03:00:00Z 21 21"},
		},
		"a job with two triggers counts once": {
			jobs: append(jobs(19, `schedule: "0 3 * * *"`),
				`b triggers: [{name: x, schedule: "0 3 * * *"}, {name: y, schedule: "0 0 3 * * *"}]`),
		},
		"one that joins a crowd later is named there": {
			jobs: append(jobs(21, `schedule: "0 3,4 * * *"`), `b schedule: "0 4 * * *"`),
			want: []string{"2026-01-01T03:00:00Z 21 21", "2026-01-01T04:00:00Z 22 1"},
		},
		"jitter and H spread a crowd": {
			jobs: append(jobs(20, `schedule: "0 3 * * *"`), `b schedule: "cron 0 3 * * * jitter=5m"`, `c schedule: "H 3 * * *"`),
		},
		"a paused job and one whose phase is unknown do not count": {
			jobs: append(jobs(20, `schedule: "0 3 * * *"`), `b paused: true, schedule: "0 3 * * *"`, `c schedule: rate 60s`, `d schedule: every 60s`),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			triggers, err := review.Triggers(document(t, tt.jobs...), now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range review.Crowds(triggers, now) {
				got = append(got, fmt.Sprintf("%s %d %d", c.At.Format(time.RFC3339), c.Jobs, len(c.Triggers)))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("crowds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		before, after []string
		triggers      []string // kind, key, instants gone and come, the first of each
		jobs          []string
	}{
		"nothing": {
			before: []string{`a schedule: "0 3 * * *"`},
			after:  []string{`a schedule: "0 3 * * *"`},
		},
		"added and removed triggers": {
			before: []string{`a schedule: "0 3 * * *"`},
			after:  []string{`b schedule: "0 4 * * *"`},
			triggers: []string{
				"removed a/default -30 2026-01-01T03:00:00Z +0",
				"added b/default -0 +30 2026-01-01T04:00:00Z",
			},
		},
		"instants that both have are not told": {
			before:   []string{`a schedule: "0 3,15 * * *"`},
			after:    []string{`a schedule: "0 15,18 * * *"`},
			triggers: []string{"changed a/default -30 2026-01-01T03:00:00Z +30 2026-01-01T18:00:00Z"},
		},
		"the same instants in other words": {
			before:   []string{`a schedule: "0 0 * * *"`},
			after:    []string{`a schedule: "@daily"`},
			triggers: []string{"changed a/default -0 +0"},
		},
		"another calendar of the same name": {
			before:   []string{`a schedule: "cron 0 3 * * * calendar=weekends"`},
			after:    []string{`a schedule: "cron 0 3 * * * calendar=sundays"`},
			triggers: []string{"changed a/default -0 +4 2026-01-03T03:00:00Z"},
		},
		"a pause": {
			before:   []string{`a schedule: "0 3 * * *"`},
			after:    []string{`a paused: true, schedule: "0 3 * * *"`},
			triggers: []string{"changed a/default -30 2026-01-01T03:00:00Z +0"},
		},
		"what depends on runs": {
			before:   []string{`a schedule: every 60s`, `b schedule: rate 60s`},
			after:    []string{`a schedule: every 90s`, `b schedule: rate 90s`},
			triggers: []string{"changed a/default -0 +0 unknown", "changed b/default -0 +0 unknown"},
		},
		"a rate with a start is known": {
			before:   []string{`a schedule: "rate 240h start=2026-01-01T00:00:00Z"`},
			after:    []string{`a schedule: "rate 360h start=2026-01-01T00:00:00Z"`},
			triggers: []string{"changed a/default -2 2026-01-11T00:00:00Z +1 2026-01-16T00:00:00Z"},
		},
		"a job's other settings": {
			before: []string{`a schedule: "0 3 * * *"`, `b timeout: 5s`},
			after:  []string{`a timeout: 10s, schedule: "0 3 * * *"`, `b timeout: 6s`},
			jobs:   []string{"a", "b"},
		},
		"a trigger of each second is compared in part": {
			after:    []string{`a schedule: "* * * * * *"`},
			triggers: []string{"added a/default -0 +100000 2026-01-01T00:00:00Z until 2026-01-02T03:46:40Z"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := review.Compare(document(t, append(tt.before, `z schedule: manual`)...), document(t, append(tt.after, `z schedule: manual`)...), now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range d.Triggers {
				line := fmt.Sprintf("%s %s -%s +%s", c.Kind, c.Key, instants(c.Gone), instants(c.Come))
				if c.Unknown {
					line += " unknown"
				}
				if c.Until.Before(d.To) {
					line += " until " + c.Until.Format(time.RFC3339)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.triggers, got); diff != "" {
				t.Errorf("triggers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.jobs, d.Jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
		})
	}
}

func instants(n review.Instants) string {
	if n.Count == 0 {
		return "0"
	}
	return fmt.Sprintf("%d %s", n.Count, n.First[0].Format(time.RFC3339))
}
