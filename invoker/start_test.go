package invoker_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

var errLeaseOver = errors.New("lease is over")

// byteCounter listens and counts what it reads, without ever answering.
func byteCounter(t *testing.T) (address string, accepted, read *atomic.Int64) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	accepted, read = new(atomic.Int64), new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			go func() {
				defer c.Close()
				n, _ := io.Copy(io.Discard, c)
				read.Add(n)
			}()
		}
	}()
	return l.Addr().String(), accepted, read
}

func TestRefusedStartWritesNothing(t *testing.T) {
	address, accepted, read := byteCounter(t)
	q := ask{answers: []error{errLeaseOver}}
	got := invoke(newClient(t, invoker.Options{}), q.on(attempt("http://"+address+"/")))
	checkOutcome(t, got, refused, "not started: lease is over")
	if !got.StartedAt.IsZero() {
		t.Errorf("StartedAt = %s, want none", got.StartedAt)
	}
	if asked, started := q.counts(); asked != 1 || started != 0 {
		t.Errorf("MayStart asked %d times, Started told %d times, want 1 and 0", asked, started)
	}
	eventually(t, "the connection", func() bool { return accepted.Load() == 1 })
	if n := read.Load(); n != 0 {
		t.Errorf("%d bytes were written", n)
	}
}

func TestRefusedStartOnAReusedConnectionWritesNothing(t *testing.T) {
	target := startApp(t, app.Options{})
	client := newClient(t, invoker.Options{})
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
	q := ask{answers: []error{errLeaseOver}}
	checkOutcome(t, invoke(client, q.on(attempt(target.URL()+"/"))), refused, "lease is over")
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
	checkOnceEach(t, target.Calls(), 2)
}

// The question comes when the connection is there and nothing is written yet; Started follows
// it, and the request follows Started.
func TestMayStartIsTheLastQuestion(t *testing.T) {
	target := startApp(t, app.Options{})
	var asked, started time.Time
	a := attempt(target.URL() + "/")
	a.MayStart = func() error {
		asked = time.Now()
		if n := len(target.Calls()); n != 0 {
			t.Errorf("%d requests had arrived when MayStart was asked", n)
		}
		return nil
	}
	a.Started = func(at time.Time) { started = at }
	got := invoke(newClient(t, invoker.Options{}), a)
	checkOutcome(t, got, succeeded, "")
	arrived := target.Calls()[0].At
	if asked.After(started) || started.After(arrived) {
		t.Errorf("asked %s, started %s, arrived %s: want this order", asked, started, arrived)
	}
	if !got.StartedAt.Equal(started) || got.EndedAt.Before(arrived) {
		t.Errorf("StartedAt %s, EndedAt %s, want %s and after %s", got.StartedAt, got.EndedAt, started, arrived)
	}
}

