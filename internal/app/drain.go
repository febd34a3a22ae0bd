package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/internal/logkey"
)

// errDraining is why a sidecar that was told to leave does not lead.
var errDraining = errors.New("this sidecar is drained; it leads again only after a restart")

// departure is the one way out, whether a drain asks for it or the end of the process: hand the
// leadership over, finish the runs. It happens once.
type departure struct {
	begin sync.Once
	asked chan struct{} // closed when it begins
	over  chan struct{} // closed when the runs are recorded, or the grace is over

	mu         sync.Mutex
	since      time.Time
	handedOver time.Time
	until      time.Time
	ended      time.Time
	err        error
}

func newDeparture() *departure {
	return &departure{asked: make(chan struct{}), over: make(chan struct{})}
}

// ask begins it, unless it has begun. The grace counts from the first time.
func (d *departure) ask(grace time.Duration) {
	d.begin.Do(func() {
		d.mu.Lock()
		d.since = time.Now()
		d.until = d.since.Add(grace)
		d.mu.Unlock()
		close(d.asked)
	})
}

// barred returns why this sidecar may not lead any more; nil before it was asked to leave.
func (d *departure) barred() error {
	select {
	case <-d.asked:
		return errDraining
	default:
		return nil
	}
}

// Drain implements [api.Drainer].
func (a *App) Drain() <-chan struct{} {
	a.departure.ask(a.settings.ShutdownGrace)
	return a.departure.over
}

// DrainStatus implements [api.Drainer].
func (a *App) DrainStatus() api.DrainStatus {
	status := a.engines.Status()
	d := a.departure
	d.mu.Lock()
	defer d.mu.Unlock()
	s := api.DrainStatus{
		State: api.DrainServing, Since: d.since, HandedOverAt: d.handedOver, Until: d.until, EndedAt: d.ended,
		Runs: status.Held, Lost: status.Abandoned,
	}
	switch {
	case !d.ended.IsZero():
		s.State = api.DrainDrained
	case !d.since.IsZero():
		s.State = api.DrainDraining
	}
	if d.err != nil && s.Runs > 0 { // else it was made up for
		s.Error = d.err.Error()
	}
	return s
}

// leave hands over and works off: electing is what competes and leads, until its context ends. It
// returns when the runs are recorded or the grace is over; serving then still follows the Lease, so
// that /leader goes on being right.
func (a *App) leave(ctx context.Context, electing, serving *errgroup.Group) {
	_ = electing.Wait() // the leadership is handed over when this returns
	d := a.departure
	d.mu.Lock()
	d.handedOver = time.Now()
	d.mu.Unlock()
	serving.Go(func() error {
		return a.elector.Run(ctx, func(ctx context.Context, _ *election.Lease) error {
			<-ctx.Done() // never: it is barred
			return context.Cause(ctx)
		})
	})
	a.log.Info("handed over, finishing runs", slog.Int(logkey.Count, a.engines.Status().Held))

	grace, cancel := context.WithDeadline(ctx, d.until)
	defer cancel()
	err := a.engines.drain(grace)
	if ctx.Err() != nil {
		return // a part has failed, and there is no time left
	}
	if err != nil {
		a.log.Warn("runs could not be reported within the grace", logkey.Err(err))
	}
	status := a.engines.Status()
	d.mu.Lock()
	d.ended, d.err = time.Now(), err
	d.mu.Unlock()
	close(d.over)
	a.log.Info("drained: it runs nothing and leads no more, until it is restarted", slog.Int("lost", status.Abandoned), slog.Int(logkey.Count, status.Held))
}

// forsakeTimeout bounds how long the end waits until the ledger knows what ends with the app.
const forsakeTimeout = 2 * time.Second

// forsake tells at the end of the process what became of the runs that the app has accepted. A native
// sidecar is told to end after the app has: then nobody will complete them, and recovery need not wait
// for the node timeout. Where the app lives on, as when this container alone restarts, they stay open
// for the next process here.
func (a *App) forsake(ctx context.Context) {
	open := a.engines.Status().InFlight
	if open == 0 {
		return
	}
	gone := a.probe.Ask(ctx)
	if gone == nil {
		a.log.Info("runs that the app has accepted stay open, for the next sidecar in this pod", slog.Int(logkey.Count, open))
		return
	}
	a.log.Warn("runs that the app has accepted end with it", slog.Int(logkey.Count, open), logkey.Err(gone))
	ctx, cancel := context.WithTimeout(ctx, forsakeTimeout)
	defer cancel()
	if err := a.engines.cluster.Forsake(ctx); err != nil {
		a.log.Warn("they could not be recorded as lost", logkey.Err(err))
	}
}
