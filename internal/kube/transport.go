package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// maxResponse bounds what one answer may hold. The API server keeps objects under 1.5 MiB; a watch
// is a stream and bounded event by event.
const maxResponse = 4 << 20

// maxDateAge is how slow an answer may be to still tell the server's time.
const maxDateAge = time.Second

var errTooLarge = errors.New("the API server's answer is larger than 4 MiB")

// clock watches every answer that passes for what it says about the server's time.
type clock struct {
	mu          sync.Mutex
	server      time.Time // the server's time at the moment measured
	measured    time.Time // zero: no answer could tell yet
	uncertainty time.Duration
}

// ClockOffset says how far the API server's clock is ahead of this machine's wall clock: by the last
// answer that could tell and the monotonic clock since, so that a wall clock that was stepped shows at
// once. The true offset lies within uncertainty of it; the server's date has whole seconds, so that
// is at least half a second. ok is false until there was such an answer.
func (c *Client) ClockOffset() (offset, uncertainty time.Duration, ok bool) {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	if c.clock.measured.IsZero() {
		return 0, 0, false
	}
	now := time.Now()
	return c.clock.server.Add(now.Sub(c.clock.measured)).Sub(now.Round(0)), c.clock.uncertainty, true
}

// observe learns from an answer whose request was sent at one moment and which came at another.
func (c *clock) observe(date string, sent, received time.Time) {
	took := received.Sub(sent)
	if took > maxDateAge {
		return // the date may stem from any moment in between
	}
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	// The server's time lay in [at, at+1s) at some moment between sent and received.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = at.Add(time.Second / 2)
	c.measured = sent.Add(took / 2)
	c.uncertainty = time.Second/2 + took/2
}

func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		var connected atomic.Bool
		ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			// A second GetConn means that nothing was written to the first connection: it had gone
			// while idle, and only then does the transport take another one for a write.
			GetConn: func(string) { connected.Store(false) },
			GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
		})
		sent := time.Now()
		resp, err := next.RoundTrip(req.WithContext(ctx))
		if err != nil {
			if !connected.Load() {
				err = &notSentError{err}
			}
			return resp, err
		}
		c.observe(resp.Header.Get("Date"), sent, time.Now())
		if !req.URL.Query().Has("watch") {
			resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxResponse}
		}
		return resp, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
