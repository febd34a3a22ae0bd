package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/config/source"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
)

// newValidateCommand judges jobs documents as the sidecar would.
func newValidateCommand() *cobra.Command {
	var (
		hosts []string
		after string
	)
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check jobs documents and print when their triggers are due",
		Long: `validate reads jobs documents as the sidecar does. It prints the next five instants of each
trigger, or every error with file, line and column; warnings go to stderr. For a fixed delay it
assumes runs that take no time.

Exit codes: 0 all of them are good, 2 at least one is not.`,
		Example: "  sidecar validate jobs.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("validate takes the names of jobs files, as in sidecar validate jobs.yaml")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			if after != "" {
				var err error
				if now, err = time.Parse(time.RFC3339, after); err != nil {
					return usageError{fmt.Errorf("--after: %.40q is not a time like 2026-11-01T00:00:00Z", after)}
				}
			}
			var problems []error
			for _, path := range args {
				update := source.ReadFile(path, config.Options{AllowedHosts: hosts}, now)
				if update.Err != nil {
					problems = append(problems, update.Err)
					continue
				}
				if err := writeDocument(cmd.OutOrStdout(), cmd.ErrOrStderr(), path, update, now); err != nil {
					return err
				}
			}
			if len(problems) > 0 {
				return usageError{errors.Join(problems...)}
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&hosts, "allowed-hosts", nil, "hosts, besides loopback, that jobs may call")
	cmd.Flags().StringVar(&after, "after", "", "instant that the answers come after, as 2026-11-01T00:00:00Z (default now)")
	return cmd
}

// writeDocument prints when the jobs of a good document are due.
func writeDocument(out, warnings io.Writer, path string, update source.Update, now time.Time) error {
	triggers := 0
	for _, job := range update.Document.Jobs {
		triggers += len(job.Triggers)
	}
	var b, warned strings.Builder
	fmt.Fprintf(&b, "%s: OK, %s, %s\n", path, plural(len(update.Document.Jobs), "job"), plural(triggers, "trigger"))
	for _, w := range update.Warnings {
		fmt.Fprintln(&warned, "warning: "+w.String())
	}
	for _, job := range update.Document.Jobs {
		paused := ""
		if job.Paused {
			paused = " (paused)"
		}
		if len(job.Triggers) == 0 {
			fmt.Fprintf(&b, "%s%s: when it is asked for\n", job.Name, paused)
		}
		for _, trigger := range job.Triggers {
			key := run.Key{Job: job.Name, Trigger: trigger.Name}.String()
			line, err := trigger.Schedule.Compile(schedule.Env{Key: key, FirstSeen: now, Calendars: job.Calendars})
			if err != nil {
				return fmt.Errorf("%s: %s: %w", path, key, err)
			}
			fmt.Fprintf(&b, "%s%s: %s\n", key, paused, line.English())
			if err := writeInstants(&b, line, now); err != nil {
				return fmt.Errorf("%s: %s: %w", path, key, err)
			}
			for _, w := range line.Warnings(now) {
				if w.Reason != schedule.WarnComplete { // which the document's own warnings say, with the place
					fmt.Fprintf(&warned, "warning: %s: %s: %s\n", path, key, w.Text)
				}
			}
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	_, err := io.WriteString(warnings, warned.String())
	return err
}

// writeInstants prints the next instants in UTC and on the zone's clock.
func writeInstants(b *strings.Builder, line *schedule.Timeline, now time.Time) error {
	zone, err := schedule.LoadZone(zoneOf(line.Schedule()))
	if err != nil {
		return err
	}
	instants, err := nextQuery{}.list(line, now)
	if err != nil {
		return err
	}
	for i, text := range formatInstants(instants) {
		fmt.Fprintf(b, "  %s  %s\n", text, instants[i].In(zone).Format("Mon 2006-01-02 15:04:05 -07:00"))
	}
	if len(instants) == 0 {
		b.WriteString("  no instant\n")
	}
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
