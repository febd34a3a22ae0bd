package app

import (
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/config/source"
	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/telemetry"
	"github.com/leasecron/leasecron/internal/version"
	"github.com/leasecron/leasecron/invoker"
)

// connect finds the API server, if any part needs it. Nothing is asked of it yet.
func connect(s config.Settings) (*rest.Config, error) {
	if s.Election != config.ElectionKubernetes && s.Ledger != config.LedgerKubernetes && s.JobsFile != "" {
		return nil, nil
	}
	cfg, _, err := kube.LoadConfig("")
	if err == nil {
		return cfg, nil
	}
	if s.Election == config.ElectionStandalone && s.Ledger != config.LedgerKubernetes {
		return nil, fmt.Errorf("no job definitions: set LEASECRON_JOBS_FILE to a jobs document (there is no cluster to read ConfigMap %s from: %w)", s.JobsConfigMap, err)
	}
	return nil, fmt.Errorf("no cluster to work with: %w; on a single machine set LEASECRON_ELECTION=standalone", err)
}

func openStore(s config.Settings, cfg *rest.Config, watched func(ledger.Name, error)) (ledger.Store, error) {
	switch s.Ledger {
	case config.LedgerFile:
		store, err := ledger.OpenFile(s.LedgerFile)
		if err != nil {
			return nil, fmt.Errorf("LEASECRON_LEDGER_FILE: %w", err)
		}
		return store, nil
	case config.LedgerKubernetes:
		client, err := kube.New(cfg, "ledger")
		if err != nil {
			return nil, err
		}
		return ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: s.Namespace, App: s.App, WatchState: watched})
	}
	return ledger.NewMemory(), nil
}

// newSigner reads the signing secrets; nil where callbacks are not signed.
func newSigner(s config.Settings, log *slog.Logger) (*invoker.Signer, error) {
	if len(s.SigningSecretFiles) == 0 {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	signer, err := invoker.NewSigner(s.SigningSecretFiles, log)
	if err != nil {
		return nil, fmt.Errorf("LEASECRON_SIGNING_SECRET_FILES: %w", err)
	}
	return signer, nil
}

// newTracing reads the variables of OpenTelemetry.
func newTracing(s config.Settings, node string, metrics *telemetry.Telemetry, log *slog.Logger) (*telemetry.Tracing, error) {
	return telemetry.NewTracing(telemetry.TracingOptions{
		App: s.App, Namespace: s.Namespace, Node: node, Version: version.Get().Version, PodName: s.Pod.Name, PodUID: s.Pod.UID,
		Failed: metrics.TraceExportFailed, Log: log,
	})
}

// newElector returns the elector. client, which only it uses, is nil without Kubernetes.
func newElector(s config.Settings, opts election.Options, client *kube.Client) (election.Elector, error) {
	if s.Election == config.ElectionStandalone {
		return election.NewStandalone(opts)
	}
	return election.NewKubernetes(election.KubernetesOptions{
		Options: opts, Client: client, Namespace: s.Namespace, Name: s.LeaseName, App: s.App,
		Duration: s.LeaseDuration, RenewDeadline: s.RenewDeadline,
	})
}

// leaseClient has connections of its own, so that nothing delays a renewal; nil without an
// election on Kubernetes.
func leaseClient(s config.Settings, cfg *rest.Config) (*kube.Client, error) {
	if s.Election != config.ElectionKubernetes {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	return kube.New(cfg, "lease")
}

// renewals turns the election's events into metrics.
type renewals struct{ telemetry *telemetry.Telemetry }

// Observe implements [election.Observer].
func (r renewals) Observe(e election.Event) {
	switch e := e.(type) {
	case election.Renewed:
		r.telemetry.LeaseRenewed(e.Took, e.Err)
	case election.TermEnded:
		if e.Lost {
			r.telemetry.LeadershipLost()
		}
	}
}

func newSource(s config.Settings, cfg *rest.Config, log *slog.Logger) (source.Source, error) {
	if s.JobsFile != "" {
		return source.NewFile(source.FileOptions{Path: s.JobsFile, Parse: config.OptionsOf(s), Logger: log})
	}
	client, err := kube.New(cfg, "definitions")
	if err != nil {
		return nil, err
	}
	return source.NewConfigMap(source.ConfigMapOptions{
		Client: client, Namespace: s.Namespace, Name: s.JobsConfigMap, Key: s.JobsKey, Parse: config.OptionsOf(s), Logger: log,
	})
}
