package callback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/callback"
)

// count counts the calls of a job that says what was given.
type count struct {
	calls atomic.Int32
}

func (c *count) job(outcomes ...func() (string, error)) callback.Func {
	return func(context.Context, *callback.Run) (string, error) {
		n := int(c.calls.Add(1))
		return outcomes[min(n, len(outcomes))-1]()
	}
}

func (c *count) check(t *testing.T, want int32) {
	t.Helper()
	if got := c.calls.Load(); got != want {
		t.Errorf("the work was done %d times, want %d", got, want)
	}
}

func says(message string) func() (string, error) {
	return func() (string, error) { return message, nil }
}

func fails(err error) func() (string, error) {
	return func() (string, error) { return "", err }
}

// watched is a store that tells when somebody has to wait.
type watched struct {
	callback.Store
	waits chan string // run ID
}

func (w *watched) Claim(ctx context.Context, run *callback.Run) (callback.Claim, error) {
	c, err := w.Store.Claim(ctx, run)
	if c.State == callback.InProgress {
		w.waits <- run.ID
	}
	return c, err
}

func newWatched() *watched {
	return &watched{callback.NewMemoryStore(callback.MemoryOptions{}), make(chan string, 100)}
}

func TestHandlerGivesTheRunAndItsMessage(t *testing.T) {
	r := callback.NewReceiver(callback.Options{})
	url := serve(t, r.Handler(func(ctx context.Context, run *callback.Run) (string, error) {
		if of, ok := callback.FromContext(ctx); !ok || of != run {
			t.Error("the context does not carry the run")
		}
		var data struct{ Format string }
		err := run.Decode(&data)
		callback.ReportProgress(ctx, 50, "no harm")
		return run.Job + " as " + data.Format, err
	}))
	got := mustPost(t, url, body)
	got.check(t, 200, "reports.nightly as pdf")
	if got.header.Get("Content-Type") != "text/plain; charset=utf-8" || got.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("header %v", got.header)
	}
}

// TestErrorsBecomeAnswers: what an error asks for is what the sidecar acts on. R136, R137.
func TestErrorsBecomeAnswers(t *testing.T) {
	boom := errors.New("the source is locked")
	tests := map[string]struct {
		err        error
		status     int
		retryAfter string
	}{
		"a plain error is retried":                {boom, 500, ""},
		"a permanent one is final":                {callback.Permanent(boom), 422, ""},
		"also when it is wrapped":                 {fmt.Errorf("report: %w", callback.Permanent(boom)), 422, ""},
		"the outermost mark counts":               {callback.Permanent(callback.RetryAfter(boom, time.Minute)), 422, ""},
		"one with a pause":                        {callback.RetryAfter(boom, 90*time.Second), 503, "90"},
		"a pause is rounded up":                   {callback.RetryAfter(boom, 1500*time.Millisecond), 503, "2"},
		"a pause of nothing is none":              {callback.RetryAfter(boom, -time.Second), 503, ""},
		"a stale token is final":                  {fmt.Errorf("%w: the source is locked", callback.ErrStaleToken), 409, ""},
		"the app gave up by itself: retried":      {fmt.Errorf("%w: %w", boom, context.DeadlineExceeded), 503, ""},
		"a code is for asynchronous runs":         {callback.WithCode(boom, "LOCKED"), 500, ""},
		"a code does not hide what it is made of": {callback.WithCode(callback.Permanent(boom), "LOCKED"), 422, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := callback.NewReceiver(callback.Options{})
			got := mustPost(t, serve(t, r.Handler(new(count).job(fails(tt.err)))), body)
			got.check(t, tt.status, boom.Error())
			if h := got.header.Get("Retry-After"); h != tt.retryAfter {
				t.Errorf("Retry-After %q, want %q", h, tt.retryAfter)
			}
		})
	}
	for _, err := range []error{callback.Permanent(nil), callback.RetryAfter(nil, time.Second), callback.WithCode(nil, "X")} {
		if err != nil {
			t.Errorf("a mark on nil is %v, want nil", err)
		}
	}
}

