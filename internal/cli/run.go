package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/app"
	"github.com/leasecron/leasecron/internal/telemetry"
)

// newRunCommand is the sidecar itself.
func newRunCommand(environ map[string]string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the sidecar until SIGTERM",
		Long: `Run the sidecar: compete for the leadership, fire jobs while leading, serve /leader, /metrics,
/livez, /readyz and the API. It ends on SIGTERM or SIGINT: it hands the leadership over, finishes
its runs within the shutdown grace, and exits with code 0. A second signal ends it at once. sidecar drain
does the same before that, without ending it.

Exit codes: 0 stopped as asked, 1 failed while running, 2 a setting, a file or an address is wrong.`,
		Args: noArguments,
	}
	flags := config.BindFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		settings, err := flags.Load(environ)
		if err != nil {
			return usageError{err}
		}
		log := telemetry.NewLogger(cmd.ErrOrStderr(), settings.LogLevel, settings.LogFormat)
		telemetry.RouteKlog(log)
		telemetry.RouteOTel(log)
		sidecar, err := app.New(cmd.Context(), settings, log)
		if err != nil {
			return err
		}
		return sidecar.Run(cmd.Context())
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printRunHelp(cmd.OutOrStdout(), cmd) })
	return cmd
}

// printRunHelp lists every setting with its type, default and meaning.
func printRunHelp(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n\nSettings: environment variables, or the flag of the same name (--lease-duration for\n"+
		"LEASECRON_LEASE_DURATION), which wins. Durations as Go writes them: 15s, 1m30s.\n\n", cmd.Long, cmd.UseLine())
	table := tabwriter.NewWriter(w, 2, 4, 2, ' ', 0)
	fmt.Fprintln(table, "  VARIABLE\tTYPE\tDEFAULT\tMEANING")
	for _, doc := range config.Usage() {
		value := doc.Default
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", doc.Variable, doc.Type, value, doc.Meaning)
	}
	_ = table.Flush()
	fmt.Fprintf(w, "\nAlso read: KUBECONFIG and the in-cluster configuration; %s from the downward API;\n"+
		"OTEL_* as OpenTelemetry defines them, for traces.\n",
		strings.Join([]string{"POD_NAME", "POD_UID", "POD_NAMESPACE", "POD_IP"}, ", "))
}
