package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/internal/version"
)

// newVersionCommand tells which program this is, and which time zone rules it has inside.
func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of its time zone data",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := struct {
				version.Info
				ZoneData string `json:"zoneData"` // release of the IANA time zone database
			}{version.Get(), schedule.ZoneDataVersion()}
			switch output {
			case "":
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\ntime zone data %s\n", info.Info, info.ZoneData)
				return err
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(info)
			default:
				return usageError{fmt.Errorf("--output: %q is not known; the only form is json", output)}
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or lines of text when empty")
	return cmd
}
