package invoker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

const (
	probeInterval = time.Second
	// probeFailures in a row make a reachable app unreachable: one slow answer is no outage.
	probeFailures = 3
	// startPatience is how long an app may take to start before its absence is warned of: most are
	// there by then, and a wrong port never is.
	startPatience = 5 * time.Second
)

// ProbeOptions configure a [Probe]. With neither HealthURL, a target nor Check, the app counts as
// reachable always.
type ProbeOptions struct {
	// HealthURL answers 2xx to a GET while the app can take callbacks. It goes before Target.
	HealthURL string
	// Target is the base URL of the callbacks; a TCP connection to it shows that the app listens.
	Target string
	// CurrentTarget, asked before each question, replaces Target where the definitions may change
	// it. While it returns "" the app counts as reachable. It must not block.
	CurrentTarget func() string
	// AllowedHosts are the hosts beside loopback that may be asked, as for [Options].
	AllowedHosts []string
	// Check replaces both with another question. It must return when ctx ends.
	Check func(ctx context.Context) error
	// Log gets one line for each change, and one if the app is still not there some seconds after the
	// start. Default: none.
	Log *slog.Logger
}

// Probe knows whether the app can be reached. It asks every second; an app is unreachable until
// the first success, and again after three failures in a row. Its methods may be called
// concurrently.
type Probe struct {
	check func(ctx context.Context) error // nil: no question, always reachable
	log   *slog.Logger

	mu        sync.Mutex
	reachable bool
	err       error         // why it is not reachable
	changed   chan struct{} // closed and replaced at each change
}

// ErrNotProbed is what [Probe.Err] returns before the first answer.
var ErrNotProbed = errors.New("the app was not asked yet")

// NewProbe returns a probe that has not asked anything yet.
func NewProbe(o ProbeOptions) (*Probe, error) {
	p := &Probe{
		check:   o.Check,
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)).With(slog.String(logkey.Component, "probe")),
		err:     ErrNotProbed,
		changed: make(chan struct{}),
	}
	rule, err := newTargets(o.AllowedHosts, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case p.check != nil:
	case o.HealthURL != "":
		u, err := rule.parse(o.HealthURL)
		if err != nil {
			return nil, fmt.Errorf("health URL: %w", err)
		}
		p.check = healthCheck(rule, u)
	case o.CurrentTarget != nil:
		p.check = func(ctx context.Context) error {
			target := o.CurrentTarget()
			if target == "" {
				return nil
			}
			u, err := rule.parse(target)
			if err != nil {
				return fmt.Errorf("default target: %w", err)
			}
			return connectCheck(rule, u)(ctx)
		}
	case o.Target != "":
		u, err := rule.parse(o.Target)
		if err != nil {
			return nil, fmt.Errorf("default target: %w", err)
		}
		p.check = connectCheck(rule, u)
	default:
		p.reachable, p.err = true, nil
	}
	return p, nil
}

// Run asks until ctx ends and returns why it ended.
func (p *Probe) Run(ctx context.Context) error {
	if p.check == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	failures := 0
	begun, unseen := time.Now(), true // whether its absence is still to be warned of
	for {
		err := p.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			failures, unseen = 0, false
			p.set(ctx, nil)
		default:
			// While it is down already, each failure still brings the newest reason.
			if failures++; failures >= probeFailures || !p.Reachable() {
				p.set(ctx, err)
			}
			if unseen && time.Since(begun) >= startPatience {
				unseen = false
				p.log.LogAttrs(ctx, slog.LevelWarn, "app not reachable since the start, nothing runs until it is", logkey.Err(err))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Reachable reports whether the app could be reached lately.
func (p *Probe) Reachable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reachable
}

// Err returns why the app is not reachable, nil while it is.
func (p *Probe) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Changed returns a channel that is closed when Reachable next changes. To miss no change, take
// the channel first and ask Reachable after it.
func (p *Probe) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Ask asks once, now, and returns why the app cannot be reached. What [Probe.Reachable] says stays.
func (p *Probe) Ask(ctx context.Context) error {
	if p.check == nil {
		return nil
	}
	return p.ask(ctx)
}

// ask asks once, within one interval.
func (p *Probe) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeInterval)
	defer cancel()
	return p.check(ctx)
}

// set records what the probes say, nil for reachable.
func (p *Probe) set(ctx context.Context, err error) {
	p.mu.Lock()
	was := p.reachable
	p.reachable, p.err = err == nil, err
	if was != p.reachable {
		close(p.changed)
		p.changed = make(chan struct{})
	}
	p.mu.Unlock()
	switch {
	case !was && err == nil:
		p.log.LogAttrs(ctx, slog.LevelInfo, "app became reachable")
	case was && err != nil:
		p.log.LogAttrs(ctx, slog.LevelWarn, "app became unreachable", logkey.Err(err))
	}
}

// healthCheck asks for a 2xx answer. Each question takes a new connection: an app whose
// listener is gone must not look alive through an old one.
func healthCheck(rule targets, to address) func(context.Context) error {
	protocols := http1()
	if to.h2c {
		protocols = onlyH2C()
	}
	client := &http.Client{
		CheckRedirect: noRedirect,
		Transport: &http.Transport{
			DialContext:            rule.dial,
			TLSClientConfig:        tlsConfig(nil),
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxResponseHeader,
			Protocols:              protocols,
		},
	}
	return func(ctx context.Context) error {
		req := newRequest(ctx, http.MethodGet, to)
		req.Header = http.Header{}
		resp, err := client.Do(req)
		if err != nil {
			return errors.New(probeMessage(err))
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			return errors.New(statusLine(resp.StatusCode) + " at its health URL")
		}
		return nil
	}
}

// connectCheck asks whether something listens.
func connectCheck(rule targets, to address) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := rule.dial(ctx, "tcp", to.dialed())
		if err != nil {
			return errors.New(probeMessage(err))
		}
		return c.Close()
	}
}

func probeMessage(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the app did not answer within %s", probeInterval)
	}
	return unreachedMessage(err)
}