// A question that takes long must not let a request out after the attempt was given up.
func TestAnswerOfMayStartThatComesTooLate(t *testing.T) {
	target := startApp(t, app.Options{})
	var q ask
	a := q.on(attempt(target.URL() + "/"))
	a.Timeout = 50 * time.Millisecond
	a.MayStart = func() error {
		<-time.After(200 * time.Millisecond)
		return nil
	}
	got := invoke(newClient(t, invoker.Options{}), a)
	want := timedOut
	want.Unknown, want.NotSent = false, true
	checkOutcome(t, got, want, "was not sent within the timeout")
	if _, started := q.counts(); started != 0 || !got.StartedAt.IsZero() {
		t.Errorf("Started was told %d times, StartedAt = %s, want neither", started, got.StartedAt)
	}
	if n := len(target.Calls()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// R129, R140: the app opens its port late; the attempt waits for it, in one run.
func TestAppThatStartsLateGetsItsRun(t *testing.T) {
	address := freeAddress(t)
	var q ask
	done := make(chan run.Outcome, 1)
	client := newClient(t, invoker.Options{})
	go func() { done <- invoke(client, q.on(attempt("http://"+address+"/"))) }()

	eventually(t, "a refused try", func() bool { asked, _ := q.counts(); return asked >= 2 })
	refused := q.firstAsked()
	target := startApp(t, app.Options{Address: address})
	checkOutcome(t, <-done, succeeded, "")
	checkOnceEach(t, target.Calls(), 1)
	call := target.Calls()[0]
	if fired := call.Body.FiredAt; fired == nil || !fired.After(refused) || fired.After(call.At) {
		t.Errorf("firedAt = %v, want the time of the try that came through, after the refused one of %s", fired, refused)
	}
	if got := string(call.Body.Data); got != `{"format":"pdf"}` {
		t.Errorf("data = %s", got)
	}
	if asked, started := q.counts(); asked < 2 || started != 1 {
		t.Errorf("MayStart asked %d times, Started told %d times, want at least 2 and 1", asked, started)
	}
}

// R129: an app that is not there is no failure of the app's; it says what to do.
func TestAppThatIsNotThere(t *testing.T) {
	t.Run("ends before its timeout, as never sent", func(t *testing.T) {
		address := freeAddress(t)
		a := attempt("http://" + address + "/jobs?key=hunter2")
		a.Timeout = 700 * time.Millisecond
		start := time.Now()
		got := invoke(newClient(t, invoker.Options{}), a)
		checkOutcome(t, got, unreached, "connection refused by "+address+": is the app listening?")
		if took := time.Since(start); took > a.Timeout+100*time.Millisecond || took < 300*time.Millisecond {
			t.Errorf("the attempt took %s, want it to try for most of its %s", took, a.Timeout)
		}
		if !got.StartedAt.IsZero() {
			t.Error("StartedAt is set although nothing was sent")
		}
	})
	t.Run("is not tried once the lease is over", func(t *testing.T) {
		q := ask{answers: []error{nil, nil, errLeaseOver}}
		start := time.Now()
		got := invoke(newClient(t, invoker.Options{}), q.on(attempt("http://"+freeAddress(t)+"/")))
		checkOutcome(t, got, refused, "lease is over")
		if asked, _ := q.counts(); asked != 3 {
			t.Errorf("MayStart was asked %d times, want 3", asked)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the attempt went on for %s", took)
		}
	})
}

func TestAttemptThatCannotBeMade(t *testing.T) {
	target := startApp(t, app.Options{})
	tests := map[string]struct {
		change  func(*run.Attempt)
		message string
	}{
		"data that is no JSON":   {func(a *run.Attempt) { a.Data = []byte(`{"secret": hunter2}`) }, "data is not valid JSON"},
		"a method of another":    {func(a *run.Attempt) { a.Method = "GET" }, `method "GET" is not POST, PUT or PATCH`},
		"a header with a break":  {func(a *run.Attempt) { a.Headers = map[string]string{"X-A": "hunter2\r\nCe-Id: x"} }, "header X-A holds control characters"},
		"a header without name":  {func(a *run.Attempt) { a.Headers = map[string]string{"": "x"} }, `header name "" is not valid`},
		"a header name in two":   {func(a *run.Attempt) { a.Headers = map[string]string{"X A": "x"} }, `header name "X A" is not valid`},
		"a URL that is none":     {func(a *run.Attempt) { a.URL = "http://127.0.0.1:80:80/?hunter2" }, "target is not a valid URL"},
		"a scheme of another":    {func(a *run.Attempt) { a.URL = "file:///etc/passwd" }, `scheme "file": want http, https, h2c or unix`},
		"no host":                {func(a *run.Attempt) { a.URL = "http:///jobs" }, "names no host"},
		"credentials in the URL": {func(a *run.Attempt) { a.URL = "http://me:hunter2@127.0.0.1/" }, "carries credentials: use bearerFile"},
	}
	client := newClient(t, invoker.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var q ask
			a := q.on(attempt(target.URL() + "/"))
			tt.change(&a)
			got := invoke(client, a)
			checkOutcome(t, got, forbidden, tt.message)
			if strings.Contains(got.Message, "hunter2") {
				t.Errorf("message shows what it must not: %s", got.Message)
			}
			if asked, _ := q.counts(); asked != 0 {
				t.Errorf("MayStart was asked %d times", asked)
			}
		})
	}
	if n := len(target.Calls()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}
