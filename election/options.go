package election

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasecron/leasecron/internal/kube"
)

// Options are what every elector takes.
type Options struct {
	// Identity names this process, unlike any other ever: see NewIdentity. Required.
	Identity string
	// Eligible says whether this process may lead now: nil, or why not. While it may not, it does not
	// campaign, and a term that it has is handed over. It must not block. Nil: always.
	Eligible func() error
	// Changed, if set, receives when Eligible may answer differently than before. Without it the
	// elector asks when it next has something to do, at the latest after a third of the lease duration.
	Changed <-chan struct{}
	// HandBack is how long the release waits for lead to return. Default 3 s.
	HandBack time.Duration
	// Logger receives terms won and lost and the reason of waiting. Default: slog.Default().
	Logger *slog.Logger
	// Observer, if set, is told every event.
	Observer Observer
}

func (o *Options) setDefaults() error {
	if o.Identity == "" {
		return errors.New("election: Identity is missing")
	}
	if o.Eligible == nil {
		o.Eligible = func() error { return nil }
	}
	if o.HandBack == 0 {
		o.HandBack = 3 * time.Second
	}
	if o.HandBack < 0 {
		return fmt.Errorf("election: HandBack is %v, want more than 0", o.HandBack)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// maxDuration bounds what this process asks for, and so also how long it waits for a holder that
// asks for more.
const maxDuration = time.Hour

// KubernetesOptions are what an election on a Lease object takes.
type KubernetesOptions struct {
	Options

	// Client is used for the Lease alone, so that nothing else delays a renewal. Required.
	Client *kube.Client
	// Namespace and Name are of the Lease object, which must exist. Required.
	Namespace, Name string
	// App is the workload. A Lease labelled for another one is refused. Empty: not checked.
	App string

	// Duration is how long the others wait after a renewal before they take over: whole seconds, at
	// most an hour. Default 15 s. It is renewed every third of that.
	Duration time.Duration
	// RenewDeadline ends a term that long after the last successful renewal was sent. It is less than
	// Duration, so that this process stops before another starts, and more than a third of it.
	// Default: two thirds of Duration.
	RenewDeadline time.Duration
	// CallTimeout bounds each call to the API server. At most half of what is left between the time
	// for a renewal and RenewDeadline, so that a call that hangs leaves time for another.
	// Default: a third of that.
	CallTimeout time.Duration
}

func (o *KubernetesOptions) setDefaults() error {
	if err := o.Options.setDefaults(); err != nil {
		return err
	}
	if o.Client == nil || o.Namespace == "" || o.Name == "" {
		return errors.New("election: Client, Namespace and Name are required")
	}
	if o.Duration == 0 {
		o.Duration = 15 * time.Second
	}
	if o.Duration < time.Second || o.Duration > maxDuration || o.Duration%time.Second != 0 {
		return fmt.Errorf("lease duration is %v, want whole seconds from 1s to %v", o.Duration, maxDuration)
	}
	if o.RenewDeadline == 0 {
		o.RenewDeadline = o.Duration * 2 / 3
	}
	interval := o.renewEvery()
	if o.RenewDeadline <= interval || o.RenewDeadline >= o.Duration {
		return fmt.Errorf("renew deadline is %v, want more than %v (a third of the lease duration) and less than %v (the lease duration)",
			o.RenewDeadline, interval, o.Duration)
	}
	spare := o.RenewDeadline - interval
	if o.CallTimeout == 0 {
		o.CallTimeout = spare / 3
	}
	if o.CallTimeout <= 0 || o.CallTimeout > spare/2 {
		return fmt.Errorf("call timeout of the lease is %v, want more than 0 and at most %v, so that two calls fit before the renew deadline",
			o.CallTimeout, spare/2)
	}
	return nil
}

func (o *KubernetesOptions) renewEvery() time.Duration { return o.Duration / 3 }
