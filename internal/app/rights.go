package app

import (
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/rights"
	"github.com/leasecron/leasecron/rbac"
)

// openRights makes the check of what this sidecar may do, and lets it see what cfg's clients are
// refused. Without an API server there is nothing to check.
func (a *App) openRights(cfg *rest.Config) error {
	used := rbac.Rights(rbac.Rules(rightsOf(a.settings)))
	if cfg == nil || len(used) == 0 {
		return nil
	}
	client, err := kube.New(cfg, "rights")
	if err != nil {
		return err
	}
	s := a.settings
	if a.rights, err = rights.New(rights.Options{
		Reviewer: client, App: s.App, Namespace: s.Namespace, PodNamespace: s.Pod.Namespace, Rights: used, Logger: a.log,
	}); err != nil {
		return err
	}
	cfg.Wrap(a.rights.Wrap)
	return nil
}

// rightsOf says what a sidecar with these settings uses.
func rightsOf(s config.Settings) rbac.Options {
	o := rbac.Options{Events: s.Events, LeaderLabel: s.LeaderLabel}
	if s.Election == config.ElectionKubernetes {
		o.Lease = s.LeaseName
	}
	if s.Ledger == config.LedgerKubernetes {
		o.Ledger, o.Catalog = ledger.ConfigMapName(s.App, ledger.NameLedger), ledger.ConfigMapName(s.App, ledger.NameCatalog)
		o.History = ledger.ConfigMapName(s.App, ledger.NameHistory)
	}
	if s.JobsFile == "" {
		o.Jobs = s.JobsConfigMap
	}
	return o
}
