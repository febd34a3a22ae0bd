package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasecron/leasecron/internal/review"
)

// compare prints what changes where the new document replaces the old one.
func (v validation) compare(oldPath, newPath string) error {
	before, after := v.read(oldPath), v.read(newPath)
	if err := errors.Join(before.Err, after.Err); err != nil {
		return usageError{err}
	}
	d, err := review.Compare(before.Document, after.Document, v.now)
	if err != nil {
		return usageError{err}
	}
	r := newAgainstReport(inputName(oldPath), inputName(newPath), d)
	if v.json {
		return writeJSON(v.out, r)
	}
	return r.writeText(v.out)
}

// againstReport is what -o json prints of a comparison.
type againstReport struct {
	File     string         `json:"file"`
	Against  string         `json:"against"`
	From     string         `json:"from"`
	To       string         `json:"to"`
	Triggers []changeReport `json:"triggers"`       // that are due at other times
	Jobs     []string       `json:"jobs,omitempty"` // of which something else has changed
}

type changeReport struct {
	Trigger string         `json:"trigger"` // job/trigger
	Change  string         `json:"change"`  // added, removed or changed
	Old     *sideReport    `json:"old,omitempty"`
	New     *sideReport    `json:"new,omitempty"`
	Gone    instantsReport `json:"gone"`            // only the old one is due then
	Come    instantsReport `json:"come"`            // only the new one is
	Until   string         `json:"until,omitempty"` // if not all of the time was compared
	Unknown bool           `json:"unknown,omitempty"`
}

type sideReport struct {
	Schedule string `json:"schedule"`
	English  string `json:"english"`
	Paused   bool   `json:"paused,omitempty"`
}

type instantsReport struct {
	Count int      `json:"count"`
	First []string `json:"first,omitempty"`
}

func newAgainstReport(oldPath, newPath string, d review.Difference) *againstReport {
	r := &againstReport{
		File: newPath, Against: oldPath,
		From: d.From.UTC().Format(time.RFC3339), To: d.To.UTC().Format(time.RFC3339),
		Triggers: make([]changeReport, 0, len(d.Triggers)), Jobs: d.Jobs,
	}
	for _, c := range d.Triggers {
		report := changeReport{
			Trigger: c.Key, Change: c.Kind, Old: newSideReport(c.Old), New: newSideReport(c.New),
			Gone:    instantsReport{c.Gone.Count, formatInstants(c.Gone.First)},
			Come:    instantsReport{c.Come.Count, formatInstants(c.Come.First)},
			Unknown: c.Unknown,
		}
		if c.Until.Before(d.To) {
			report.Until = c.Until.UTC().Format(time.RFC3339)
		}
		r.Triggers = append(r.Triggers, report)
	}
	return r
}

func newSideReport(t *review.Trigger) *sideReport {
	if t == nil {
		return nil
	}
	return &sideReport{Schedule: t.Line.Schedule().String(), English: t.Line.English(), Paused: t.Paused}
}

func (r *againstReport) writeText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s, from %s to %s:\n", r.File, r.Against, r.From, r.To)
	for i, c := range r.Triggers {
		if i == mostChanges {
			fmt.Fprintf(&b, "and %s more, see -o json\n", plural(len(r.Triggers)-i, "trigger"))
			break
		}
		c.writeText(&b)
	}
	if len(r.Triggers) == 0 {
		b.WriteString("no trigger is due at other times\n")
	}
	if len(r.Jobs) > 0 {
		fmt.Fprintf(&b, "other settings change of %s\n", someOf(r.Jobs))
	} else if len(r.Triggers) == 0 {
		b.WriteString("nothing else changes\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (c *changeReport) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s: ", c.Change, c.Trigger)
	switch {
	case c.Old == nil:
		b.WriteString(c.New.String())
	case c.New == nil:
		b.WriteString(c.Old.String())
	case c.Old.String() == c.New.String():
		b.WriteString(c.New.String() + ", its calendar or scope")
	default:
		fmt.Fprintf(b, "%s → %s", c.Old, c.New)
	}
	b.WriteByte('\n')
	c.Gone.writeText(b, "-")
	c.Come.writeText(b, "+")
	switch {
	case c.Unknown:
		b.WriteString("  ? instants that depend on runs, or on when it is first seen, are not listed\n")
	case c.Gone.Count+c.Come.Count > 0 || c.Until != "":
	case c.Change == review.Changed:
		b.WriteString("  at the same instants\n")
	default:
		b.WriteString("  no instant in this time\n")
	}
	if c.Until != "" {
		fmt.Fprintf(b, "  compared until %s only\n", c.Until)
	}
}

// String is the schedule, and that it does not run.
func (s *sideReport) String() string {
	if s.Paused {
		return s.Schedule + " (paused)"
	}
	return s.Schedule
}

func (n instantsReport) writeText(b *strings.Builder, sign string) {
	if n.Count == 0 {
		return
	}
	fmt.Fprintf(b, "  %s %s: %s", sign, plural(n.Count, "instant"), strings.Join(n.First, ", "))
	if n.Count > len(n.First) {
		b.WriteString(", …")
	}
	b.WriteByte('\n')
}
