// Package app puts a sidecar together: it is the one package that knows all the others. It opens
// what the settings name, runs everything until its context ends, and leaves in the order that
// keeps the promises: hand over the leadership, finish the runs, then close.
package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/config/source"
	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/events"
	"github.com/leasecron/leasecron/internal/leaderlabel"
	"github.com/leasecron/leasecron/internal/logkey"
	"github.com/leasecron/leasecron/internal/rights"
	"github.com/leasecron/leasecron/internal/telemetry"
	"github.com/leasecron/leasecron/internal/version"
	"github.com/leasecron/leasecron/invoker"
)

// SetupError says that the sidecar cannot start with what it was given: a setting, a file, an
// address. The process exits with code 2.
type SetupError struct{ Err error }

// Error returns the cause, which names the place and the fix.
func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// App is one sidecar.
type App struct {
	settings config.Settings
	log      *slog.Logger

	store   ledger.Store
	engines engines
	elector election.Elector
	// instanceElector lets the instance's own engine work while the app can be reached.
	instanceElector election.Elector
	invoker         *invoker.Client
	signer          *invoker.Signer // nil: callbacks are not signed
	probe           *invoker.Probe
	jobs            source.Source
	leases          *leases.Service
	server          *api.Server
	telemetry       *telemetry.Telemetry
	tracing         *telemetry.Tracing // nil: none
	defs            definitions
	target          currentTarget
	clock           serverClock
	departure       *departure
	watches         watches
	rights          *rights.Check      // nil: there is no API server
	label           *leaderlabel.Label // nil: off
	events          *events.Recorder   // nil: off
	reachability    [2]chan struct{}   // each receives when the probe's answer changed
}

// New opens and checks everything that can be found out at once. What it returned has to run, or
// to be closed. An error is a [*SetupError].
func New(ctx context.Context, settings config.Settings, log *slog.Logger) (*App, error) {
	a := &App{settings: settings, log: log, departure: newDeparture(), watches: watches{log: log}, reachability: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}}
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, &SetupError{err}
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	s := a.settings
	identity := election.NewIdentity(s.NodeID)
	kubernetes, err := connect(s)
	if err != nil {
		return err
	}
	if err := a.openRights(kubernetes); err != nil { // first, so that it sees what the others are refused
		return err
	}
	if a.store, err = openStore(s, kubernetes, a.watches.note); err != nil {
		return err
	}
	if a.signer, err = newSigner(s, a.log); err != nil {
		return err
	}
	if a.invoker, err = invoker.New(invoker.Options{
		AllowedHosts: s.AllowedHosts, Signer: a.signer, Version: version.Get().Version,
	}); err != nil {
		return err
	}
	a.target.set(s.Target) // until the definitions name another one
	if a.probe, err = newProbe(s, &a.target, a.log); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	a.telemetry = telemetry.New(registry, telemetry.Options{Version: version.Get().Version, Commit: version.Get().Commit, Runtime: true})

	if a.clock.client, err = leaseClient(s, kubernetes); err != nil {
		return err
	}
	a.clock.max = s.MaxClockSkew
	if a.tracing, err = newTracing(s, identity, a.telemetry, a.log); err != nil {
		return err
	}
	if err := a.openOnlookers(identity, kubernetes); err != nil {
		return err
	}
	sets := &jobSets{next: a.engineObservers(a.telemetry, telemetry.LogEvents(a.log, a.tracing))}
	shared := engine.Options{
		Namespace: s.Namespace, App: s.App, Node: identity, Place: s.Pod.UID, Target: s.Target,
		MaxRuns: s.MaxConcurrentRuns, NodeTimeout: s.NodeTimeout, LeaseDuration: s.LeaseDuration, MaxClockSkew: s.MaxClockSkew,
		Invoker: a.tracing.Invoker(a.invoker), Logger: a.log,
	}
	own := shared
	own.Observer = sets.observer(1)
	if a.engines.instance, err = newInstanceEngine(own); err != nil {
		return err
	}
	shared.Ledger = ledger.NewPort[state.Ledger](a.store, ledger.NameLedger)
	shared.Catalog = ledger.NewPort[state.Catalog](a.store, ledger.NameCatalog)
	shared.History = ledger.NewPort[state.History](a.store, ledger.NameHistory)
	shared.ClockCheck, shared.MayLeadChanged = a.clock.check, func() { notify(a.reachability[0]) }
	shared.MaxLedgerBytes = ledger.NameLedger.MaxBytes()
	shared.Exclusive, shared.TermFloor, shared.Observer = a.store.Exclusive(), termFloor(s), sets.observer(0)
	if a.engines.cluster, err = engine.New(shared); err != nil {
		return err
	}
	if a.elector, err = newElector(s, election.Options{
		Identity: identity, Changed: a.reachability[0], Logger: a.log, Observer: electionObservers{renewals{a.telemetry}, a},
		Eligible: func() error {
			return cmp.Or(a.departure.barred(), a.clock.check(), reachable(a.probe), a.engines.cluster.MayLead())
		},
	}, a.clock.client); err != nil {
		return err
	}
	// The jobs of each instance know no leader: they only wait for the app.
	if a.instanceElector, err = election.NewStandalone(election.Options{
		Identity: identity, Changed: a.reachability[1], Logger: slog.New(slog.DiscardHandler),
		Eligible: func() error { return reachable(a.probe) },
	}); err != nil {
		return err
	}
	a.engines.waiting = func() string {
		if s := a.elector.Status(); !s.Leading && s.Holder == "" {
			return s.Waiting
		}
		return ""
	}
	a.telemetry.SetStatus(a.engines.Status)
	if a.rights != nil {
		a.telemetry.SetRights(a.rights.Missing)
	}
	if a.signer != nil {
		a.telemetry.SetSigning(a.signer.Err)
	}
	a.telemetry.SetLease(func() telemetry.Lease {
		status := a.elector.Status()
		return telemetry.Lease{Leading: status.Leading, RenewedAt: status.RenewedAt}
	})
	a.telemetry.SetSurroundings(func() telemetry.Surroundings {
		ahead, _, _ := a.clock.ahead()
		return telemetry.Surroundings{
			ClockAhead: ahead, ClockLimit: a.clock.max, AppReachable: a.probe.Reachable(), LedgerLimit: ledger.NameLedger.MaxBytes(),
		}
	})
	if a.jobs, err = newSource(s, kubernetes, a.log); err != nil {
		return err
	}
	if a.leases, err = newLeases(s, identity, kubernetes, a.store); err != nil {
		return err
	}
	warnOfLeases(ctx, a.store, a.log)
	a.telemetry.SetNamedLeases(func() telemetry.NamedLeases {
		stats := a.leases.Stats()
		return telemetry.NamedLeases{Held: stats.Held, Acquired: stats.Acquired, RenewalsRefused: stats.Lost}
	})
	a.server, err = api.New(api.Options{
		Address: s.Listen, APIAddress: s.APIListen, Namespace: s.Namespace, App: s.App,
		Version: version.Get().Version, Commit: version.Get().Commit, ZoneData: schedule.ZoneDataVersion(), DefaultTarget: s.Target,
		Engine: a.engines, Leadership: leadership{a}, Drain: a, Leases: a.leases,
		Live: a.liveness(), Ready: a.readiness(), Metrics: registry, Logger: a.log,
	})
	if err != nil {
		return err
	}
	if err := a.server.Listen(ctx); err != nil {
		return err
	}
	if s.Ledger == config.LedgerMemory { // said of a sidecar that starts: a refusal is the one line that counts
		a.log.Warn("the ledger is kept in memory: a restart forgets what was decided; set LEASECRON_LEDGER_FILE to keep it")
	}
	return nil
}

