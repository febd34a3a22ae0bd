package throughput_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/spawn"
)

// serverMark in the environment makes this program the server.
const serverMark = "TEST_THROUGHPUT_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverMark) == "" {
		os.Exit(m.Run())
	}
	if err := runServer(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runServer answers 200 to everything, and counts, until it is killed.
func runServer(out io.Writer) error {
	var served atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		served.Add(1)
	})
	mux.HandleFunc("GET /served", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, served.Load()) })
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, l.Addr())
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// server is the other process.
type server struct{ url string }

func startServer(t *testing.T) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverMark+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := spawn.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return &server{"http://" + strings.TrimSpace(line)}
}

// served is how many callbacks the server has got.
func (s *server) served(t *testing.T) int64 {
	t.Helper()
	resp, err := http.Get(s.url + "/served")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	n, parse := strconv.ParseInt(string(text), 10, 64)
	if err := errors.Join(err, parse); err != nil {
		t.Fatal(err)
	}
	return n
}
