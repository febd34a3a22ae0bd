package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// How much of a list a person is shown; -o json has it all.
const (
	mostCrowds  = 10
	mostNames   = 3
	mostChanges = 100
)

// writeText prints when the jobs of a good document are due, and what is odd about it.
func (r *fileReport) writeText(out, warnings io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: OK, %s, %s\n", r.File, plural(r.Jobs, "job"), plural(len(r.Triggers), "trigger"))
	byJob := make(map[string][]triggerReport)
	for _, t := range r.Triggers {
		byJob[t.job] = append(byJob[t.job], t)
	}
	for _, job := range slices.Sorted(maps.Keys(r.paused)) {
		paused := ""
		if r.paused[job] {
			paused = " (paused)"
		}
		if len(byJob[job]) == 0 {
			fmt.Fprintf(&b, "%s%s: when it is asked for\n", job, paused)
		}
		for _, t := range byJob[job] {
			fmt.Fprintf(&b, "%s%s: %s\n", t.Trigger, paused, t.English)
			t.writeInstants(&b)
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	return r.writeWarnings(warnings)
}

// writeInstants prints the next instants in UTC and on the zone's clock.
func (t *triggerReport) writeInstants(b *strings.Builder) {
	for i, text := range t.Next {
		fmt.Fprintf(b, "  %s  %s\n", text, t.instants[i].In(t.zone).Format("Mon 2006-01-02 15:04:05 -07:00"))
	}
	if len(t.Next) == 0 {
		b.WriteString("  no instant\n")
	}
}

func (r *fileReport) writeWarnings(out io.Writer) error {
	var b strings.Builder
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, t := range r.Triggers {
		for _, w := range t.Warnings {
			fmt.Fprintf(&b, "warning: %s: %s: %s\n", r.File, t.Trigger, w.Text)
		}
	}
	for i, c := range r.Crowds {
		if i == mostCrowds {
			fmt.Fprintf(&b, "warning: %s: %s more with as many jobs\n", r.File, plural(len(r.Crowds)-i, "minute"))
			break
		}
		fmt.Fprintf(&b, "warning: %s: %d jobs are due in the minute of %s: write H in place of the minute, or a jitter, to spread %s\n",
			r.File, c.Jobs, c.At, someOf(c.Triggers))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// someOf lists the first few names.
func someOf(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
