package app

import (
	"context"
	"fmt"
	"time"

	"github.com/leasecron/leasecron/internal/kube"
)

// recheckClock is how often the API server is asked for its time while this clock is off.
const recheckClock = 10 * time.Second

// serverClock compares this machine's clock with the API server's. A sidecar whose clock is off by
// more than the allowed skew must not decide: it would call instants due that are not.
type serverClock struct {
	client *kube.Client // nil: there is no server to compare with
	max    time.Duration
}

// ahead is how far the local clock is ahead of the server's, negative if it is behind.
func (c *serverClock) ahead() (ahead, uncertainty time.Duration, ok bool) {
	if c.client == nil {
		return 0, 0, false
	}
	offset, uncertainty, ok := c.client.ClockOffset()
	return -offset, uncertainty, ok
}

// check returns nil while the clock may be trusted: it surely is not off, or nobody can tell.
func (c *serverClock) check() error {
	ahead, uncertainty, ok := c.ahead()
	if !ok || ahead.Abs()-uncertainty <= c.max {
		return nil
	}
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	return fmt.Errorf("this machine's clock is %s %s the API server's, more than LEASECRON_MAX_CLOCK_SKEW=%s: set it right", ahead.Abs().Round(time.Second), where, c.max)
}

// watch asks the server again while the clock is off, and tells when it is right.
func (c *serverClock) watch(ctx context.Context, namespace, lease string, changed chan<- struct{}) error {
	tick := time.NewTicker(recheckClock)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if c.client == nil || c.check() == nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, recheckClock/2)
		_, _ = c.client.GetLease(asking, namespace, lease) // any answer tells the time
		cancel()
		if c.check() == nil {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
}