func TestPanicStaysInTheApp(t *testing.T) {
	var log bytes.Buffer
	r := callback.NewReceiver(callback.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var work count
	url := serve(t, r.Handler(work.job(func() (string, error) { panic("secret of the app") }, says("done"))))
	got := mustPost(t, url, body)
	got.check(t, 500, "panicked")
	if strings.Contains(got.body, "secret") || strings.Contains(got.body, ".go:") {
		t.Errorf("the answer tells of the app's inside: %s", got.body)
	}
	for _, want := range []string{"secret of the app", "receiver_test.go", runID} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log.String())
		}
	}
	mustPost(t, url, attempt(otherRunID, 2)).check(t, 200, "done") // it was forgotten
	work.check(t, 2)
}

func TestLongMessagesAreCut(t *testing.T) {
	r := callback.NewReceiver(callback.Options{})
	got := mustPost(t, serve(t, r.Handler(new(count).job(says(strings.Repeat("ü", 600))))), body)
	if got.body != strings.Repeat("ü", 512) {
		t.Errorf("%d bytes arrived, want 1 KiB that ends between two characters", len(got.body))
	}
}

// TestOccurrenceIsDoneOnce. R138.
func TestOccurrenceIsDoneOnce(t *testing.T) {
	r := callback.NewReceiver(callback.Options{})
	var work count
	url := serve(t, r.Handler(work.job(fails(errors.New("not this time")), fails(callback.Permanent(errors.New("nor this"))), says("42 rows"))))
	mustPost(t, url, body).check(t, 500, "not this time")
	mustPost(t, url, attempt(otherRunID, 2)).check(t, 422, "nor this")
	mustPost(t, url, attempt(runID, 3)).check(t, 200, "42 rows")
	for range 3 {
		got := mustPost(t, url, attempt(otherRunID, 4))
		got.check(t, 200, "42 rows")
		if got.header.Get("Idempotency-Replayed") != "true" {
			t.Error("the answer does not say that it is a repeated one")
		}
	}
	work.check(t, 3)
	other := strings.Replace(body, occurrence, strings.Repeat("0", 32), 1)
	mustPost(t, url, other).check(t, 200, "42 rows") // the third outcome stays
	work.check(t, 4)
}

// TestSecondDeliveryWaits: its answer is how the first one ended.
func TestSecondDeliveryWaits(t *testing.T) {
	store := newWatched()
	r := callback.NewReceiver(callback.Options{Store: store})
	began, end := make(chan string), make(chan error)
	url := serve(t, r.Handler(func(_ context.Context, run *callback.Run) (string, error) {
		began <- run.ID
		return "done by " + run.ID, <-end
	}))
	answers := make(chan reply, 3)
	send := func(body string) {
		go func() {
			got, err := post(t.Context(), url, jsonHeader(), body)
			if err != nil {
				t.Errorf("POST: %v", err)
			}
			answers <- got
		}()
	}
	send(body)
	receive(t, began, "the first delivery")
	third := strings.Repeat("a", 32)
	for _, id := range []string{otherRunID, third} {
		send(attempt(id, 2))
		receive(t, store.waits, "the other deliveries wait")
	}
	end <- errors.New("failed")
	receive(t, answers, "the first answer").check(t, 500, "failed")
	// Exactly one of the two that wait takes over, and the other one waits on.
	second := receive(t, began, "one takes over")
	receive(t, store.waits, "the last one waits again")
	end <- nil
	for range 2 {
		receive(t, answers, "both answers").check(t, 200, "done by "+second)
	}
}

// TestWaitingEndsWithTheConnection: nobody waits for a sidecar that has gone.
func TestWaitingEndsWithTheConnection(t *testing.T) {
	store := newWatched()
	r := callback.NewReceiver(callback.Options{Store: store})
	began, end := make(chan struct{}), make(chan struct{})
	ended := make(chan struct{}, 2)
	work := r.Handler(func(context.Context, *callback.Run) (string, error) {
		began <- struct{}{}
		<-end
		return "", nil
	})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		work.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	go func() { _, _ = post(t.Context(), url, jsonHeader(), body) }()
	receive(t, began, "the first delivery")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = post(ctx, url, jsonHeader(), attempt(otherRunID, 2)) }()
	receive(t, store.waits, "the second waits")
	cancel()
	receive(t, ended, "the second handler returns")
	close(end)
	receive(t, ended, "the first handler returns")
}

