package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/api"
)

// serveBounded serves h on a listener with room for so many connections.
func serveBounded(t *testing.T, most int, h http.HandlerFunc) (address string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, bounded := api.Bounded(l, most, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(bounded) }()
	t.Cleanup(func() { server.Close(); <-done })
	return l.Addr().String()
}

// send opens a connection and sends that.
func send(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// status reads one answer, 0 when the connection has ended.
func status(t *testing.T, conn net.Conn) int {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // of the connection itself
		t.Fatal("no answer within 10s")
	}
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

const plain = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

func TestWhoKeepsTheSidecarWaitingMakesRoom(t *testing.T) {
	large := strings.Repeat("x", 64<<20) // more than any socket takes
	tests := map[string]string{
		"a connection that was opened":    "",
		"half a request head":             "GET / HT",
		"kept alive after a request":      plain,
		"half a second head":              plain + "GET / HT",
		"a body that does not come":       "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
		"the same, and nobody reads it":   "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
		"a chunk that does not come":      "POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"a body of GET that does not":     "GET /large HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n",
		"an answer that is not taken":     "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"many answers that are not taken": strings.Repeat(plain, 1000),
	}
	for name, sent := range tests {
		t.Run(name, func(t *testing.T) {
			address := serveBounded(t, 1, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/read":
					_, _ = io.Copy(io.Discard, r.Body)
				case "/large":
					_, _ = io.WriteString(w, large)
				}
			})
			send(t, address, sent)
			if got := status(t, send(t, address, plain)); got != 200 {
				t.Errorf("the next connection was answered with %d, want 200", got)
			}
		})
	}
}

func TestARequestUnderWayIsNotClosedForAnother(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	address := serveBounded(t, 1, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		close(entered)
		<-leave
		if r.Context().Err() != nil {
			t.Error("the request under way was cancelled")
		}
	})
	first := send(t, address, "POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nok")
	<-entered
	second := send(t, address, plain)
	if err := second.SetReadDeadline(time.Now().Add(150 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 1)); n > 0 {
		t.Fatalf("the second connection was answered (%v) while the only place was taken", err)
	}
	close(leave)
	if got := status(t, first); got != 200 {
		t.Errorf("the request under way was answered with %d, want 200", got)
	}
	if got := status(t, second); got != 200 {
		t.Errorf("the one that waited was answered with %d, want 200", got)
	}
}

func TestTheOneThatWaitedLongestMakesRoom(t *testing.T) {
	address := serveBounded(t, 3, func(http.ResponseWriter, *http.Request) {})
	var conns []net.Conn
	for range 3 {
		conns = append(conns, send(t, address, plain))
		if got := status(t, conns[len(conns)-1]); got != 200 {
			t.Fatalf("status = %d, want 200", got)
		}
	}
	again := func(c net.Conn) int { // a connection that was closed may refuse to be written to
		_, _ = io.WriteString(c, plain)
		return status(t, c)
	}
	if got := again(conns[0]); got != 200 {
		t.Fatalf("kept alive without need: %d, want 200", got)
	}
	if got := status(t, send(t, address, plain)); got != 200 {
		t.Fatalf("the fourth: %d, want 200", got)
	}
	if got := []int{again(conns[0]), again(conns[1]), again(conns[2])}; got[0] != 200 || got[1] != 0 || got[2] != 200 {
		t.Errorf("answers to the first three = %v, want only the second closed: it was idle longest", got)
	}
}

func TestAListenerThatIsFullCanBeClosed(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	address := serveBounded(t, 1, func(http.ResponseWriter, *http.Request) { close(entered); <-leave })
	t.Cleanup(func() { close(leave) }) // runs first; the server then ends while one waits for room
	send(t, address, plain)
	<-entered
	send(t, address, plain)
}

// The limit of reading a body would end the request's context a little later.
func TestARequestThatWasReadMayTakeItsTime(t *testing.T) {
	const limit = 50 * time.Millisecond
	address := serveBounded(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 4*limit)
		defer cancel()
		<-ctx.Done()
		if r.Context().Err() != nil {
			w.WriteHeader(http.StatusGone)
		}
	})
	for name, rest := range map[string]string{"with a body": "Content-Length: 2\r\n\r\nok", "without one": "\r\n", "with an empty one": "Content-Length: 0\r\n\r\n"} {
		if got := status(t, send(t, address, "POST / HTTP/1.1\r\nHost: localhost\r\n"+rest)); got != 200 {
			t.Errorf("%s: status = %d, want 200: the request was cancelled", name, got)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	w := serve(t, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.pod+"/livez", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("a", 64<<10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // the server hung up before it had read everything
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status = %d, want 431", resp.StatusCode)
	}
}
