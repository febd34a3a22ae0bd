package invoker

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// idleTimeout is how long a connection is kept for the next callback. It is well below the
	// second for which an app is asked to keep it, so that it is this side that closes first.
	idleTimeout = 500 * time.Millisecond
	// maxIdlePerHost lets a burst of callbacks keep its connections, far above the usual slots.
	maxIdlePerHost = 128
	// maxResponseHeader bounds what an app may send before its body.
	maxResponseHeader = 64 << 10
	// caution is how long no connection is used twice after an app hung up on an idle one.
	caution = time.Minute
)

// transports carry the requests: kept connections in a burst, and a new connection for each
// request while an app is known to hang up on idle ones. Such an app may hang up just as a
// request arrives, and nobody could tell then whether it was read.
type transports struct {
	kept, single *http.Transport
	cautious     atomic.Int64 // Unix nanoseconds until which connections are used once
}

func newTransports(rule targets, given *tls.Config) *transports {
	t := &transports{}
	t.kept = &http.Transport{
		// Never a proxy: the environment's is meant for the way out of the cluster.
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := rule.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: nc, hungUp: t.beCautious}, nil
		},
		TLSClientConfig:        tlsConfig(given),
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		// An answer is read as it comes: unpacking it would let 1 KiB become many.
		DisableCompression: true,
		// HTTP/1.1 alone: the gate counts on one request at a time on a connection.
		Protocols: http1(),
	}
	t.single = t.kept.Clone()
	t.single.DisableKeepAlives = true
	return t
}

// RoundTrip implements [http.RoundTripper].
func (t *transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().UnixNano() < t.cautious.Load() {
		return t.single.RoundTrip(r)
	}
	return t.kept.RoundTrip(r)
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] looks for.
func (t *transports) CloseIdleConnections() { t.kept.CloseIdleConnections() }

func (t *transports) beCautious() {
	t.cautious.Store(time.Now().Add(caution).UnixNano())
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

func onlyH2C() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

func tlsConfig(given *tls.Config) *tls.Config {
	if given == nil {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return given.Clone()
}
