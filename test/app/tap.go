package app

import (
	"context"
	"net"
	"sync"
)

// tap is a listener whose connections remember what was read from them.
type tap struct{ net.Listener }

func (t tap) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tapConn{Conn: c}, nil
}

type tapConn struct {
	net.Conn
	mu   sync.Mutex
	read []byte
}

func (c *tapConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	c.read = append(c.read, p[:n]...)
	c.mu.Unlock()
	return n, err
}

// take returns what was read since the last time.
func (c *tapConn) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := c.read
	c.read = nil
	return raw
}

type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
