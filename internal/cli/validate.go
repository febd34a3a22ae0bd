package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/config/source"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/internal/review"
)

// newValidateCommand judges jobs documents as the sidecar would.
func newValidateCommand(environ map[string]string) *cobra.Command {
	var (
		hosts   []string
		after   string
		against string
		output  string
	)
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check jobs documents and print when their triggers are due",
		Long: `validate reads jobs documents as the sidecar does, - from standard input. It prints the next five instants of each
trigger, or every error with file, line and column; warnings go to stderr. For a fixed delay it
assumes runs that take no time.

What the settings decide of a document is read from LEASECRON_ALLOWED_HOSTS, LEASECRON_MISFIRE_GRACE
and LEASECRON_HISTORY_LIMIT, as the sidecar reads them.

With --against it prints what one document changes in another in the next 30 days instead: which
triggers, and which of their instants disappear and appear.

Exit codes: 0 all of them are good, 2 at least one is not.`,
		Example: `  sidecar validate jobs.yaml
  sidecar validate jobs.yaml --against deployed.yaml -o json
  kubectl get configmap shop-jobs -o jsonpath='{.data.jobs\.yaml}' | sidecar validate -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("validate takes the names of jobs files, as in sidecar validate jobs.yaml")}
			}
			if against != "" && len(args) > 1 {
				return usageError{fmt.Errorf("validate --against takes one jobs file, but has %d", len(args))}
			}
			streams := 0
			for _, name := range append([]string{against}, args...) {
				if name == "-" {
					streams++
				}
			}
			if streams > 1 {
				return usageError{errors.New("only one of the documents can be - for standard input")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := documentOptions(environ, cmd.Flags().Lookup(flagAllowedHosts).Changed, hosts)
			if err != nil {
				return usageError{err}
			}
			v := validation{opts: opts, now: time.Now()}
			if after != "" {
				var err error
				if v.now, err = time.Parse(time.RFC3339, after); err != nil {
					return usageError{fmt.Errorf("--after: %.40q is not a time like 2026-11-01T00:00:00Z", after)}
				}
			}
			switch output {
			case "", "text", "json":
			default:
				return usageError{fmt.Errorf("--output: %q is not known, want text or json", output)}
			}
			v.in = cmd.InOrStdin()
			v.json, v.out, v.warnings = output == "json", cmd.OutOrStdout(), cmd.ErrOrStderr()
			if against != "" {
				return v.compare(against, args[0])
			}
			return v.check(args)
		},
	}
	cmd.Flags().StringSliceVar(&hosts, flagAllowedHosts, nil, "hosts, besides loopback, that jobs may call (default LEASECRON_ALLOWED_HOSTS)")
	cmd.Flags().StringVar(&after, "after", "", "instant that the answers come after, as 2026-11-01T00:00:00Z (default now)")
	cmd.Flags().StringVar(&against, "against", "", "the document that FILE is to replace: print what changes")
	cmd.Flags().StringVarP(&output, "output", "o", "", "text or json (default text)")
	return cmd
}

const flagAllowedHosts = "allowed-hosts"

// documentOptions are what the settings say about documents; the rest of the environment is not that of
// a sidecar, and no matter here. Hosts that were given win.
func documentOptions(environ map[string]string, given bool, hosts []string) (config.Options, error) {
	const allowed = config.SettingPrefix + "ALLOWED_HOSTS"
	about := make(map[string]string)
	for _, name := range []string{allowed, config.SettingPrefix + "MISFIRE_GRACE", config.SettingPrefix + "HISTORY_LIMIT"} {
		about[name] = environ[name]
	}
	if given {
		about[allowed] = strings.Join(hosts, ",")
	}
	settings, err := config.LoadSettings(about)
	if err != nil {
		if problem := (*config.SettingError)(nil); given && errors.As(err, &problem) && problem.Name == allowed {
			problem.Name = "--" + flagAllowedHosts
		}
		return config.Options{}, err
	}
	return config.OptionsOf(settings), nil
}

// validation is one call of the command.
type validation struct {
	opts          config.Options
	now           time.Time
	json          bool
	in            io.Reader
	out, warnings io.Writer
}

// read reads a document from a file, or from standard input where it is called "-".
func (v validation) read(path string) source.Update {
	if path == "-" {
		return source.ReadStream(inputName(path), v.in, v.opts, v.now)
	}
	return source.ReadFile(path, v.opts, v.now)
}

// check judges each file by itself. All are looked at, also after a bad one.
func (v validation) check(paths []string) error {
	var problems []error
	reports := make([]*fileReport, 0, len(paths))
	for _, path := range paths {
		r, err := v.report(path)
		if err != nil {
			problems = append(problems, err)
			r = &fileReport{File: inputName(path), Errors: strings.Split(err.Error(), "\n")}
		} else if !v.json {
			if err := r.writeText(v.out, v.warnings); err != nil {
				return err
			}
		}
		reports = append(reports, r)
	}
	if v.json {
		if err := writeJSON(v.out, map[string]any{"files": reports}); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return usageError{errors.Join(problems...)}
	}
	return nil
}

// fileReport is what is printed of one document, as -o json does.
type fileReport struct {
	File     string          `json:"file"`
	Jobs     int             `json:"jobs"`
	Manual   []string        `json:"manual,omitempty"` // jobs without triggers
	Triggers []triggerReport `json:"triggers,omitempty"`
	Crowds   []crowdReport   `json:"crowds,omitempty"`
	Warnings []string        `json:"warnings,omitempty"` // with line and column
	Errors   []string        `json:"errors,omitempty"`   // why it is refused

	paused map[string]bool // jobs
}

type triggerReport struct {
	Trigger  string             `json:"trigger"` // job/trigger
	Paused   bool               `json:"paused,omitempty"`
	Schedule string             `json:"schedule"`
	English  string             `json:"english"`
	TimeZone string             `json:"timeZone"`
	Next     []string           `json:"next"` // UTC, RFC 3339
	Warnings []schedule.Warning `json:"warnings,omitempty"`

	job      string
	instants []time.Time
	zone     *time.Location
}

type crowdReport struct {
	At       string   `json:"at"` // the minute, UTC
	Jobs     int      `json:"jobs"`
	Triggers []string `json:"triggers"` // that meet their first crowd here
}

func (v validation) report(path string) (*fileReport, error) {
	update := v.read(path)
	path = inputName(path)
	if update.Err != nil {
		return nil, update.Err
	}
	triggers, err := review.Triggers(update.Document, v.now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &fileReport{File: path, Jobs: len(update.Document.Jobs), paused: make(map[string]bool)}
	for _, w := range update.Warnings {
		r.Warnings = append(r.Warnings, w.String())
	}
	for _, job := range update.Document.Jobs {
		r.paused[job.Name] = job.Paused
		if len(job.Triggers) == 0 {
			r.Manual = append(r.Manual, job.Name)
		}
	}
	for _, t := range triggers {
		instants, err := nextQuery{}.list(t.Line, v.now)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, t.Key, err)
		}
		report := triggerReport{
			Trigger:  t.Key.String(),
			Paused:   t.Paused,
			Schedule: t.Line.Schedule().String(),
			English:  t.Line.English(),
			TimeZone: zoneOf(t.Line.Schedule()),
			Next:     formatInstants(instants),
			job:      t.Key.Job,
			instants: instants,
			zone:     t.Line.Location(),
		}
		for _, w := range t.Line.Warnings(v.now) {
			if w.Reason != schedule.WarnComplete { // which the document's own warnings say, with the place
				report.Warnings = append(report.Warnings, w)
			}
		}
		r.Triggers = append(r.Triggers, report)
	}
	for _, c := range review.Crowds(triggers, v.now) {
		r.Crowds = append(r.Crowds, crowdReport{At: c.At.Format(time.RFC3339), Jobs: c.Jobs, Triggers: c.Triggers})
	}
	return r, nil
}

func writeJSON(out io.Writer, value any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
