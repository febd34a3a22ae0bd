package invoker_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

func TestH2C(t *testing.T) {
	target := startApp(t, app.Options{H2C: true})
	target.Script("/fails", app.Reply(503, "busy", "Retry-After", "7"))
	target.Script("/slow", app.After(time.Second, app.Status(200)))
	client := newClient(t, invoker.Options{})
	var wg sync.WaitGroup
	for range 20 { // at once, each on a connection of its own
		wg.Go(func() {
			var q ask
			checkOutcome(t, invoke(client, q.on(attempt(target.URL()+"/jobs?x=1"))), succeeded, "")
			if asked, started := q.counts(); asked != 1 || started != 1 {
				t.Errorf("MayStart asked %d times, Started told %d times, want 1 and 1", asked, started)
			}
		})
	}
	wg.Wait()
	checkOnceEach(t, target.Calls(), 20)
	remotes := map[string]bool{}
	for _, c := range target.Calls() {
		remotes[c.Remote] = true
		if c.Path != "/jobs?x=1" || c.Body.Job != "reports.nightly" {
			t.Errorf("call %+v", c)
		}
	}
	if len(remotes) != 20 {
		t.Errorf("20 requests came over %d connections", len(remotes))
	}
	checkOutcome(t, invoke(client, attempt(target.URL()+"/fails")),
		run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 503, Retryable: true, RetryAfter: 7 * time.Second}, "busy")
	a := attempt(target.URL() + "/slow")
	a.Timeout = 200 * time.Millisecond
	checkOutcome(t, invoke(client, a), timedOut, "no answer within the timeout")
}

func TestH2CAsksBeforeTheRequestIsWritten(t *testing.T) {
	target := startApp(t, app.Options{H2C: true})
	client := newClient(t, invoker.Options{})
	q := ask{answers: []error{errLeaseOver}}
	checkOutcome(t, invoke(client, q.on(attempt(target.URL()+"/"))), refused, "lease is over")
	if n := len(target.Calls()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	if asked, started := q.counts(); asked != 1 || started != 0 {
		t.Errorf("MayStart asked %d times, Started told %d times, want 1 and 0", asked, started)
	}
}

func TestH2CToAnAppThatSpeaksHTTP1(t *testing.T) {
	target := startApp(t, app.Options{})
	a := attempt(strings.Replace(target.URL(), "http://", "h2c://", 1) + "/")
	a.Timeout = time.Second
	if out := invoke(newClient(t, invoker.Options{}), a); out.State != run.StateFailed || out.Message == "" {
		t.Errorf("outcome %+v, want a failure", out)
	}
	for _, c := range target.Calls() { // a server for HTTP/1 may read the preface as a request
		if c.Method != "PRI" {
			t.Errorf("%s %s arrived", c.Method, c.Path)
		}
	}
}

// Whether the answer in HTTP/1 comes before the request or after it, the failure names the mistake. (A
// server that closes at once may end the connection before its answer is read; see above.)
func TestH2CNamesAnAnswerInHTTP1(t *testing.T) {
	for name, after := range map[string]int{"before the request": 24, "after it": 200} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.ReadFull(c, make([]byte, after))
					_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
					_, _ = io.Copy(io.Discard, c)
					_ = c.Close()
				}
			}()
			a := attempt("h2c://" + l.Addr().String() + "/")
			a.Timeout = time.Second
			out := invoke(newClient(t, invoker.Options{}), a)
			if out.State != run.StateFailed || !strings.Contains(out.Message, "is h2c in the job's target right?") {
				t.Errorf("outcome %+v, want a failure that speaks of h2c", out)
			}
		})
	}
}

// h2server counts the requests that begin on a raw socket, and answers each as it is told to.
type h2server struct {
	listener net.Listener
	answer   func(c net.Conn, stream uint32) // after a request's header; then the connection is closed
	greet    func(c net.Conn)                // after the preface

	mu       sync.Mutex
	conns    int
	requests int
}

