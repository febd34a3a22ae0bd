package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one request as it arrived.
type Call struct {
	At     time.Time   `json:"at"` // when the header had arrived
	Method string      `json:"method"`
	Path   string      `json:"path"` // with the query string
	Header http.Header `json:"header"`
	Body   Body        `json:"body"`
	// Text is the body as sent; Raw is the whole request as sent, recorded only on demand.
	Text string `json:"text"`
	Raw  string `json:"raw,omitempty"`
	// Remote tells connections apart.
	Remote string `json:"remote"`
}

// Body is the callback's JSON body. It is all zero where the request had another one.
type Body struct {
	ID                 string          `json:"id"`
	Occurrence         string          `json:"occurrence"`
	Job                string          `json:"job"`
	Trigger            *string         `json:"trigger"`
	Cause              string          `json:"cause"`
	ScheduledAt        *time.Time      `json:"scheduledAt"`
	CoveredUntil       *time.Time      `json:"coveredUntil"`
	FiredAt            *time.Time      `json:"firedAt"`
	Attempt            int             `json:"attempt"`
	RetryOf            *string         `json:"retryOf"`
	OriginalOccurrence *string         `json:"originalOccurrence"`
	Term               *int64          `json:"term"`
	Version            int             `json:"version"`
	Data               json.RawMessage `json:"data"`
}

// Options say how an app listens. The zero value takes a free port of 127.0.0.1.
type Options struct {
	Address string     // default "127.0.0.1:0"; one that starts with a slash is the path of a Unix socket
	H2C     bool       // speak HTTP/2 without TLS, and nothing else
	OnCall  func(Call) // told each call before it is answered; must not block
	Raw     bool       // record [Call.Raw]
	// KeepIdle is how long a connection may be idle before the app closes it. Default: an hour.
	KeepIdle time.Duration
	// Keep is how many calls are kept in memory, the first ones; OnCall is told all of them.
	// Default: all. A negative number keeps none.
	Keep int
}

// App is a running app. Its methods may be called concurrently.
type App struct {
	opts    Options
	address string

	mu      sync.Mutex
	life    *life // nil while down
	calls   []Call
	changed chan struct{} // closed and replaced at each call
	scripts map[string][]Behavior
	idle    map[net.Conn]bool
	closed  bool
}

// life is the app between two times of being down.
type life struct {
	server *http.Server
	ending chan struct{} // closed at its end: ends every behaviour that waits
	served chan struct{}
	conns  atomic.Int64 // that are open
}

// Start starts an app that answers 200 to everything until it is told otherwise.
func Start(o Options) (*App, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	a := &App{
		opts:    o,
		address: o.Address,
		changed: make(chan struct{}),
		scripts: make(map[string][]Behavior),
		idle:    make(map[net.Conn]bool),
	}
	if err := a.Up(); err != nil {
		return nil, fmt.Errorf("start test app: %w", err)
	}
	return a, nil
}

// Up has the app listen again after [App.Down], at the same address. It does nothing while the app is up, or
// after Close. The address may be taken meanwhile, unless it is one of its own ([FreeAddress]).
func (a *App) Up() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life != nil || a.closed {
		return nil
	}
	var lc net.ListenConfig
	network := "tcp"
	if strings.HasPrefix(a.address, "/") {
		network = "unix"
	}
	l, err := lc.Listen(context.Background(), network, a.address)
	if err != nil {
		return err
	}
	a.address = l.Addr().String()
	n := &life{ending: make(chan struct{}), served: make(chan struct{})}
	n.server = &http.Server{
		Handler: a,
		ConnState: func(c net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				n.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				n.conns.Add(-1)
			case http.StateActive, http.StateIdle:
			}
			a.connState(c, s)
		},
		ConnContext:       withConn,
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       cmp.Or(a.opts.KeepIdle, time.Hour),
	}
	if a.opts.H2C {
		n.server.Protocols = new(http.Protocols)
		n.server.Protocols.SetUnencryptedHTTP2(true)
	}
	a.life = n
	go func() {
		defer close(n.served)
		_ = n.server.Serve(tap{l})
	}()
	return nil
}

