package telemetry_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/telemetry"
)

var update = flag.Bool("update", false, "rewrite the table in docs/metrics.md")

const (
	docsFile  = "../../docs/metrics.md"
	docsBegin = "<!-- begin metrics -->\n"
	docsEnd   = "<!-- end metrics -->"
)

// metricsTable is what the documentation must say: every metric of a sidecar that leads a job.
func metricsTable(t *testing.T) string {
	t.Helper()
	w := newWorld(t)
	w.Observe(jobs("a"))
	a := status("a")
	a.Job.Recovery, a.SuccessDue = config.RecoveryReview, noon // so that every series is there
	w.lead(a)
	w.lease.RenewedAt = noon
	w.SetSigning(func() error { return nil })
	w.SetRights(func() int { return 0 })
	w.SetNamedLeases(func() telemetry.NamedLeases { return telemetry.NamedLeases{} })
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		slices.Sort(labels)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(),
			strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	return table.String()
}

func TestDocumentationListsEveryMetric(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(text), docsBegin)
	documented, after, ended := strings.Cut(rest, docsEnd)
	if !begun || !ended {
		t.Fatalf("%s has no %q … %q", docsFile, docsBegin, docsEnd)
	}
	want := metricsTable(t)
	if *update {
		if err := os.WriteFile(docsFile, []byte(before+docsBegin+want+docsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		documented = want
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("%s differs from the program (-program +document; go test ./internal/telemetry -update rewrites it):\n%s", docsFile, diff)
	}
}

func TestAlertsInTheDocumentationNameMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, alerts, found := strings.Cut(string(text), "## What to alert on")
	if !found {
		t.Fatal("no alerts")
	}
	table, n := metricsTable(t), 0
	for _, word := range strings.FieldsFunc(alerts, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		if strings.HasPrefix(word, "leasecron_") {
			n++
			if !strings.Contains(table, "`"+word+"`") {
				t.Errorf("an alert names %s, which does not exist", word)
			}
		}
	}
	if n == 0 {
		t.Error("the alerts name no metric")
	}
}