func startH2(t *testing.T, s *h2server) (url string) {
	t.Helper()
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.listener.Close() })
	go func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return "h2c://" + s.listener.Addr().String() + "/"
}

func (s *h2server) serve(c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	s.conns++
	s.mu.Unlock()
	if _, err := io.ReadFull(c, make([]byte, 24)); err != nil {
		return
	}
	writeFrame(c, 0x4, 0, 0, nil) // SETTINGS
	if s.greet != nil {
		s.greet(c)
	}
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c, size); err != nil {
			return
		}
		if head[3] == 0x1 { // HEADERS
			s.mu.Lock()
			s.requests++
			s.mu.Unlock()
			s.answer(c, binary.BigEndian.Uint32(head[5:]))
		}
	}
}

func writeFrame(c net.Conn, kind, flags byte, stream uint32, payload []byte) {
	f := []byte{0, 0, byte(len(payload)), kind, flags}
	f = binary.BigEndian.AppendUint32(f, stream)
	_, _ = c.Write(append(f, payload...))
}

// net/http repeats requests of itself that HTTP/2 says were not looked at. An attempt is one request
// all the same: each line is what a server may say after it.
func TestH2COneRequestWhateverTheServerSays(t *testing.T) {
	code := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	goAway := func(last, n uint32) []byte { return append(code(last), code(n)...) }
	tests := map[string]func(c net.Conn, stream uint32){
		"REFUSED_STREAM":           func(c net.Conn, s uint32) { writeFrame(c, 0x3, 0, s, code(0x7)) },
		"PROTOCOL_ERROR":           func(c net.Conn, s uint32) { writeFrame(c, 0x3, 0, s, code(0x1)) },
		"HTTP_1_1_REQUIRED":        func(c net.Conn, s uint32) { writeFrame(c, 0x3, 0, s, code(0xd)) },
		"GOAWAY before the stream": func(c net.Conn, _ uint32) { writeFrame(c, 0x7, 0, 0, goAway(0, 0)) },
		"GOAWAY with an error":     func(c net.Conn, _ uint32) { writeFrame(c, 0x7, 0, 0, goAway(0, 0xb)) },
		"GOAWAY, then the end":     func(c net.Conn, _ uint32) { writeFrame(c, 0x7, 0, 0, goAway(0, 0)); _ = c.Close() },
		"the end":                  func(c net.Conn, _ uint32) { _ = c.Close() },
		"nonsense":                 func(c net.Conn, _ uint32) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &h2server{answer: answer}
			a := attempt(startH2(t, s))
			a.Timeout = 2500 * time.Millisecond
			var q ask
			checkOutcome(t, invoke(newClient(t, invoker.Options{}), q.on(a)), lost, "connection lost")
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.requests != 1 || s.conns != 1 {
				t.Errorf("%d requests over %d connections, want 1 and 1", s.requests, s.conns)
			}
			if asked, started := q.counts(); asked != 1 || started != 1 {
				t.Errorf("MayStart asked %d times, Started told %d times, want 1 and 1", asked, started)
			}
		})
	}
}

// A server that sends everyone away before a request costs new connections at the pace of an app that
// is not there, and no request.
func TestH2CGoAwayBeforeTheRequest(t *testing.T) {
	t.Parallel()
	s := &h2server{answer: func(net.Conn, uint32) {}, greet: func(c net.Conn) {
		writeFrame(c, 0x7, 0, 0, make([]byte, 8))
		_ = c.Close()
	}}
	a := attempt(startH2(t, s))
	a.Timeout = time.Second
	out := invoke(newClient(t, invoker.Options{}), a)
	if out.State != run.StateFailed {
		t.Errorf("outcome %+v", out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests > 1 || s.conns > 12 {
		t.Errorf("%d requests over %d connections", s.requests, s.conns)
	}
	if out.NotSent && s.requests > 0 {
		t.Errorf("%d requests arrived, recorded as never sent", s.requests)
	}
}
