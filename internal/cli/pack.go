package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/regularfile"
	"github.com/leasecron/leasecron/manifests"
)

// newPackCommand makes what a sidecar needs in its namespace.
func newPackCommand() *cobra.Command {
	var (
		p     packCommand
		flags sidecarFlags
	)
	cmd := &cobra.Command{
		Use:   "pack",
		Short: "Make the Kubernetes objects of an installation",
		Long: `pack makes what sidecars need in the namespace of their app: ServiceAccount (unless the workload
names one), the least Role for what is switched on, RoleBinding, the Lease, the ConfigMaps of jobs and
ledger, and a patch that adds the container to the workload. The jobs document is checked first, as
sidecar validate does. The same input gives the same bytes.

With --out DIR it writes a folder for kustomize: a component, for a kustomization that has the workload
already, and a kustomization that uses it. Otherwise it prints everything that has to be applied, with
the workload, if one was given. Applying it again never empties the ledger.

With --check nothing is written: it compares with the folder, or without --out with the cluster that
kubectl would speak to, prints what differs, and exits with code 1 if anything does.

With --with, comma-separated or repeated:
` + extrasHelp() + `
Exit codes: 0 done, 1 --check found a difference, 2 the input is wrong, or something could not be
read, written or compared.`,
		Example: `  sidecar pack --deployment deploy.yaml --jobs jobs.yaml -n prod --image registry.example/leasecron:v1 \
    | kubectl apply --server-side -n prod -f -
  sidecar pack --deployment deploy.yaml --jobs jobs.yaml -n prod --image registry.example/leasecron:v1 --out deploy/leasecron
  sidecar pack --deployment deploy.yaml --jobs jobs.yaml -n prod --image registry.example/leasecron:v1 --out deploy/leasecron --check
  sidecar pack --app shop -n prod --jobs jobs.yaml --kind StatefulSet --target http://127.0.0.1:3000 \
    --image registry.example/leasecron:v1 --out deploy/leasecron`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if p.opts.Sidecar, err = flags.sidecar(); err == nil {
				err = p.run(cmd)
			}
			var differs differsError
			if err == nil || errors.As(err, &differs) {
				return err
			}
			return usageError{err} // also what could not be read, written or compared: code 1 says that something differs
		},
	}
	set := cmd.Flags()
	set.StringVarP(&p.opts.Namespace, "namespace", "n", "", "namespace of it all (default the workload's)")
	set.StringVar(&p.jobs, "jobs", "", "the jobs document, - for standard input (default: the ConfigMap is made by somebody else)")
	set.StringVar(&p.workload, "deployment", "", "file with the app's workload: Deployment, StatefulSet, DaemonSet or Rollout; - for standard input")
	set.StringVar(&p.opts.WorkloadName, "name", "", "the workload, where its file has several")
	set.StringVar(&p.opts.Kind, "kind", "", "kind of a workload that is not shown (default Deployment)")
	set.StringSliceVar(&p.opts.With, "with", nil, "what to pack besides: "+strings.Join(slices.Sorted(maps.Keys(manifests.Extras)), ", "))
	set.StringVar(&p.out, "out", "-", "folder to write, - for standard output")
	set.BoolVar(&p.check, "check", false, "write nothing, and say what differs from what is there")
	flags.bind(cmd)
	return cmd
}

func extrasHelp() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(manifests.Extras)) {
		fmt.Fprintf(&b, "  %-14s %s\n", name, manifests.Extras[name].Help)
	}
	return b.String()
}

type packCommand struct {
	opts                manifests.PackOptions
	jobs, workload, out string
	check               bool
}

