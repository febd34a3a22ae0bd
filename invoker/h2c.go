package invoker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// h2cTransport sends each request over HTTP/2 without TLS, on a connection of its own. Nothing is
// multiplexed and nothing used twice: a connection that carries one request is one that its gate can
// watch, and one that net/http cannot move a request to or from when a stream is refused or the app
// says GOAWAY.
type h2cTransport struct{ rule targets }

// errSecondConn: the transport asked for another connection for a request.
var errSecondConn = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the app closed the connection before the request")}

// RoundTrip implements [http.RoundTripper].
func (t *h2cTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	g, _ := r.Context().Value(gateKey{}).(*gate)
	if g == nil {
		return nil, errors.New("a request without a gate")
	}
	var once sync.Once
	var mu sync.Mutex
	var carrier *h2conn // of the one dial
	inner := &http.Transport{
		Proxy: nil,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			first := false
			once.Do(func() { first = true })
			if !first {
				return nil, errSecondConn
			}
			nc, err := t.rule.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			carrier = &h2conn{Conn: nc, gate: g, skip: len(http2Preface)}
			return carrier, nil
		},
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		Protocols:              onlyH2C(),
	}
	hangUp := func() {
		inner.CloseIdleConnections()
		mu.Lock()
		defer mu.Unlock()
		if carrier != nil {
			_ = carrier.Close()
		}
	}
	resp, err := inner.RoundTrip(r)
	if err != nil {
		hangUp()
		mu.Lock()
		defer mu.Unlock()
		if carrier != nil && carrier.answersInHTTP1() {
			err = &http1Error{err}
		}
		return nil, err
	}
	resp.Body = &lastBody{resp.Body, hangUp}
	return resp, nil
}

// lastBody is the last thing that is read from a connection.
type lastBody struct {
	io.ReadCloser
	hangUp func()
}

// Close implements [io.Closer].
func (b *lastBody) Close() error {
	err := b.ReadCloser.Close()
	b.hangUp()
	return err
}

// gateKey is the key of the context value that holds the gate of a request.
type gateKey struct{}

const (
	// http2Preface is what a client says first on a connection (RFC 9113, section 3.4).
	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeader  = 9 // bytes: length (3), type (1), flags, stream
	frameType    = 3
	frameHEADERS = 0x1
)

// h2conn is a connection that asks the gate before a frame that begins a request is written. What comes
// before, the preface and settings, is no part of any request.
type h2conn struct {
	net.Conn
	gate *gate

	// The place in the stream of frames. Writes come one after the other.
	skip int               // bytes until the next frame
	head [frameHeader]byte // of a frame header that a write has cut in two
	have int

	mu    sync.Mutex
	heard []byte // what the app said first
}

// http1Error is a failure of HTTP/2 where the app has answered in HTTP/1, whatever the transport made of that.
type http1Error struct{ error }

// Unwrap returns what the transport said.
func (e *http1Error) Unwrap() error { return e.error }

// http1Answer begins a status line of HTTP/1, and no frame: it would be one of more bytes than are allowed.
const http1Answer = "HTTP/1."

// Read implements [net.Conn].
func (c *h2conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, p[:min(n, len(http1Answer)-len(c.heard))]...)
	return n, err
}

func (c *h2conn) answersInHTTP1() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.heard) == http1Answer
}

// Write implements [net.Conn].
func (c *h2conn) Write(p []byte) (int, error) {
	if !c.beginsRequest(p) {
		return c.Conn.Write(p)
	}
	if err := c.gate.open(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		c.gate.undo()
	}
	return n, err
}

// beginsRequest follows the frames and reports whether a HEADERS frame begins within p.
func (c *h2conn) beginsRequest(p []byte) (begins bool) {
	for len(p) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(p))
			c.skip -= n
			p = p[n:]
			continue
		}
		n := copy(c.head[c.have:], p)
		c.have += n
		p = p[n:]
		if c.have < frameHeader {
			continue
		}
		c.have = 0
		c.skip = int(c.head[0])<<16 | int(c.head[1])<<8 | int(c.head[2])
		begins = begins || c.head[frameType] == frameHEADERS
	}
	return begins
}