// TestTimeoutEndsTheContext: the sidecar closes the connection, the work stops, and the next
// attempt does it anew.
func TestTimeoutEndsTheContext(t *testing.T) {
	t.Parallel()
	store := newWatched()
	r := callback.NewReceiver(callback.Options{Store: store})
	began := make(chan struct{}, 1)
	var calls atomic.Int32
	h := r.Handler(func(ctx context.Context, _ *callback.Run) (string, error) {
		if calls.Add(1) > 1 {
			return "done", nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	// A server's own time limits do not end work that takes longer.
	s := httptest.NewUnstartedServer(h)
	s.Config.ReadTimeout, s.Config.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond
	s.Start()
	t.Cleanup(s.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	go func() { _, _ = post(ctx, s.URL, jsonHeader(), body) }()
	receive(t, began, "the work begins")
	mustPost(t, s.URL, attempt(otherRunID, 2)).check(t, 200, "done")
	if passed := time.Since(start); passed < 900*time.Millisecond {
		t.Errorf("the first attempt ended after %s, before its caller had gone", passed)
	}
}

// TestSuccessIsKeptThoughNobodyWaits: work that was done although the sidecar had gone is not
// done again.
func TestSuccessIsKeptThoughNobodyWaits(t *testing.T) {
	r := callback.NewReceiver(callback.Options{})
	began := make(chan struct{}, 1)
	var calls atomic.Int32
	url := serve(t, r.Handler(func(ctx context.Context, _ *callback.Run) (string, error) {
		calls.Add(1)
		began <- struct{}{}
		<-ctx.Done()
		return "done all the same", nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = post(ctx, url, jsonHeader(), body) }()
	receive(t, began, "the work begins")
	cancel()
	mustPost(t, url, attempt(otherRunID, 2)).check(t, 200, "done all the same")
	if n := calls.Load(); n != 1 {
		t.Errorf("the work was done %d times", n)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	secret := secretOf("s", 32)
	v := newVerifier(t, secret)
	var work count
	r := callback.NewReceiver(callback.Options{Verifier: v, MaxBody: 2000})
	url := serve(t, r.Handler(work.job(says("done"))))
	now := time.Now()
	large := strings.Replace(body, "pdf", strings.Repeat("x", 2000), 1)
	for name, tt := range map[string]struct {
		header http.Header
		body   string
		status int
		want   string
	}{
		"not signed":                     {jsonHeader(), body, 401, "no webhook-id"},
		"signed with another secret":     {signed(now, body, secretOf("x", 32)), body, 401, "no signature matches"},
		"signed an hour ago":             {signed(now.Add(-time.Hour), body, secret), body, 401, "signed 1h0m"},
		"signed and not JSON":            {signed(now, "hello", secret), "hello", 400, "not a JSON object"},
		"too large":                      {signed(now, large, secret), large, 413, "2000 bytes"},
		"signed, of another sidecar":     {signed(now, `{"type":"x"}`, secret), `{"type":"x"}`, 400, "id is missing"},
		"a header that was changed":      {with(signed(now, body, secret), "Leasecron-Fencing-Token", "99"), body, 400, "Leasecron-Fencing-Token"},
		"a content type that it has not": {with(signed(now, body, secret), "Content-Type", "text/plain"), body, 415, "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := post(t.Context(), url, tt.header, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			got.check(t, tt.status, tt.want)
		})
	}
	work.check(t, 0)
	got, err := post(t.Context(), url, signed(now, body, secretOf("o", 24), secret), body)
	if err != nil {
		t.Fatal(err)
	}
	got.check(t, 200, "done")
}

func with(h http.Header, name, value string) http.Header {
	h.Set(name, value)
	return h
}

// TestBodyWithoutLength: a body of unknown length is bounded too.
func TestBodyWithoutLength(t *testing.T) {
	t.Parallel()
	r := callback.NewReceiver(callback.Options{MaxBody: 1000})
	url := serve(t, r.Handler(new(count).job(says("done"))))
	address := strings.TrimPrefix(url, "http://")
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n%s\r\n", strings.Repeat("x", 0x800))
	answer := make([]byte, 100)
	n, _ := c.Read(answer)
	if !strings.Contains(string(answer[:n]), "413") {
		t.Errorf("answered %q, want 413", answer[:n])
	}
}

func TestMethods(t *testing.T) {
	r := callback.NewReceiver(callback.Options{})
	h := r.Handler(new(count).job(says("done")))
	for method, want := range map[string]int{"POST": 200, "PUT": 200, "PATCH": 200, "GET": 405, "DELETE": 405} {
		req := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
		req.Header = jsonHeader()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != want || want == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s: %d, Allow %q, want %d", method, w.Code, w.Header().Get("Allow"), want)
		}
	}
}

// brokenStore fails where it is told to.
type brokenStore struct {
	callback.Store
	claim, end error
}

func (b *brokenStore) Claim(ctx context.Context, run *callback.Run) (callback.Claim, error) {
	if b.claim != nil {
		return callback.Claim{}, b.claim
	}
	return b.Store.Claim(ctx, run)
}

func (b *brokenStore) Finish(context.Context, *callback.Run, string) error { return b.end }
func (b *brokenStore) Forget(context.Context, *callback.Run) error         { return b.end }

// TestStoreThatIsAway: without a claim no work; what was done is told as done.
func TestStoreThatIsAway(t *testing.T) {
	var log bytes.Buffer
	store := &brokenStore{Store: callback.NewMemoryStore(callback.MemoryOptions{}), claim: errors.New("no database")}
	r := callback.NewReceiver(callback.Options{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var work count
	url := serve(t, r.Handler(work.job(says("done"), fails(errors.New("failed")))))
	mustPost(t, url, body).check(t, 503, "no database")
	work.check(t, 0)
	store.claim, store.end = nil, errors.New("the database went away")
	mustPost(t, url, body).check(t, 200, "done")
	mustPost(t, url, strings.Replace(body, occurrence, strings.Repeat("1", 32), 1)).check(t, 500, "failed")
	if n := strings.Count(log.String(), "went away"); n != 2 {
		t.Errorf("the log tells of %d failures to store, want 2: %s", n, log.String())
	}
}

// pollStore cannot tell when a claim ends.
type pollStore struct{ callback.Store }

func (p pollStore) Claim(ctx context.Context, run *callback.Run) (callback.Claim, error) {
	c, err := p.Store.Claim(ctx, run)
	c.Released = nil
	return c, err
}

func TestStoreThatCannotTellIsAskedAgain(t *testing.T) {
	t.Parallel()
	store := newWatched()
	store.Store = pollStore{store.Store}
	r := callback.NewReceiver(callback.Options{Store: store})
	end := make(chan struct{})
	began := make(chan struct{})
	url := serve(t, r.Handler(func(context.Context, *callback.Run) (string, error) {
		close(began)
		<-end
		return "done once", nil
	}))
	var both sync.WaitGroup
	both.Go(func() { mustPost(t, url, body).check(t, 200, "done once") })
	receive(t, began, "the first delivery")
	both.Go(func() { mustPost(t, url, attempt(otherRunID, 2)).check(t, 200, "done once") })
	receive(t, store.waits, "the second waits")
	close(end)
	both.Wait()
}

func TestFenceComesFirst(t *testing.T) {
	r := callback.NewReceiver(callback.Options{Fence: callback.NewMemoryFence()})
	var work count
	url := serve(t, r.Handler(work.job(says("done"))))
	mustPost(t, url, withTerm(12)).check(t, 200, "done")
	got := mustPost(t, url, withTerm(11))
	got.check(t, 409, "token 11, seen 12")
	mustPost(t, url, withTerm(13)).check(t, 200, "done") // known, and a newer leader
	mustPost(t, url, withTerm(12)).check(t, 409, "token 12, seen 13")
	work.check(t, 1)
}

// TestHTTP2: a job's target may speak HTTP/2 in clear text; work ends with its stream.
func TestHTTP2(t *testing.T) {
	r := callback.NewReceiver(callback.Options{})
	began := make(chan struct{}, 1)
	var calls atomic.Int32
	s := httptest.NewUnstartedServer(r.Handler(func(ctx context.Context, _ *callback.Run) (string, error) {
		if calls.Add(1) > 1 {
			return "done", nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	s.Config.Protocols = protocols
	s.Start()
	t.Cleanup(s.Close)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	t.Cleanup(client.CloseIdleConnections)
	send := func(ctx context.Context, body string) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		req.Header = jsonHeader()
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = send(ctx, body) }()
	receive(t, began, "the work begins")
	cancel()
	if status, err := send(t.Context(), attempt(otherRunID, 2)); status != 200 || err != nil {
		t.Errorf("the next attempt was answered %d, %v", status, err)
	}
}
