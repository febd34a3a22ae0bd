package api

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// The bodies that are read at the same time share the memory beyond a part that each may have in any
// case, in which all that an app says of its runs and leases has room.
const (
	ownBodyBytes    = 16 << 10
	sharedBodyBytes = 4 << 20
)

// trackRequests tells the connections when a request is under way, and when what is missing is the
// client's.
func trackRequests(next http.Handler) http.Handler {
	bodies := new(atomic.Int64)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r.Context())
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		if !c.begins() { // closed to make room: what nobody can be answered is not done either
			panic(http.ErrAbortHandler)
		}
		defer c.waits() // for the answer to be taken, then for the next request
		if r.ContentLength == 0 {
			r = r.WithContext(r.Context())
			r.Body = noBody{http.NewResponseController(w)}
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			// Nobody reads that body. Without this, a large answer would wait for it.
			w.Header().Set("Connection", "close")
		}
		body := &trackedBody{ReadCloser: r.Body, conn: c, control: http.NewResponseController(w), shared: bodies}
		defer body.giveBack()
		r = r.WithContext(r.Context()) // a copy: the server goes by the body that it made
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// noBody is the body of a request that has none. Reading it is under the same limit, which has to end too.
type noBody struct{ control *http.ResponseController }

// Read implements [io.Reader].
func (b noBody) Read([]byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Time{})
	return 0, io.EOF
}

// Close implements [io.Closer].
func (noBody) Close() error { return nil }

// trackedBody is a request's body. It serves one goroutine.
type trackedBody struct {
	io.ReadCloser
	conn    *boundedConn
	control *http.ResponseController
	shared  *atomic.Int64 // bytes beyond those of each body's own
	admit   func() bool   // asked when all has come; nil: nobody need be
	read    int64
	taken   int64 // of shared
}

// Read implements [io.Reader].
func (b *trackedBody) Read(p []byte) (int, error) {
	b.conn.waits()
	n, err := b.ReadCloser.Read(p)
	if !b.conn.begins() {
		return 0, net.ErrClosed
	}
	b.read += int64(n)
	if more := b.read - ownBodyBytes - b.taken; more > 0 {
		b.taken += more
		if b.shared.Add(more) > sharedBodyBytes {
			return 0, errBusy
		}
	}
	if errors.Is(err, io.EOF) {
		if b.admit != nil && !b.admit() {
			return 0, errBusy
		}
		// The limit of reading has done its work. It would end the request's context, although all was read.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Close implements [io.Closer]. It may read what is left.
func (b *trackedBody) Close() error {
	b.conn.waits()
	defer b.conn.begins()
	return b.ReadCloser.Close()
}

func (b *trackedBody) giveBack() { b.shared.Add(-b.taken) }

// How long a client of [promptly] may take nothing, and how long all of an answer may take it.
const (
	stallTimeout  = time.Second
	promptTimeout = 10 * time.Second
)

// promptly is for a large answer of which few are given at once: a client that does not take it must
// not keep others from it.
func promptly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&promptWriter{
			ResponseWriter: w, control: http.NewResponseController(w), until: time.Now().Add(promptTimeout),
		}, r)
	})
}

type promptWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	until   time.Time
}

func (w *promptWriter) Write(b []byte) (int, error) {
	deadline := time.Now().Add(stallTimeout)
	if deadline.After(w.until) {
		deadline = w.until
	}
	_ = w.control.SetWriteDeadline(deadline)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *promptWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
