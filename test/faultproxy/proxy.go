package faultproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/test/pki"
)

// maxBody is more than the API server takes.
const maxBody = 8 << 20

// Proxy forwards to one API server. It is safe for concurrent use.
type Proxy struct {
	target  *rest.Config
	ca      *pki.Authority
	address string
	server  *http.Server
	forward *httputil.ReverseProxy
	gate    *gate

	mu       sync.Mutex
	listener *listener // nil while cut
	cuts     []*Effect
	holes    []*Effect
	faults   []*injected
	requests []*Request
	closed   bool
}

type injected struct {
	Fault
	*Effect
	matches []Match
	left    int // how many requests it still applies to; -1: all
	removed chan struct{}
}

// Start runs a proxy before target until the test ends.
func Start(t testing.TB, target *rest.Config) *Proxy {
	t.Helper()
	p, err := newProxy(target)
	if err != nil {
		t.Fatalf("start a fault proxy: %v", err)
	}
	t.Cleanup(p.close)
	return p
}

func newProxy(target *rest.Config) (*Proxy, error) {
	upstream, err := url.Parse(target.Host)
	if err != nil || upstream.Host == "" {
		return nil, fmt.Errorf("the target's Host must be a URL: %q", target.Host)
	}
	ca, err := pki.New()
	if err != nil {
		return nil, err
	}
	cert, err := servingCertificate(ca)
	if err != nil {
		return nil, err
	}
	// The client's own token travels in its header; only what belongs to a connection is ours.
	connection := rest.AnonymousClientConfig(target)
	connection.CertData, connection.CertFile = target.CertData, target.CertFile
	connection.KeyData, connection.KeyFile = target.KeyData, target.KeyFile
	connection.DisableCompression = true
	transport, err := rest.TransportFor(connection)
	if err != nil {
		return nil, err
	}

	p := &Proxy{target: rest.CopyConfig(target), ca: ca}
	p.gate = newGate(p.stalled)
	silent := stdlog.New(io.Discard, "", 0) // broken connections are what this is for
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:      transport,
		FlushInterval:  -1, // watches
		ModifyResponse: p.answer,
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, _ error) { breakConnection(r) },
		ErrorLog:       silent,
	}
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.serve),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ConnContext:       withConn,
		ReadHeaderTimeout: time.Hour, // a partition may last
		ErrorLog:          silent,
	}
	l, err := listenSomewhere()
	if err != nil {
		return nil, err
	}
	p.address = l.Addr().String()
	p.listen(l)
	return p, nil
}

// URL is the proxy's address, also after a Cut.
func (p *Proxy) URL() string { return "https://" + p.address }

// Config is the target's access, by way of the proxy.
func (p *Proxy) Config() *rest.Config { return p.ConfigFor(p.target) }

// ConfigFor is another access to the same API server, by way of the proxy. It must use a
// token, unless it is the target's own.
func (p *Proxy) ConfigFor(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Host = p.URL()
	out.TLSClientConfig = rest.TLSClientConfig{CAData: p.ca.CertPEM()}
	return out
}

// Inject adds a fault for the requests that all matches agree on, from now on; without a
// match, for all. Of several that fit a request the first injected is taken. The returned
// function removes it; so does Heal.
func (p *Proxy) Inject(f Fault, matches ...Match) (remove func()) {
	return p.Befall(f, matches...).End
}

// Befall is [Proxy.Inject] for those who want to know whether any request was befallen.
func (p *Proxy) Befall(f Fault, matches ...Match) *Effect {
	in := &injected{Fault: f, Effect: &Effect{}, matches: matches, left: -1, removed: make(chan struct{})}
	if f.times > 0 {
		in.left = f.times
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, in)
	in.end = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.faults, in); i >= 0 {
			p.faults = slices.Delete(p.faults, i, i+1)
			close(in.removed)
		}
	})
	return in.Effect
}

// Cut breaks all connections and refuses new ones, as if the API server had died. It hits the
// connections that it breaks; those that are refused nobody can count.
func (p *Proxy) Cut() *Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &Effect{}
	e.end = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.cuts, e); i >= 0 {
			p.cuts = slices.Delete(p.cuts, i, i+1)
		}
		p.mend()
	})
	p.cuts = append(p.cuts, e)
	if p.listener != nil {
		e.hits.Add(int64(p.listener.cut()))
		p.listener = nil
	}
	return e
}

// Blackhole lets nothing through in either direction, while connections stay and new ones
// are taken: a partition. What was sent meanwhile arrives after its end, as TCP would have it. It
// hits whatever has to wait for that.
func (p *Proxy) Blackhole() *Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &Effect{}
	e.end = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.holes, e); i >= 0 {
			p.holes = slices.Delete(p.holes, i, i+1)
		}
		p.mend()
	})
	p.holes = append(p.holes, e)
	p.gate.set(false)
	return e
}

