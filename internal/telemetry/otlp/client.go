package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	firstWait = 500 * time.Millisecond
	maxWait   = 5 * time.Second
	// maxAnswer bounds what is read of a collector's answer.
	maxAnswer = 64 << 10
)

var errStopped = errors.New("no answer before the process ended")

// Client sends batches of spans, one request each. It tries again, within the timeout of a batch,
// what the collector may take later. Its methods may be called concurrently.
type Client struct {
	config
	userAgent string
	http      *http.Client
	stopped   context.Context
	stop      context.CancelCauseFunc
}

var _ otlptrace.Client = (*Client)(nil)

// New returns a client that has not connected anywhere yet. Its errors name the variable to correct.
func New(getenv func(string) string, userAgent string) (*Client, error) {
	c, err := parse(getenv)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        c.tls,
		TLSHandshakeTimeout:    defaultTimeout,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxAnswer,
		DisableCompression:     true,
		Protocols:              new(http.Protocols),
	}
	switch {
	case c.grpc && c.url.Scheme == "http":
		t.Protocols.SetUnencryptedHTTP2(true)
	case c.grpc:
		t.Protocols.SetHTTP2(true)
	default:
		t.Protocols.SetHTTP1(true)
	}
	client := &Client{config: c, userAgent: userAgent, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	client.stopped, client.stop = context.WithCancelCause(context.Background())
	return client, nil
}

// Endpoint is where spans go, without what may be a secret.
func (c *Client) Endpoint() string { return c.url.Scheme + "://" + c.url.Host }

// Start does nothing: a collector that is not there yet is no reason to wait.
func (c *Client) Start(context.Context) error { return nil }

// Stop ends the batches under way.
func (c *Client) Stop(context.Context) error {
	c.stop(errStopped)
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends one batch. It returns at the latest after the configured timeout (10 s).
func (c *Client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The request of the collector's service is, on the wire, the same as this message, whose
	// package does not come with the service's grpc stubs.
	message, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		if message, err = compress(message); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	defer context.AfterFunc(c.stopped, func() { give(context.Cause(c.stopped)) })()

	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := c.try(ctx, message)
		later, ok := errors.AsType[*laterError](err)
		if !ok {
			return err
		}
		timer := time.NewTimer(max(wait, later.after))
		deadline, _ := ctx.Deadline()
		if time.Until(deadline) <= max(wait, later.after) {
			timer.Stop()
			return err
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (c *Client) try(ctx context.Context, message []byte) error {
	body := message
	if c.grpc {
		body = frame(message, c.gzip)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the collector's URL is not valid")
	}
	maps.Copy(req.Header, c.headers)
	req.Header.Set("User-Agent", c.userAgent)
	encoding := "Content-Encoding"
	if c.grpc {
		encoding = "Grpc-Encoding"
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("Te", "trailers")
	} else {
		req.Header.Set("Content-Type", "application/x-protobuf")
	}
	if c.gzip {
		req.Header.Set(encoding, "gzip")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok { // its text repeats the URL
			err = u.Err
		}
		return &laterError{err: fmt.Errorf("collector %s: %w", c.Endpoint(), cmp.Or(context.Cause(ctx), err))}
	}
	defer resp.Body.Close()
	if c.grpc {
		err = answerGRPC(resp)
	} else {
		err = answerHTTP(resp)
	}
	if err != nil {
		return fmt.Errorf("collector %s: %w", c.Endpoint(), err)
	}
	return nil
}

func compress(message []byte) ([]byte, error) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(message); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// laterError is a failure that may pass: the same batch may be sent again.
type laterError struct {
	err   error
	after time.Duration // no sooner than that; 0: not said
}

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }
