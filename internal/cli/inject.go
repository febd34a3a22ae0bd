package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/internal/version"
	"github.com/leasecron/leasecron/manifests"
)

// newInjectCommand adds the sidecar to a workload.
func newInjectCommand() *cobra.Command {
	var (
		file, namespace string
		names           []string
		all             bool
		flags           sidecarFlags
	)
	cmd := &cobra.Command{
		Use:   "inject -f FILE",
		Short: "Add the sidecar's container to a Deployment, StatefulSet, DaemonSet or Rollout",
		Long: `inject reads YAML documents, adds the sidecar's container to the workload among them, and prints
them all. The rest of them stays as it is, comments included. A workload that has the sidecar
already gets the new image and keeps its settings, so that injecting twice is injecting once.

It adds the container only. What the sidecar needs in the namespace besides comes from sidecar pack
and has to be there first: the service account (pods that name one which does not exist cannot start;
a workload that names none gets the app's), Role, Lease and ConfigMaps.

The container is a native sidecar: an init container that runs beside the app's (Kubernetes 1.29
or newer; --plain makes an ordinary one). It passes pod security "restricted". Warnings go to stderr.

Exit codes: 0 done, 2 the input cannot have the sidecar, or a setting is wrong.`,
		Example: `  sidecar inject -f deploy.yaml --image registry.example/leasecron:v1 | kubectl apply --server-side -n prod -f -
  kubectl get -n prod deployment shop -o yaml | sidecar inject -f - --image registry.example/leasecron:v1 | kubectl apply -f -
  sidecar inject -f all.yaml --name shop --target http://127.0.0.1:3000 --set LEASE_DURATION=30s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError{errors.New("inject reads a file, as in sidecar inject -f deploy.yaml (- for standard input)")}
			}
			if all && len(names) > 0 {
				return usageError{errors.New("--all and --name are two answers to one question")}
			}
			sidecar, err := flags.sidecar()
			if err != nil {
				return usageError{err}
			}
			stream, err := readInput(cmd.InOrStdin(), file)
			if err != nil {
				return usageError{err}
			}
			result, err := manifests.Inject(stream, manifests.InjectOptions{Sidecar: sidecar, Names: names, All: all, Namespace: namespace, Source: inputName(file)})
			if err != nil {
				return usageError{err}
			}
			warn(cmd.ErrOrStderr(), result.Warnings)
			warn(cmd.ErrOrStderr(), missingAccounts(result.Workloads))
			_, err = cmd.OutOrStdout().Write(result.Text)
			return err
		},
	}
	set := cmd.Flags()
	set.StringVarP(&file, "filename", "f", "", "file with the workload, - for standard input")
	set.StringVarP(&namespace, "namespace", "n", "", "namespace of a workload that names none (default default)")
	set.StringSliceVar(&names, "name", nil, "the workload, where the input has several; may be repeated")
	set.BoolVar(&all, "all", false, "every workload of the input, each as an app of its own")
	flags.bind(cmd)
	return cmd
}

// missingAccounts warns of pods that will run as an account which somebody has to make: until then they cannot start.
func missingAccounts(workloads []*manifests.Workload) []string {
	var out []string
	for _, w := range workloads {
		if w.Made {
			out = append(out, fmt.Sprintf("%s: its pods run as service account %s from now on, and cannot start without it: apply what sidecar pack makes first, which has the account, its rights, the Lease and the ConfigMaps",
				w.After, w.ServiceAccount))
		}
	}
	return out
}

// sidecarFlags are what pack and inject are told of the container.
type sidecarFlags struct {
	app, image, target, container, account string
	plain, readiness                       bool
	settings                               []string
}

func (f *sidecarFlags) bind(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.app, "app", "", "whose jobs these are (default the workload's name)")
	set.StringVar(&f.image, "image", "", "image of the sidecar (default the one it has already, else "+defaultImage()+")")
	set.BoolVar(&f.plain, "plain", false, "an ordinary container instead of a native sidecar, for clusters before 1.29")
	set.StringVar(&f.target, "target", "", "base URL of the app (default the port that its container declares)")
	set.StringVar(&f.container, "container", "", "the app's container, where there are several (default the first that declares a port)")
	set.StringVar(&f.account, "service-account", "", "what pods run as that name no service account (default the app's name)")
	set.BoolVar(&f.readiness, "readiness", false, "let the sidecar's readiness count for the pod's; it never depends on leadership")
	set.StringArrayVar(&f.settings, "set", nil, "a setting of the sidecar, as in LEASE_DURATION=30s, or an OTEL_ variable; may be repeated")
}

// defaultImage is that of this very version.
func defaultImage() string {
	v := version.Get().Version
	if v == "devel" {
		v = "latest"
	}
	return "leasecron:" + strings.ReplaceAll(v, "+", "-") // which no tag can have
}

func (f *sidecarFlags) sidecar() (manifests.Sidecar, error) {
	given := make(map[string]string, len(f.settings))
	for _, s := range f.settings {
		name, value, ok := strings.Cut(s, "=")
		if _, twice := given[name]; !ok || name == "" || twice {
			return manifests.Sidecar{}, fmt.Errorf("--set %s: want NAME=VALUE, each name once", s)
		}
		given[name] = value
	}
	settings, err := manifests.SettingNames(given)
	if err != nil {
		return manifests.Sidecar{}, err
	}
	return manifests.Sidecar{
		App: f.app, Image: f.image, DefaultImage: defaultImage(), Plain: f.plain, Target: f.target, Beside: f.container,
		ServiceAccount: f.account, Readiness: f.readiness, Settings: settings,
	}, nil
}

// inputName is what a file that is given as an argument is called in messages.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// readInput reads a file, or standard input where it is called "-".
func readInput(in io.Reader, path string) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, manifests.LargestStream+1))
	if err != nil {
		if path == "-" {
			err = fmt.Errorf("read %s: %w", inputName(path), err)
		}
		return nil, err // which names the file
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s is empty", inputName(path))
	}
	return data, nil
}

func warn(w io.Writer, warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(w, "sidecar: warning: "+warning)
	}
}
