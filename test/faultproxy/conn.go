package faultproxy

import (
	"context"
	"net"
	"sync"
)

// gate is open, or holds everyone who wants to pass.
type gate struct {
	stalled func() // told whenever someone has to wait

	mu   sync.Mutex
	open chan struct{} // closed: open
}

func newGate(stalled func()) *gate {
	g := &gate{stalled: stalled, open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(g.open)
		}
	}
}

func (g *gate) opened() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// conn is a client's connection: it can be broken, and it stalls while the gate is closed.
type conn struct {
	net.Conn
	gate   *gate
	forget func()
	closed chan struct{}
	once   sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	// After the read, not before: what arrives during a partition must not come through a
	// read that was already waiting.
	if !c.pass(n > 0) {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if !c.pass(true) {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// pass waits until the gate is open; false when the connection closes before. traffic says that
// something waits, not only the end of the connection.
func (c *conn) pass(traffic bool) bool {
	opened := c.gate.opened()
	select {
	case <-opened:
		return true
	default:
		if traffic {
			c.gate.stalled()
		}
	}
	select {
	case <-opened:
		return true
	case <-c.closed:
		return false
	}
}

func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		c.forget()
		err = c.Conn.Close()
	})
	return err
}

// reset closes the connection so that the client sees it as broken, not as ended.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the client still gets a plain end, which is a fault too
	}
	_ = c.Close()
}

// listener tracks the connections it accepts.
type listener struct {
	net.Listener
	gate *gate

	mu    sync.Mutex
	dead  bool // cut: what is accepted from now on came too late
	conns map[*conn]struct{}
}

func newListener(l net.Listener, g *gate) *listener {
	return &listener{Listener: l, gate: g, conns: map[*conn]struct{}{}}
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, gate: l.gate, closed: make(chan struct{})}
	c.forget = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, c)
	}
	l.mu.Lock()
	dead := l.dead
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	if dead {
		c.reset()
		return nil, net.ErrClosed
	}
	return c, nil
}

// cut stops listening, breaks all connections, and returns how many these were.
func (l *listener) cut() int {
	_ = l.Listener.Close()
	l.mu.Lock()
	l.dead = true
	conns := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
	return len(conns)
}

type connKey struct{}

// withConn lets a handler find the connection that its request came by.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if tls, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = tls.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}
