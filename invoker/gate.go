package invoker

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// errStale: the idle connection that was picked had been closed by the app.
	errStale = errors.New("the app had closed the idle connection")
	// errOver: the attempt ended before its request was begun.
	errOver = errors.New("the attempt is over")
	// errSentBefore: something tried to send the request of one attempt a second time.
	errSentBefore = errors.New("the request was sent before")
)

// gate stands between the transport and the wire for the one request of one attempt. It opens
// once: after that, no other connection may carry the request.
type gate struct {
	mayStart func() error
	started  func(time.Time)
	done     <-chan struct{} // closed when the attempt's time is up or it is canceled

	mu        sync.Mutex
	over      bool // the attempt has ended: nothing is begun any more
	sent      bool // bytes were, or are just being, handed to the kernel
	refusal   error
	startedAt time.Time
	carrier   *request // on the latest connection
}

// check asks MayStart and keeps its refusal. The caller holds no lock.
func (g *gate) check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.checkLocked()
}

func (g *gate) checkLocked() error {
	if g.mayStart == nil {
		return nil
	}
	if err := g.mayStart(); err != nil {
		g.refusal = err
		return err
	}
	return nil
}

// open is called when the first byte of the request is about to be written. The lock is held
// over MayStart and Started, so that an attempt cannot end between the answer and its record.
func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return errOver
	case g.sent:
		return errSentBefore
	}
	if err := g.checkLocked(); err != nil {
		return err
	}
	select {
	case <-g.done: // before, or while MayStart was thinking
		return errOver
	default:
	}
	if g.startedAt.IsZero() {
		g.startedAt = time.Now()
		if g.started != nil {
			g.started(g.startedAt)
		}
	}
	// Set before the write: an attempt that ends while the kernel takes the bytes must count
	// as sent. undo takes it back where the kernel took none.
	g.sent = true
	return nil
}

// undo says that the write for which the gate was opened moved no byte.
func (g *gate) undo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent = false
}

// close ends the attempt: nothing is begun after it, and what state says is final. It returns the
// time at which the request was begun.
func (g *gate) close() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	return g.startedAt
}

func (g *gate) state() (sent, reused bool, refusal error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent, g.carrier != nil && g.carrier.reused, g.refusal
}

// answered says that the answer was read to its end: the connection is idle from now on.
func (g *gate) answered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.carrier != nil {
		g.carrier.answered.Store(true)
	}
}

// watch arms the gate on whichever connection the transport picks.
func (g *gate) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { g.carry(nil) },
		GotConn: func(info httptrace.GotConnInfo) {
			r := &request{gate: g, reused: info.Reused}
			nc := info.Conn
			if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
				nc, r.overTLS = t.NetConn(), true
			}
			g.carry(r)
			if c, ok := nc.(*conn); ok {
				c.request.Store(r)
			}
		},
	})
}

func (g *gate) carry(r *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.carrier = r
}

// conn is a connection that asks the gate before the first byte of each request.
type conn struct {
	net.Conn
	hungUp  func()                  // told when the peer closes the connection while it is idle
	request atomic.Pointer[request] // nil: no request yet (a TLS handshake)
}

// request is the request that a connection carries now.
type request struct {
	gate     *gate
	reused   bool // the connection had carried another one before
	overTLS  bool
	begun    atomic.Bool
	answered atomic.Bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		if r := c.request.Load(); r != nil && r.answered.Load() {
			c.hungUp()
		}
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	r := c.request.Load()
	if r == nil || r.begun.Swap(true) {
		return c.Conn.Write(p)
	}
	if c.stale(r) {
		return 0, errStale
	}
	if err := r.gate.open(); err != nil {
		return 0, err
	}
	if c.stale(r) { // once more: the answer of MayStart may have taken a while
		r.gate.undo()
		return 0, errStale
	}
	n, err := c.Conn.Write(p)
	if n == 0 && err != nil {
		r.gate.undo()
	}
	return n, err
}

// stale looks at the socket, which closes the gap in which the app has hung up and the transport's
// reader has not noticed yet. What is written into a hang-up cannot be told from what the app has read:
// a reset after a FIN that acknowledges none of it comes from a socket that nobody reads, but also from
// an app that had closed one direction, read on, and reset before its kernel acknowledged.
func (c *conn) stale(r *request) bool {
	if !r.reused || !stale(c.Conn, r.overTLS) {
		return false
	}
	c.hungUp()
	return true
}
