package invoker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/leasecron/leasecron/engine/run"
)

const (
	// retryWindow is how long, at most, an attempt goes on trying to reach the app.
	retryWindow = 10 * time.Second
	firstWait   = 50 * time.Millisecond
	maxWait     = time.Second
)

// delivery is the sending of one attempt: tries that end with the first byte written.
type delivery struct {
	client     *Client
	gate       *gate
	retryUntil time.Time

	http  *http.Client // of the target's protocol
	tries int
	wait  time.Duration // before the next try, decided by again
}

// send returns the answer, or why there is none. The gate knows whether anything was written.
func (d *delivery) send(ctx context.Context, a run.Attempt, target address, token string) (*http.Response, error) {
	method, err := checkMethod(a.Method)
	if err != nil {
		return nil, &requestError{err}
	}
	l := letter{runID: a.Run.ID, signer: d.client.signer}
	if l.header, err = header(a, d.client.userAgent, token); err != nil {
		return nil, &requestError{err}
	}
	fired := a.Run.FiredAt
	if fired.IsZero() {
		fired = time.Now()
	}
	if l.body, err = encode(a, fired); err != nil {
		return nil, &requestError{err}
	}
	l.sign(time.Now())
	ctx = d.gate.watch(ctx)
	if d.http = d.client.http; target.h2c {
		d.http, ctx = d.client.h2c, context.WithValue(ctx, gateKey{}, d.gate)
	}
	// The first try, nearly always the only one, goes straight to the transport. It has no GetBody,
	// for the reason that retry gives.
	first := newRequest(ctx, method, target)
	first.Header, first.Body, first.ContentLength = l.header, io.NopCloser(bytes.NewReader(l.body)), int64(len(l.body))
	resp, err := d.http.Transport.RoundTrip(first)
	if err == nil || !d.again(ctx, err) {
		return resp, err
	}
	return d.retry(ctx, newRequest(ctx, method, target), &l)
}

func newRequest(ctx context.Context, method string, target address) *http.Request {
	r := &http.Request{Method: method, URL: target.url, Host: target.host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	return r.WithContext(ctx)
}

// retry goes on after a first try of which the app saw nothing. It shares nothing with that one,
// which the transport may not have let go of yet.
func (d *delivery) retry(ctx context.Context, again *http.Request, l *letter) (*http.Response, error) {
	prepare := func(r *http.Request) error {
		l.refire(time.Now())
		r.Header = l.header
		return d.gate.check()
	}
	pause := time.NewTimer(d.wait)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := prepare(again); err != nil {
		return nil, err
	}
	req, err := retryablehttp.FromRequest(again)
	if err != nil {
		return nil, &requestError{err}
	}
	if err := req.SetBody(retryablehttp.ReaderFunc(func() (io.Reader, error) { return bytes.NewReader(l.body), nil })); err != nil {
		return nil, &requestError{err}
	}
	// With GetBody, net/http would send the request again by itself when a reused connection
	// breaks, since Idempotency-Key marks it as repeatable: a second execution in one attempt.
	req.GetBody = nil

	r := retryablehttp.Client{
		HTTPClient:   d.http,
		Logger:       nil, // it would log URLs
		RetryMax:     math.MaxInt32,
		CheckRetry:   func(ctx context.Context, _ *http.Response, err error) (bool, error) { return d.again(ctx, err), nil },
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return d.wait },
		PrepareRetry: prepare,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := r.Do(req)
	if err != nil && resp != nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

// again decides whether a failed try is followed by another one, and after which wait: only if
// the app surely saw nothing of it, and there is time left.
func (d *delivery) again(ctx context.Context, err error) bool {
	sent, reused, refusal := d.gate.state()
	if err == nil || ctx.Err() != nil || sent || refusal != nil {
		return false
	}
	switch {
	case unreached(err):
		d.wait = min(firstWait<<min(d.tries, 10), maxWait)
		d.tries++
	case reused:
		// The app hung up on an idle connection. What else is idle may be as stale.
		d.wait = 0
		d.client.http.CloseIdleConnections()
	default:
		return false
	}
	return time.Now().Add(d.wait).Before(d.retryUntil)
}

// unreached reports whether no connection to the app came about, for a reason that may pass.
func unreached(err error) bool {
	if errors.Is(err, errForbidden) {
		return false
	}
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// requestError: the attempt cannot be made into a request.
type requestError struct{ err error }

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }
