// Package cli is the command line: it turns arguments and environment into calls, and errors into
// lines on stderr and an exit code. What the commands do is in the packages that they call.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/internal/app"
	"github.com/leasecron/leasecron/internal/version"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // something went wrong while it worked
	exitUsage   = 2 // it was given something that it cannot work with
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// usageError marks an error of the caller's: exit code 2.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// Main runs the program and returns its exit code. ctx ends when the process is told to stop.
func Main(ctx context.Context, args, environ []string, streams Streams) int {
	root := newRootCommand(environment(environ))
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			fmt.Fprintln(streams.Err, "sidecar: "+line)
		}
	}
	var setup *app.SetupError
	var usage usageError
	if errors.As(err, &setup) || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

func newRootCommand(environ map[string]string) *cobra.Command {
	root := &cobra.Command{
		Use:   "sidecar",
		Short: "leasecron: scheduled jobs of replicated services, each instant run once",
		Long: `leasecron runs beside an application, competes with the other replicas' sidecars for one
Lease, and the leader fires every job as an HTTP callback into the app.`,
		Version:       version.Get().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newRunCommand(environ), newValidateCommand(environ), newNextCommand(), newSchemaCommand(), newDrainCommand(environ),
		newPackCommand(), newInjectCommand(), newVersionCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	markArguments(root)
	return root
}

// markArguments makes wrong arguments of any command a usage error.
func markArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		markArguments(child)
	}
}

// noArguments is cobra.NoArgs for commands without commands of their own, where it would speak of unknown ones.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, got %q", cmd.Name(), args[0])
	}
	return nil
}

// environment turns "NAME=value" pairs into a map, with what the system knows besides.
func environment(pairs []string) map[string]string {
	env := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	if env["POD_NAMESPACE"] == "" {
		if namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
			env["POD_NAMESPACE"] = strings.TrimSpace(string(namespace))
		}
	}
	if env["HOSTNAME"] == "" {
		if host, err := os.Hostname(); err == nil {
			env["HOSTNAME"] = host
		}
	}
	return maps.Clone(env)
}
