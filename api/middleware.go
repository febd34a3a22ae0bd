package api

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/logkey"
)

// headerRequestID names the request in every answer.
const headerRequestID = "X-Request-Id"

// requestIDPattern is what is taken over from a client: nothing that could forge a log line.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type requestIDKey struct{}

// requestID is the ID of the request that ctx belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// wrap is around every route: it names the request, answers what no route does, refuses what is
// too much at once, survives a handler's panic and logs.
func (s *Server) wrap(mux *http.ServeMux) http.Handler {
	admission := newAdmission()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		id := r.Header.Get(headerRequestID)
		if !requestIDPattern.MatchString(id) {
			id = run.NewID()
		}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		h := w.Header()
		h.Set(headerRequestID, id)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")

		rec := &statusRecorder{ResponseWriter: w}
		defer func() { s.finish(rec, r, begin, recover()) }()
		handler, pattern := mux.Handler(r)
		if pattern == "" {
			noRoute(rec, r, handler, s.elsewhere(mux, r))
			return
		}
		admission.serve(mux, pattern, rec, r)
	})
}

// finish logs a request, and answers it where its handler panicked.
func (s *Server) finish(w *statusRecorder, r *http.Request, begin time.Time, panicked any) {
	attrs := []slog.Attr{
		slog.String(logkey.RequestID, requestID(r.Context())), slog.String(logkey.Method, r.Method),
		slog.String(logkey.Path, r.URL.Path),
	}
	switch {
	case panicked == nil:
	case w.failed || r.Context().Err() != nil:
		// The client has gone; the framework panics when it cannot write.
	default:
		s.log.LogAttrs(r.Context(), slog.LevelError, "request handler panicked", append(attrs,
			slog.String(logkey.Error, fmt.Sprint(panicked)), slog.String("stack", string(debug.Stack())))...)
		if w.status == 0 {
			writeProblem(w, r, problem.Status(http.StatusInternalServerError,
				"an unexpected error occurred; the log has it under the request ID"))
		}
	}
	s.log.LogAttrs(r.Context(), slog.LevelDebug, "request answered", append(attrs,
		slog.Int(logkey.Status, w.status), slog.Duration(logkey.Duration, time.Since(begin)))...)
}

// writeProblem answers with a problem that names the request.
func writeProblem(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	named := *p
	named.RequestID = requestID(r.Context())
	named.Write(w)
}

// noRoute answers a request that the mux has no route for, in the shape of all other errors:
// the mux knows whether it was the path or the method.
func noRoute(w http.ResponseWriter, r *http.Request, muxAnswer http.Handler, elsewhere string) {
	probe := &headerRecorder{header: http.Header{}}
	muxAnswer.ServeHTTP(probe, r)
	p := problem.Status(http.StatusNotFound, "there is nothing at this path"+elsewhere)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		w.Header().Set("Allow", allow)
		p = problem.Status(http.StatusMethodNotAllowed, "this path answers "+allow+" only")
	}
	writeProblem(w, r, p)
}

// elsewhere says where a request that mux has no route for is answered, empty if it is nowhere. It names the
// port and its setting: the address is no business of whoever asks at the wrong one.
func (s *Server) elsewhere(mux *http.ServeMux, r *http.Request) string {
	other, where := s.api, "to programs in the same pod"
	if s.api != nil && mux == s.api.mux {
		other, where = s.pod, "to the pod network"
	}
	if other == nil {
		return ""
	}
	if _, pattern := other.mux.Handler(r); pattern == "" {
		return ""
	}
	_, port, _ := net.SplitHostPort(other.listening())
	return fmt.Sprintf(" on this port: port %s (%s) answers it, %s", port, other.setting, where)
}

// strictQuery refuses query parameters that are not known, or that come twice: a misspelled
// filter must not look like an answer.
func strictQuery(next http.HandlerFunc, known ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := checkQuery(r.URL.RawQuery, known); p != nil {
			writeProblem(w, r, p)
			return
		}
		next(w, r)
	}
}

// checkQuery returns what is wrong with a query, nil if nothing is.
func checkQuery(raw string, known []string) *problem.Problem {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return problem.New(run.CodeInvalidQuery, "the query cannot be read; parameters are separated by & and escaped")
	}
	var items []problem.Item
	for name, v := range values {
		if len(name) > 64 {
			name = name[:64] + "…"
		}
		switch {
		case !slices.Contains(known, name):
			items = append(items, problem.Item{Location: "query." + name, Message: "unknown query parameter; " + allowed(known)})
		case len(v) > 1:
			items = append(items, problem.Item{Location: "query." + name, Message: "given more than once"})
		}
	}
	if len(items) == 0 {
		return nil
	}
	slices.SortFunc(items, compareItems)
	p := problem.New(run.CodeInvalidQuery, items[0].Location+": "+items[0].Message)
	p.Errors = items
	return p
}

// allowed says which query parameters may be given.
func allowed(known []string) string {
	if len(known) == 0 {
		return "this path has none"
	}
	return "allowed: " + strings.Join(known, ", ")
}

// guardLoopback lets pass what a program on this machine sends, and refuses what a browser on
// it may have been lured into: DNS rebinding shows in the Host, a forged write in its origin.
func guardLoopback(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, "writes from another origin are refused")
	}))
	protected := crossOrigin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		} else if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
			host = host[1 : len(host)-1]
		}
		if !loopbackHost(host) {
			refuse(w, "the Host must be localhost or a loopback address")
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// refuse answers before the request has a name.
func refuse(w http.ResponseWriter, detail string) {
	id := run.NewID()
	w.Header().Set(headerRequestID, id)
	p := problem.Status(http.StatusForbidden, detail)
	p.RequestID = id
	p.Write(w)
}

// statusRecorder remembers the status of an answer, and whether the client took it.
type statusRecorder struct {
	http.ResponseWriter
	status int
	failed bool
}

func (w *statusRecorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusRecorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.failed = w.failed || err != nil
	return n, err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// headerRecorder keeps status and header of an answer that is not sent.
type headerRecorder struct {
	header http.Header
	status int
}

func (w *headerRecorder) Header() http.Header         { return w.header }
func (w *headerRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerRecorder) WriteHeader(status int)      { w.status = status }