// Address is where the pod network is served.
func (a *App) Address() string { return a.server.Address() }

// APIAddress is where the API is served.
func (a *App) APIAddress() string { return a.server.APIAddress() }

// Close gives back what New opened, when Run will not be called.
func (a *App) Close() {
	if a.server != nil {
		a.server.Close()
	}
	if a.invoker != nil {
		a.invoker.Close()
	}
	if a.leases != nil {
		a.leases.Close()
	}
	a.tracing.Close()
	if a.store != nil {
		if err := a.store.Close(); err != nil {
			a.log.Warn("ledger not closed cleanly", logkey.Err(err))
		}
	}
}

// Run works until ctx ends, then hands over, finishes the runs within the shutdown grace, and
// returns nil. A drain does all of that before ctx ends, and the rest goes on until then. An error
// before that is a [*SetupError] where the definitions' file is to blame.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	a.log.Info("started",
		slog.String(logkey.App, a.settings.App), slog.String(logkey.Namespace, a.settings.Namespace),
		slog.String("version", version.Get().Version), slog.String("election", a.settings.Election), slog.String("ledger", a.settings.Ledger),
		slog.String(logkey.Address, a.Address()), slog.String("api_address", a.APIAddress()))

	// What has to outlive ctx, because leaving needs it.
	last, stopLast := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopLast(nil)
	serving, servingCtx := errgroup.WithContext(last)
	serving.Go(func() error { return a.engines.cluster.Run(servingCtx) })
	serving.Go(func() error { return a.engines.instance.Run(servingCtx) })
	serving.Go(func() error { return a.server.Run(servingCtx) })
	if a.rights != nil {
		serving.Go(func() error { return a.rights.Run(servingCtx) })
	}
	if a.label != nil {
		serving.Go(func() error { return a.label.Run(servingCtx) })
	}
	if a.events != nil {
		serving.Go(func() error { return a.events.Run(servingCtx) })
	}

	// A part that fails ends the whole, in order.
	working, stopWorking := context.WithCancelCause(ctx)
	defer stopWorking(nil)
	defer context.AfterFunc(servingCtx, func() { stopWorking(context.Cause(servingCtx)) })()
	looking, workingCtx := errgroup.WithContext(working)
	looking.Go(func() error {
		err := a.jobs.Run(workingCtx, a.defined)
		if workingCtx.Err() == nil && err != nil {
			return &SetupError{err}
		}
		return err
	})
	looking.Go(func() error { return a.probe.Run(workingCtx) })
	if a.signer != nil {
		looking.Go(func() error { return a.signer.Run(workingCtx) })
	}
	looking.Go(func() error { return changes(workingCtx, a.probe, a.reachability[:]) })
	looking.Go(func() error {
		return a.clock.watch(workingCtx, a.settings.Namespace, a.settings.LeaseName, a.reachability[0])
	})

	// The end of the work and a drain take the same way out; after a drain the rest goes on.
	campaign, retreat := context.WithCancelCause(workingCtx)
	defer retreat(nil)
	defer context.AfterFunc(workingCtx, func() { a.Drain() })()
	looking.Go(func() error {
		<-a.departure.asked // at the end at the latest
		a.log.Info("draining: handing over", slog.Any(logkey.Reason, cmp.Or(context.Cause(workingCtx), errDraining)))
		retreat(errDraining)
		<-workingCtx.Done()
		return context.Cause(workingCtx)
	})
	electing, campaignCtx := errgroup.WithContext(campaign)
	electing.Go(func() error {
		return a.elector.Run(campaignCtx, func(ctx context.Context, lease *election.Lease) error {
			return a.engines.cluster.Lead(ctx, lease)
		})
	})
	electing.Go(func() error {
		return a.instanceElector.Run(campaignCtx, func(ctx context.Context, lease *election.Lease) error {
			return a.engines.instance.Lead(ctx, lease)
		})
	})
	a.leave(servingCtx, electing, serving)
	reason := looking.Wait() // until the process is told to end
	a.log.Info("stopping", slog.Any(logkey.Reason, reason))
	a.forsake(servingCtx)
	stopLast(errStopped)
	if err := serving.Wait(); err != nil && !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		return err
	}
	if ctx.Err() == nil && reason != nil {
		return reason
	}
	a.log.Info("stopped")
	return nil
}

