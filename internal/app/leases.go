package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/logkey"
)

// leaseCallTimeout bounds one call to the API server for the named leases: several fit into the time
// to live of most, so that one that hangs costs nothing but itself.
const leaseCallTimeout = 2 * time.Second

// newLeases returns the named leases of the app, which are kept where the ledger is.
func newLeases(s config.Settings, identity string, cfg *rest.Config, store ledger.Store) (*leases.Service, error) {
	where, anew := "the document of the leases", "empty it"
	if file, ok := store.(*ledger.File); ok {
		where, anew = "the file of the leases, "+file.Path(ledger.NameLeases)+",", "move it away"
	}
	if s.Ledger == config.LedgerKubernetes {
		// Connections of their own, so that they never queue behind the ledger's.
		client, err := kube.New(cfg, "leases")
		if err != nil {
			return nil, err
		}
		if store, err = ledger.NewKubernetes(ledger.KubernetesOptions{
			Client: client, Namespace: s.Namespace, App: s.App, Timeout: leaseCallTimeout,
		}); err != nil {
			return nil, err
		}
		where = "ConfigMap " + s.Namespace + "/" + ledger.ConfigMapName(s.App, ledger.NameLeases)
	}
	return leases.New(leases.Options{
		Store: leaseTable{ledger.NewPort[leases.Table](store, ledger.NameLeases), where, anew},
		Self:  leases.Self{Node: identity, Place: s.Pod.UID, Exclusive: store.Exclusive()},
	})
}

// warnOfLeases tells of leases that cannot be given, while the jobs can be worked on. Only a file is looked
// at: Kubernetes may not answer yet.
func warnOfLeases(ctx context.Context, store ledger.Store, log *slog.Logger) {
	if _, ok := store.(*ledger.File); !ok {
		return
	}
	if _, _, err := store.Load(ctx, ledger.NameLeases); err != nil {
		log.Error("named leases cannot be given, jobs are not concerned", logkey.Err(err))
	}
}

// leaseTable is the document of the leases, whose errors say what to do where somebody can.
type leaseTable struct {
	ledger.Port[leases.Table]
	where string
	anew  string // what makes it begin with no leases
}

var _ leases.Store = leaseTable{}

// Read implements [leases.Store].
func (l leaseTable) Read(ctx context.Context) (*leases.Table, error) {
	t, err := l.Port.Read(ctx)
	return t, l.explain(err)
}

// Swap implements [leases.Store].
func (l leaseTable) Swap(ctx context.Context, change func(*leases.Table) error) (*leases.Table, error) {
	t, err := l.Port.Swap(ctx, change)
	return t, l.explain(err)
}

// explain gives an error its advice. What it does not know may pass by itself.
func (l leaseTable) explain(err error) error {
	var advice string
	switch {
	case err == nil, errors.Is(err, ledger.ErrUnknown):
		return err
	case errors.Is(err, ledger.ErrMissing):
		advice = "does not exist: apply what sidecar pack makes"
	case apierrors.IsForbidden(err):
		advice = "may not be used by this ServiceAccount: give it get and update on that name"
	case errors.Is(err, ledger.ErrNewerFormat):
		advice = "was written by a newer version: run that one here too"
	case errors.Is(err, ledger.ErrCorrupt):
		advice = "is damaged: put back a copy, or " + l.anew + " to start with no leases"
	default:
		return err
	}
	return &run.Error{Code: run.CodeElectionUnknown, Detail: fmt.Sprintf("%s %s", l.where, advice), Err: err}
}
