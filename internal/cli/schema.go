package cli

import (
	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/config"
)

// newSchemaCommand prints the schema of jobs documents.
func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a jobs document, for editors",
		Long: `schema prints the JSON Schema (draft 2020-12) of a jobs document. An editor that speaks
yaml-language-server completes and checks a document that begins with
  # yaml-language-server: $schema=jobs.schema.json`,
		Example: "  sidecar schema > jobs.schema.json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}
