package api

import (
	"container/list"
	"context"
	"net"
	"runtime"
	"sync"
	"time"
)

// patience is how long a connection may keep the sidecar waiting before it is closed for one that
// wants in: time enough for a client on the same network to send what it has begun. With
// [maxConnections] it gives how fast a flood of silent connections is worked off: 3400 a second.
const patience = 75 * time.Millisecond

// boundedListener has room for a number of connections. Where they are all taken and another comes,
// the one that has waited for its client longest makes room. So silence, of however many clients,
// keeps nobody out. A connection waits for its client while
//
//   - it has not sent a whole request head, be it new or kept alive,
//   - it has announced more of a body than it has sent,
//   - it does not take the answer.
//
// Between, its request is under way, and it is not closed for another's sake. How many of those there
// are is bounded where requests are admitted ([admission]).
type boundedListener struct {
	net.Listener
	most    int
	changed chan struct{} // holds a token when there may be room now
	once    sync.Once
	stopped chan struct{}

	mu      sync.Mutex
	open    int
	waiting list.List // of *boundedConn, the one that has waited longest first
}

func limitListener(l net.Listener, most int) *boundedListener {
	return &boundedListener{Listener: l, most: most, changed: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// Accept implements [net.Listener], for one caller at a time.
func (l *boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for {
		again, ok := l.makeRoom()
		if ok {
			break
		}
		var timer <-chan time.Time // none while every request is under way
		if again > 0 {
			timer = time.After(again)
		}
		select {
		case <-l.changed:
		case <-timer:
		case <-l.stopped:
			_ = conn.Close()
			return nil, net.ErrClosed
		}
	}
	c := &boundedConn{Conn: conn, listener: l}
	c.waits()
	return c, nil
}

// makeRoom takes a place for one more connection. Where it cannot, it says after what time it could,
// zero if that is not known.
func (l *boundedListener) makeRoom() (again time.Duration, ok bool) {
	l.mu.Lock()
	if l.open < l.most {
		l.open++
		l.mu.Unlock()
		return 0, true
	}
	oldest := l.waiting.Front()
	if oldest == nil {
		l.mu.Unlock()
		return 0, false
	}
	c, _ := oldest.Value.(*boundedConn)
	if left := patience - time.Since(c.since); left > 0 {
		l.mu.Unlock()
		return left, false
	}
	c.leaveList()
	c.closed = true // its place is the new one's
	l.mu.Unlock()
	_ = c.Conn.Close()
	runtime.Gosched() // those that were accepted come to read what they were sent, before they seem silent
	return 0, true
}

// Close implements [net.Listener].
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.stopped) })
	return l.Listener.Close()
}

func (l *boundedListener) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// boundedConn is a connection of a [boundedListener].
type boundedConn struct {
	net.Conn
	listener *boundedListener

	// Guarded by listener.mu.
	place  *list.Element // in listener.waiting; nil while a request is under way
	since  time.Time     // when it began to wait
	closed bool
}

// waits notes that the next thing to happen is the client's, and reports whether that is news.
func (c *boundedConn) waits() bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.closed || c.place != nil {
		return false
	}
	c.since = time.Now()
	c.place = c.listener.waiting.PushBack(c)
	c.listener.signal()
	return true
}

// begins notes that a request is under way, and reports whether the connection is still open.
func (c *boundedConn) begins() bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.leaveList()
	return !c.closed
}

func (c *boundedConn) leaveList() {
	if c.place != nil {
		c.listener.waiting.Remove(c.place)
		c.place = nil
	}
}

// Write waits for the client to take what is written.
func (c *boundedConn) Write(b []byte) (int, error) {
	if c.waits() {
		defer c.begins()
	}
	return c.Conn.Write(b)
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	if !c.closed {
		c.closed = true
		c.leaveList()
		c.listener.open--
		c.listener.signal()
	}
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

type connKey struct{}

// withConn is a [net/http.Server.ConnContext] through which handlers find their connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection that a request came on, nil for one that came on none of ours.
func connOf(ctx context.Context) *boundedConn {
	c, _ := ctx.Value(connKey{}).(*boundedConn)
	return c
}