// Heal ends Cut and Blackhole and removes all faults, whoever caused them. It panics if the proxy's
// port has been taken by another process since the Cut.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeFaults()
	p.cuts, p.holes = nil, nil
	p.mend()
}

// mend opens what no Cut and no Blackhole keeps closed any more. It must be called with mu held.
func (p *Proxy) mend() {
	if len(p.holes) == 0 {
		p.gate.set(true)
	}
	if p.listener == nil && len(p.cuts) == 0 && !p.closed {
		l, err := net.Listen("tcp", p.address)
		if err != nil {
			panic(fmt.Sprintf("fault proxy: listen again: %v", err))
		}
		p.listen(l)
	}
}

// stalled counts something that has to wait until a Blackhole ends.
func (p *Proxy) stalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.holes {
		e.hits.Add(1)
	}
}

// Requests are those that matched, in the order of their arrival, also those that a fault
// befell.
func (p *Proxy) Requests(matches ...Match) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.requests {
		if matchesAll(*r, matches) {
			out = append(out, *r)
		}
	}
	return out
}

// Count is the number of Requests.
func (p *Proxy) Count(matches ...Match) int { return len(p.Requests(matches...)) }

// ResetRequests forgets the requests so far.
func (p *Proxy) ResetRequests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// WaitFor returns when n requests that match have arrived since the start or ResetRequests,
// and fails the test if that takes longer than timeout.
func (p *Proxy) WaitFor(t testing.TB, timeout time.Duration, n int, matches ...Match) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		got := p.Count(matches...)
		if got >= n {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("fault proxy saw %d matching requests in %s, want %d", got, timeout, n)
		case <-tick.C:
		}
	}
}

func (p *Proxy) close() {
	p.Cut()
	p.mu.Lock()
	p.closed = true
	p.removeFaults()
	p.gate.set(true)
	p.mu.Unlock()
	_ = p.server.Close()
}

// listen must be called with mu held, or before the proxy is shared.
func (p *Proxy) listen(l net.Listener) {
	p.listener = newListener(l, p.gate)
	go func() { _ = p.server.ServeTLS(p.listener, "", "") }() // ends with Cut
}

// removeFaults must be called with mu held.
func (p *Proxy) removeFaults() {
	for _, in := range p.faults {
		close(in.removed)
	}
	p.faults = nil
}

// take records a request and returns the fault that befalls it, or nil.
func (p *Proxy) take(r *Request) *injected {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	for _, in := range p.faults {
		if in.left == 0 || !matchesAll(*r, in.matches) {
			continue
		}
		if in.left > 0 {
			in.left--
		}
		in.hits.Add(1)
		return in
	}
	return nil
}

type exchangeKey struct{}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	// The whole body first: a request that hangs must notice when its client goes, and one
	// whose answer is dropped must have arrived in full.
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		breakConnection(r)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))

	seen := describe(r)
	e := &exchange{w: w, r: r, seen: &seen, fault: p.take(&seen)}
	if e.fault != nil && e.fault.before != nil && !e.fault.before(e) {
		breakConnection(r)
	}
	if !e.answered {
		p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
	}
}

var errDropped = errors.New("answer dropped")

// answer lets a fault have its way with the answer, before the client sees any of it.
func (p *Proxy) answer(res *http.Response) error {
	e, ok := res.Request.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil
	}
	p.mu.Lock()
	e.seen.Status = res.StatusCode
	p.mu.Unlock()
	switch {
	case e.fault == nil:
	case e.fault.rewrite != nil:
		e.fault.rewrite(res.Header)
	case e.fault.after != nil && !e.fault.after(e):
		return errDropped
	}
	return nil
}

// breakConnection ends the handler and the whole connection: with HTTP/2, too, a network
// does not fail request by request. But a client that has given up on its request is no
// reason to end its others.
func breakConnection(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok && r.Context().Err() == nil {
		c.reset()
	}
	panic(http.ErrAbortHandler)
}

func servingCertificate(ca *pki.Authority) (tls.Certificate, error) {
	cert, key, err := ca.IssueServer("faultproxy")
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// listenSomewhere takes a port below the range from which systems give ports to outgoing
// connections, so that it is still there after a Cut.
func listenSomewhere() (net.Listener, error) {
	const first, count = 20000, 12000
	var last error
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+rand.IntN(count)))
		if err == nil {
			return l, nil
		}
		last = err
	}
	return nil, last
}
