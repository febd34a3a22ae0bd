package rbac

import (
	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
)

// For says what a sidecar with these settings uses: the Role that is packed for it and its own check at the start are of
// one mind.
func For(s config.Settings) Options {
	o := Options{Events: s.Events, LeaderLabel: s.LeaderLabel}
	if s.Election == config.ElectionKubernetes {
		o.Lease = s.LeaseName
	}
	if s.Ledger == config.LedgerKubernetes {
		o.Ledger, o.Catalog = ledger.ConfigMapName(s.App, ledger.NameLedger), ledger.ConfigMapName(s.App, ledger.NameCatalog)
		o.History, o.Leases = ledger.ConfigMapName(s.App, ledger.NameHistory), ledger.ConfigMapName(s.App, ledger.NameLeases)
	}
	if s.JobsFile == "" {
		o.Jobs = s.JobsConfigMap
	}
	return o
}