func (p *packCommand) run(cmd *cobra.Command) error {
	if p.jobs == "-" && p.workload == "-" {
		return errors.New("--jobs and --deployment cannot both be standard input")
	}
	if p.jobs != "" {
		jobs, err := p.readJobs(cmd)
		if err != nil {
			return err
		}
		p.opts.Jobs = jobs
	}
	if err := p.meaningless(cmd); err != nil {
		return err
	}
	if p.workload != "" {
		p.opts.Source = inputName(p.workload)
		var err error
		if p.opts.Workload, err = readInput(cmd.InOrStdin(), p.workload); err != nil {
			return err
		}
	}
	pack, err := manifests.Pack(p.opts)
	if err != nil {
		return err
	}
	warn(cmd.ErrOrStderr(), pack.Warnings)
	switch {
	case p.check && p.out == "-":
		return checkCluster(cmd.Context(), pack.Stream(), pack.Namespace, cmd.OutOrStdout())
	case p.check:
		return checkFolder(p.out, pack.Files(), cmd.OutOrStdout())
	case p.out == "-":
		_, err = cmd.OutOrStdout().Write(pack.Stream())
		return err
	}
	return writeFolder(p.out, pack.Files())
}

// meaningless refuses flags that change nothing of what is printed, and tells of those that do only in a folder.
func (p *packCommand) meaningless(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case p.workload == "" && given("name"):
		return errors.New("--name chooses a workload of the file that --deployment gives: give both, or --app alone")
	case p.workload != "" && given("kind"):
		return errors.New("--kind is for a workload that is not shown: leave it out, its file says it")
	case p.workload != "" || p.out != "-":
		return nil
	}
	var only []string
	for _, name := range []string{"image", "kind", "plain", "readiness", "target"} {
		if given(name) {
			only = append(only, "--"+name)
		}
	}
	if len(only) > 0 {
		warn(cmd.ErrOrStderr(), []string{strings.Join(only, ", ") + ": changes nothing here, because no workload was given: show it with --deployment, or write the patch for it with --out DIR"})
	}
	p.opts.Image = cmp.Or(p.opts.Image, p.opts.DefaultImage) // which is not printed either
	return nil
}

// readJobs judges the jobs document as the sidecar will, and gathers what it refers to.
func (p *packCommand) readJobs(cmd *cobra.Command) (*manifests.Jobs, error) {
	settings, err := manifests.JobsSettings(p.opts.Settings)
	if err != nil {
		return nil, err
	}
	name, folder := inputName(p.jobs), filepath.Dir(p.jobs) // "." for standard input
	text, err := readInput(cmd.InOrStdin(), p.jobs)
	if err != nil {
		return nil, err
	}
	keys := map[string][]byte{settings.JobsKey: text}
	opts := config.OptionsOf(settings)
	opts.Now = time.Now()
	opts.Resolve = func(key string) ([]byte, error) {
		if key == settings.JobsKey || key != filepath.Base(key) || strings.HasPrefix(key, ".") {
			return nil, fmt.Errorf("%q is no name of a file beside the document", key)
		}
		data, err := regularfile.Read(filepath.Join(folder, key), config.LargestDocument) // goes into a ConfigMap
		if err == nil {
			keys[key] = data
		}
		return data, err
	}
	doc, warnings, err := config.Parse(name, text, opts)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		warn(cmd.ErrOrStderr(), []string{w.String()})
	}
	return &manifests.Jobs{Document: doc, Keys: keys}, nil
}

// maxManifest is more than any file of a package has: what is larger was not made by pack.
const maxManifest = 8 << 20

// writeFolder writes the files of a package, and removes those of an earlier one that are not part of it any more.
func writeFolder(dir string, files []manifests.File) error {
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		old, err := regularfile.Read(path, maxManifest)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && !manifests.Made(old) {
			return fmt.Errorf("%s is there and was not made by pack: choose another folder", path)
		}
	}
	stale, err := staleFiles(dir, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // manifests are for all to read
			return err
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil { //nolint:gosec // manifests are for all to read
			return err
		}
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// staleFiles are those of an earlier package.
func staleFiles(dir string, files []manifests.File) ([]string, error) {
	var stale []string
	for _, folder := range []string{".", "component"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := filepath.ToSlash(filepath.Join(folder, entry.Name()))
			if !strings.HasSuffix(name, ".yaml") || slices.ContainsFunc(files, func(f manifests.File) bool { return f.Name == name }) {
				continue
			}
			if content, err := regularfile.Read(filepath.Join(dir, name), maxManifest); err == nil && manifests.Made(content) {
				stale = append(stale, name)
			}
		}
	}
	return stale, nil
}
