package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasecron/leasecron/internal/logkey"
)

// The limits of a connection. Every answer comes from memory or from one read of the ledger,
// so that whoever needs longer is stuck, or means harm.
const (
	readHeaderTimeout = 3 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 75 * time.Second // longer than Prometheus' usual interval, so that it need not connect anew
	maxHeaderBytes    = 16 << 10
	maxConnections    = 256 // of each listener
	shutdownTimeout   = time.Second
)

// The settings that name the addresses, for messages.
const (
	settingListen    = "LEASECRON_LISTEN"
	settingAPIListen = "LEASECRON_API_LISTEN"
)

// ListenError says which address cannot be served, and which setting it comes from.
type ListenError struct {
	Setting string
	Address string
	Err     error
}

// Error names the setting, the address, what is wrong and what to do.
func (e *ListenError) Error() string {
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		return fmt.Sprintf("%s: %s is in use by another process; stop that or choose another address", e.Setting, e.Address)
	}
	return fmt.Sprintf("%s: cannot listen on %q: %v", e.Setting, e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// ErrNotLoopback reports an API address that others could reach.
var ErrNotLoopback = errors.New("not a loopback address; the API has no access control yet, use 127.0.0.1:PORT, [::1]:PORT or localhost:PORT")

// Server serves the pod network and the API. Make one with [New], call Listen, then Run.
type Server struct {
	opts Options
	log  *slog.Logger

	pod, api *endpoint

	acquires, drains slots // those that wait
}

// endpoint is one address with its routes.
type endpoint struct {
	setting  string
	address  string
	mux      *http.ServeMux
	server   *http.Server
	listener net.Listener
	bound    string // where Listen opened it, the port filled in
}

// New prepares a server. It opens nothing.
func New(opts Options) (*Server, error) {
	if opts.Engine == nil || opts.Leadership == nil {
		return nil, errors.New("api: Engine and Leadership are required")
	}
	for _, c := range slices.Concat(opts.Live, opts.Ready) {
		if c.Name == "" || c.Probe == nil {
			return nil, fmt.Errorf("api: check %q has no name or no probe", c.Name)
		}
	}
	s := &Server{opts: opts, log: opts.Logger, acquires: make(slots, maxAcquires), drains: make(slots, maxDrains)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With(slog.String(logkey.Component, "api"))
	if opts.Address != "" {
		mux := s.podRoutes()
		s.pod = s.endpoint(settingListen, opts.Address, mux, s.wrap(mux))
	}
	if opts.APIAddress != "" {
		if err := checkLoopback(opts.APIAddress); err != nil {
			return nil, &ListenError{Setting: settingAPIListen, Address: opts.APIAddress, Err: err}
		}
		mux := s.apiRoutes()
		s.api = s.endpoint(settingAPIListen, opts.APIAddress, mux, guardLoopback(s.wrap(mux)))
	}
	return s, nil
}

func (s *Server) endpoint(setting, address string, mux *http.ServeMux, handler http.Handler) *endpoint {
	return &endpoint{setting: setting, address: address, mux: mux, server: &http.Server{
		Handler:           trackRequests(handler),
		ConnContext:       withConn,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Only handshakes and broken clients are reported here; panics are caught before.
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
}

// Listen opens the addresses. Nothing is answered before Run, but a port in use is found out
// here, as a [ListenError], while the process can still stop with a clear message. After an
// error nothing is open.
func (s *Server) Listen(ctx context.Context) error {
	var lc net.ListenConfig
	for _, e := range s.endpoints() {
		l, err := lc.Listen(ctx, "tcp", e.address)
		if err == nil && e == s.api && !isLoopback(l.Addr()) {
			// A name that resolved to somewhere else.
			_ = l.Close()
			err = ErrNotLoopback
		}
		if err != nil {
			s.Close()
			return &ListenError{Setting: e.setting, Address: e.address, Err: err}
		}
		e.listener = limitListener(l, maxConnections)
	}
	for _, e := range s.endpoints() {
		e.bound = e.listener.Addr().String()
	}
	return nil
}

// Close closes what Listen opened when Run will not be called. It may be called twice, and after
// Run, where it does nothing.
func (s *Server) Close() {
	for _, e := range s.endpoints() {
		if e.listener != nil {
			_ = e.listener.Close()
		}
	}
}

// Address is where the pod network is served, empty before Listen and where it is not.
func (s *Server) Address() string { return s.pod.listening() }

// APIAddress is where the API is served, empty before Listen and where it is not.
func (s *Server) APIAddress() string { return s.api.listening() }

func (e *endpoint) listening() string {
	if e == nil {
		return ""
	}
	return e.bound
}

// Run answers requests until ctx ends, then lets those that have begun end (1 s at most) and
// returns nil. It returns an error only when an address stopped being served before that.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range s.endpoints() {
		if e.listener == nil {
			return errors.New("api: Run without Listen")
		}
		stopped := make(chan struct{})
		group.Go(func() error {
			defer close(stopped)
			if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", e.address, err)
			}
			return nil
		})
		group.Go(func() error {
			select {
			case <-ctx.Done():
			case <-stopped:
				return nil
			}
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
			defer cancel()
			if err := e.server.Shutdown(grace); err != nil {
				s.log.LogAttrs(grace, slog.LevelInfo, "requests cut off at shutdown",
					slog.String(logkey.Address, e.address), logkey.Err(err))
				_ = e.server.Close()
			}
			return nil
		})
		s.log.LogAttrs(ctx, slog.LevelDebug, "listening", slog.String(logkey.Address, e.listening()))
	}
	return group.Wait()
}

func (s *Server) endpoints() []*endpoint {
	var all []*endpoint
	for _, e := range []*endpoint{s.pod, s.api} {
		if e != nil {
			all = append(all, e)
		}
	}
	return all
}

// checkLoopback refuses an address that is not plainly loopback before anything is opened.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if !loopbackHost(host) {
		return ErrNotLoopback
	}
	return nil
}

// loopbackHost reports whether a host, without a port, names this machine to itself.
func loopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