var errStopped = errors.New("stopped")

// defined takes what the definitions' source has seen.
func (a *App) defined(u source.Update) {
	a.defs.note(u)
	a.telemetry.ConfigReloaded(u.At, u.Err)
	if a.events != nil && a.elector.Status().Leading {
		a.tellRefused()
	}
	if u.Err != nil {
		a.log.Error("job definitions refused, the last good ones stay in force", slog.String(logkey.Source, u.Origin), logkey.Err(u.Err))
		return
	}
	for _, w := range u.Warnings {
		a.log.Warn("job definitions", slog.String(logkey.Source, u.Origin), slog.String("warning", w.String()))
	}
	a.log.Info("job definitions loaded", slog.String(logkey.Source, u.Origin), slog.Int("jobs", len(u.Document.Jobs)))
	a.target.set(cmp.Or(u.Document.Target, a.settings.Target))
	a.telemetry.JobsLoaded(u.Document.Jobs)
	a.engines.define(u.Document.Jobs)
}

// observers tells several about each event.
type observers []engine.Observer

// Observe implements [engine.Observer].
func (o observers) Observe(e engine.Event) {
	for _, observer := range o {
		observer.Observe(e)
	}
}

// termFloor makes the terms of a ledger that forgets grow from one life to the next.
func termFloor(s config.Settings) int64 {
	if s.Ledger == config.LedgerMemory {
		return time.Now().UnixMilli()
	}
	return 0
}

// leadership shows the election to the API.
type leadership struct{ app *App }

// Leader implements [api.Leadership].
func (l leadership) Leader() api.Leader {
	s := l.app.elector.Status()
	leader := api.Leader{
		Name: s.HolderName(), Self: election.Status{Holder: s.Identity}.HolderName(), IsLeader: s.Leading, Term: s.Term, Lease: s.Lease,
		AcquiredAt: s.AcquiredAt, RenewedAt: s.RenewedAt, SeenAt: s.SeenAt, Draining: l.app.departure.barred() != nil,
	}
	if !s.SeenAt.IsZero() {
		leader.AgeSeconds = new(max(time.Since(s.SeenAt), 0).Round(time.Millisecond).Seconds())
	}
	return leader
}