// Down ends the app as the death of its process would: connections break, new ones are refused, and
// whoever waits for an answer gets none. It returns how many connections were open. [App.Up] ends it.
func (a *App) Down() (broken int) {
	a.mu.Lock()
	n := a.life
	a.life = nil
	if n != nil {
		broken = int(n.conns.Load())
		close(n.ending)
	}
	a.mu.Unlock()
	if n == nil {
		return 0
	}
	_ = n.server.Close()
	<-n.served
	return broken
}

// Close closes every connection and waits until nothing is served any more.
func (a *App) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.Down()
}

// ending is closed when the app goes down, or is down.
func (a *App) ending() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life != nil {
		return a.life.ending
	}
	down := make(chan struct{})
	close(down)
	return down
}

// Address is the host and port at which the app listens.
func (a *App) Address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.address
}

// URL is the app's base URL, without a trailing slash.
func (a *App) URL() string {
	switch {
	case strings.HasPrefix(a.opts.Address, "/"):
		return "unix://" + a.Address() + ":"
	case a.opts.H2C:
		return "h2c://" + a.Address()
	default:
		return "http://" + a.Address()
	}
}

// Script says how the requests for a path are answered: the first behaviour for the first
// request from now on, and so on; the last one stays. The path "*" stands for every path that
// has no script of its own.
func (a *App) Script(path string, behaviors ...Behavior) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripts[path] = slices.Clone(behaviors)
}

// Calls returns the requests so far, in the order in which they arrived.
func (a *App) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// WaitFor waits until at least n requests have arrived and returns all of them. After the
// timeout it returns those that did, and an error.
func (a *App) WaitFor(n int, timeout time.Duration) ([]Call, error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		a.mu.Lock()
		calls, changed := slices.Clone(a.calls), a.changed
		a.mu.Unlock()
		if len(calls) >= n {
			return calls, nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			return calls, fmt.Errorf("%d calls arrived within %s, want %d", len(calls), timeout, n)
		}
	}
}

// CloseIdle closes the connections on which no request is under way.
func (a *App) CloseIdle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.idle {
		_ = c.Close()
	}
}

// CloseIdleEvery does [App.CloseIdle] at each interval until ctx ends.
func (a *App) CloseIdleEvery(ctx context.Context, interval time.Duration) {
	ending := a.ending()
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			a.CloseIdle()
		case <-ctx.Done():
			return
		case <-ending:
			return
		}
	}
}

// ServeHTTP records the request and does what the script says.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := Call{
		At: time.Now(), Method: r.Method, Path: r.URL.RequestURI(),
		Header: r.Header.Clone(), Remote: r.RemoteAddr,
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	call.Text = string(text)
	if json.Unmarshal(text, &call.Body) != nil {
		call.Body = Body{}
	}
	if c, ok := r.Context().Value(connKey{}).(*tapConn); ok {
		raw := c.take()
		if a.opts.Raw {
			call.Raw = string(raw)
		}
	}
	behave := a.record(call, r.URL.Path)
	if a.opts.OnCall != nil {
		a.opts.OnCall(call)
	}
	behave(a, w, r)
}

func (a *App) record(call Call, path string) Behavior {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opts.Keep == 0 || len(a.calls) < a.opts.Keep {
		a.calls = append(a.calls, call)
	}
	close(a.changed)
	a.changed = make(chan struct{})
	key := path
	if _, ok := a.scripts[key]; !ok {
		key = "*"
	}
	script := a.scripts[key]
	switch len(script) {
	case 0:
		return Status(http.StatusOK)
	case 1:
		return script[0]
	default:
		a.scripts[key] = script[1:]
		return script[0]
	}
}

func (a *App) connState(c net.Conn, s http.ConnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s == http.StateIdle {
		a.idle[c] = true
	} else {
		delete(a.idle, c)
	}
}

// FreeAddress returns a loopback address at which nothing listens: an app that is not there yet.
// Its host is a random one of 127.0.0.0/8, so that no other program takes the port meanwhile.
func FreeAddress() (string, error) {
	host := netip.AddrFrom4([4]byte{127, byte(1 + rand.N(254)), byte(rand.N(256)), byte(1 + rand.N(254))})
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
