package invoker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// DefaultTimeout bounds an attempt that names no timeout.
const DefaultTimeout = 30 * time.Second

// errTimeout is the cause with which an attempt's context ends when its time is up.
var errTimeout = errors.New("the attempt's timeout has passed")

// Options configure a [Client]. The zero value calls loopback only.
type Options struct {
	// AllowedHosts are the hosts beside loopback that may be called: names or IP addresses
	// without a port. Link-local and metadata addresses stay forbidden.
	AllowedHosts []string
	// Version is told to the app in the User-Agent header. Default "dev".
	Version string
	// TLS is used for https targets. Default: the system's roots, TLS 1.2 and later.
	TLS *tls.Config
	// Signer signs each request. Default: requests are not signed.
	Signer *Signer
	// Resolver looks up host names. Default: the system's.
	Resolver *net.Resolver
}

// Client delivers callbacks. It is safe for concurrent use.
type Client struct {
	userAgent string
	targets   targets
	signer    *Signer
	http      *http.Client
	h2c       *http.Client
}

// New returns a client that has not connected anywhere yet.
func New(o Options) (*Client, error) {
	hosts, err := newTargets(o.AllowedHosts, o.Resolver)
	if err != nil {
		return nil, err
	}
	c := &Client{
		userAgent: "leasecron/" + cmp.Or(o.Version, "dev"),
		targets:   hosts,
		signer:    o.Signer,
	}
	c.h2c = &http.Client{Transport: &h2cTransport{rule: hosts}, CheckRedirect: noRedirect}
	c.http = &http.Client{Transport: newTransports(hosts, o.TLS), CheckRedirect: noRedirect}
	return c, nil
}

// Close gives up the idle connections. Attempts in flight go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Invoke delivers one attempt and returns when it has ended: at the latest when its timeout has
// passed or ctx has ended, whichever is first. MayStart and Started are called from another
// goroutine, never after Invoke has returned, and must not block.
func (c *Client) Invoke(ctx context.Context, a run.Attempt) run.Outcome {
	start := time.Now()
	timeout := a.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()

	g := &gate{mayStart: a.MayStart, started: a.Started, done: ctx.Done()}
	out := c.deliver(ctx, a, g, start.Add(min(timeout, retryWindow)))
	if startedAt := g.close(); !out.NotSent { // of a start that was taken back nobody needs to know
		out.StartedAt = startedAt
	}
	out.EndedAt = time.Now()
	return out
}

// deliver does the attempt: check, send, read the answer.
func (c *Client) deliver(ctx context.Context, a run.Attempt, g *gate, retryUntil time.Time) run.Outcome {
	target, err := c.targets.parse(a.URL)
	if err != nil {
		return notSent(err.Error(), false)
	}
	token, err := readBearer(a.BearerFile)
	if err != nil {
		return notSent(err.Error(), true)
	}
	d := delivery{client: c, gate: g, retryUntil: retryUntil}
	resp, err := d.send(ctx, a, target, token)
	if err != nil {
		return failure(ctx, g, err)
	}
	return answer(resp, g, a, target, token, c.signer != nil)
}
