package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/invoker"
)

// currentTarget is the default target of the definitions in force.
type currentTarget struct{ url atomic.Pointer[string] }

func (c *currentTarget) set(url string) { c.url.Store(&url) }

func (c *currentTarget) get() string {
	if url := c.url.Load(); url != nil {
		return *url
	}
	return ""
}

func newProbe(s config.Settings, target *currentTarget, log *slog.Logger) (*invoker.Probe, error) {
	return invoker.NewProbe(invoker.ProbeOptions{
		HealthURL: s.AppHealthURL, CurrentTarget: target.get, AllowedHosts: s.AllowedHosts, Log: log,
	})
}

// reachable returns nil while the app can take callbacks. A sidecar leads only then, since a
// leader that cannot deliver is worth less than none.
func reachable(probe *invoker.Probe) error {
	if probe.Reachable() {
		return nil
	}
	err := probe.Err()
	if errors.Is(err, invoker.ErrNotProbed) {
		return fmt.Errorf("%w whether the app can be reached", election.ErrUndecided)
	}
	return fmt.Errorf("the app cannot be reached: %w", err)
}

// changes turns the probe's closed channels into the electors' that receive. It sends once at
// the beginning, since the probe may have changed before the first channel was taken.
func changes(ctx context.Context, probe *invoker.Probe, outs []chan struct{}) error {
	for {
		changed := probe.Changed()
		for _, out := range outs {
			notify(out)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// notify sends to a channel that keeps one message.
func notify(out chan<- struct{}) {
	select {
	case out <- struct{}{}:
	default: // one is waiting already
	}
}
