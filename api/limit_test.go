package api_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// dial opens a connection, sends one request and returns a function that reads the answer.
func dial(t *testing.T, base string) (net.Conn, func(within time.Duration) error) {
	t.Helper()
	address := strings.TrimPrefix(base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: " + address + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	return conn, func(within time.Duration) error {
		if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
}

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	w := serve(t, nil)
	var first net.Conn
	for range 128 {
		conn, answer := dial(t, w.pod)
		if err := answer(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = conn
		}
	}
	_, answer := dial(t, w.pod)
	if err := answer(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("one connection too many was answered: %v", err)
	}
	first.Close()
	if err := answer(10 * time.Second); err != nil {
		t.Errorf("it was not answered when another had gone: %v", err)
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
