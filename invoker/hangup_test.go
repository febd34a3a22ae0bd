package invoker_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// The control: an app that has read the request, or could have, before it hangs up has it, whatever
// its kernel says then.
func TestWhatTheAppMayHaveReadIsNotRepeated(t *testing.T) {
	for name, behave := range map[string]app.Behavior{"closes": app.ReadThenClose(), "resets": app.Reset()} {
		t.Run(name, func(t *testing.T) {
			target := startApp(t, app.Options{})
			for range 50 {
				target.Script("/", app.Status(200), behave)
				client := newClient(t, invoker.Options{})
				checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
				checkOutcome(t, invoke(client, attempt(target.URL()+"/")), lost, "")
				client.Close()
			}
			checkOnceEach(t, target.Calls(), 100)
		})
	}
}

// A program that closes its own direction only, and reads on, has seen the request.
func TestHalfAHangUpIsNoProof(t *testing.T) {
	for _, last := range []string{"close", "reset"} {
		t.Run(last, func(t *testing.T) {
			for range 30 {
				s := &halfServer{last: last, half: make(chan struct{})}
				url := s.start(t)
				client := newClient(t, invoker.Options{})
				checkOutcome(t, invoke(client, attempt(url)), succeeded, "")
				a := attempt(url)
				var once sync.Once
				a.MayStart = func() error { once.Do(func() { close(s.half) }); return nil }
				out := invoke(client, a)
				client.Close()
				if n := s.read(a.Run.ID); n > 1 || n == 1 && out.NotSent {
					t.Fatalf("the request was read %d times: %+v", n, out)
				}
			}
		})
	}
}

// halfServer answers the first request of its first connection, closes its direction when told, and
// reads on.
type halfServer struct {
	last string        // what ends the connection
	half chan struct{} // closed when it is time
	gone chan struct{} // closed when an idle connection was closed

	mu    sync.Mutex
	seen  []string
	conns int
}

func (s *halfServer) start(t *testing.T) (url string) {
	t.Helper()
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
			go s.serve(c.(*net.TCPConn))
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

func (s *halfServer) serve(c *net.TCPConn) {
	defer c.Close()
	s.mu.Lock()
	s.conns++
	first := s.conns == 1
	s.mu.Unlock()
	r := bufio.NewReader(c)
	for n := 1; ; n++ {
		if first && n == 2 {
			<-s.half
			if s.last == "idle" {
				_ = c.Close()
				close(s.gone)
				return
			}
			_ = c.CloseWrite()
		}
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		s.mu.Lock()
		s.seen = append(s.seen, string(body))
		s.mu.Unlock()
		if first && n == 2 {
			if s.last == "reset" {
				_ = c.SetLinger(0)
			}
			return
		}
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	}
}

func (s *halfServer) read(runID string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range s.seen {
		if strings.Contains(body, `"id":"`+runID+`"`) {
			n++
		}
	}
	return n
}
