package invoker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// Each way in which an app can go wrong after it has the request: exactly one request on the
// wire, and an outcome that says whether the work may have been done.
func TestOneRequestWhateverTheAppDoes(t *testing.T) {
	const timeout = 300 * time.Millisecond
	tests := map[string]struct {
		behave  app.Behavior
		timeout time.Duration
		want    run.Outcome
		message string
	}{
		"a slow handler is normal (R128)":                            {behave: app.After(1500*time.Millisecond, app.Status(200)), timeout: 10 * time.Second, want: succeeded},
		"it reads the request and closes (R132)":                     {behave: app.ReadThenClose(), want: lost, message: "connection lost"},
		"a middle box cuts a long answer off (R132)":                 {behave: app.After(100*time.Millisecond, app.ReadThenClose()), want: lost, message: "may have done the work"},
		"it resets (R132)":                                           {behave: app.Reset(), want: lost, message: "connection lost"},
		"it never answers (R116, R133)":                              {behave: app.Never(), timeout: timeout, want: timedOut, message: "no answer within the timeout"},
		"it answers after the timeout (R133)":                        {behave: app.After(600*time.Millisecond, app.Status(200)), timeout: timeout, want: timedOut},
		"it breaks off as the timeout passes (R138)":                 {behave: app.After(timeout, app.ReadThenClose()), timeout: timeout},
		"it answers what is not HTTP":                                {behave: app.Raw("SSH-2.0-x\r\n\r\n"), want: lost},
		"it closes within the header":                                {behave: app.Raw("HTTP/1.1 200 OK\r\nX: "), want: lost},
		"its header never ends":                                      {behave: app.Raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), want: lost},
		"it sends interim answers without end":                       {behave: app.Raw(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100_000)), want: lost},
		"it switches protocols":                                      {behave: app.Raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), want: run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 101}},
		"its body is shorter than it said: the status has decided":   {behave: app.Raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndone"), want: succeeded, message: "done"},
		"its body trickles past the timeout: the status has decided": {behave: app.Trickle(200, strings.Repeat("x", 1000), 50*time.Millisecond), timeout: timeout, want: succeeded, message: "xx"},
		"it fails, and its body trickles past the timeout":           {behave: app.Trickle(500, strings.Repeat("x", 1000), 50*time.Millisecond), timeout: timeout, want: run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 500, Retryable: true}, message: "xx"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := startApp(t, app.Options{})
			target.Script("/warm-up", app.Status(200))
			target.Script("/", tt.behave)
			client := newClient(t, invoker.Options{})
			// The first attempt leaves a connection behind: net/http repeats requests by itself
			// only on one that was used before.
			checkOutcome(t, invoke(client, attempt(target.URL()+"/warm-up")), succeeded, "")

			var q ask
			a := q.on(attempt(target.URL() + "/"))
			if tt.timeout > 0 {
				a.Timeout = tt.timeout
			}
			start := time.Now()
			got := invoke(client, a)
			if took := time.Since(start); took > a.Timeout+time.Second {
				t.Errorf("the attempt took %s, its timeout is %s", took, a.Timeout)
			}
			if tt.want.State != "" {
				checkOutcome(t, got, tt.want, tt.message)
			} else if !got.Unknown || got.State != run.StateFailed {
				t.Errorf("outcome %+v, want a failure with unknown outcome", got)
			}
			if asked, started := q.counts(); asked != 1 || started != 1 {
				t.Errorf("MayStart was asked %d times and Started told %d times, want 1 and 1", asked, started)
			}
			calls := target.Calls()
			if len(calls) != 2 {
				t.Fatalf("%d requests arrived for two attempts", len(calls))
			}
			if calls[0].Remote != calls[1].Remote {
				t.Errorf("the second request came over another connection (%s, %s): the test proves nothing", calls[0].Remote, calls[1].Remote)
			}
		})
	}
}

// The control of the test above: with a plain client the same app sees the request twice.
func TestPlainClientRepeatsWhatThisOneDoesNot(t *testing.T) {
	target := startApp(t, app.Options{})
	target.Script("/", app.Status(200), app.ReadThenClose(), app.Status(200))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target.URL()+"/", bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", `"1"`)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if n := len(target.Calls()); n != 3 {
		t.Errorf("%d requests arrived for two calls, want 3", n)
	}
}

func TestHundredMegabytesAreNotRead(t *testing.T) {
	target := startApp(t, app.Options{})
	sent := make(chan int64, 1)
	target.Script("/", app.Huge(200, 100<<20, sent))
	start := time.Now()
	checkOutcome(t, invoke(newClient(t, invoker.Options{}), attempt(target.URL()+"/")), succeeded, "xxxx")
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the attempt took %s", took)
	}
	if n := <-sent; n > 16<<20 {
		t.Errorf("the app got rid of %d MiB", n>>20)
	}
}

func TestLargestDataArrivesWhole(t *testing.T) {
	target := startApp(t, app.Options{})
	client := newClient(t, invoker.Options{})
	a := attempt(target.URL() + "/")
	a.Data = []byte(`"` + strings.Repeat("x", invoker.MaxData-2) + `"`)
	checkOutcome(t, invoke(client, a), succeeded, "")
	if got := string(target.Calls()[0].Body.Data); got != string(a.Data) {
		t.Errorf("%d bytes of data arrived, want %d", len(got), len(a.Data))
	}
	a.Data = append(a.Data, ' ')
	checkOutcome(t, invoke(client, a), forbidden, "at most 262144 are sent")
	if n := len(target.Calls()); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
}

// R134: the app closed the connection that the sidecar is about to use again.
func TestIdleConnectionThatTheAppClosedIsNoFailedRun(t *testing.T) {
	target := startApp(t, app.Options{})
	const clients = 100
	for range clients {
		client := newClient(t, invoker.Options{})
		checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
		target.CloseIdle()
		var q ask
		checkOutcome(t, invoke(client, q.on(attempt(target.URL()+"/"))), succeeded, "")
		if _, started := q.counts(); started != 1 {
			t.Errorf("Started was told %d times", started)
		}
	}
	checkOnceEach(t, target.Calls(), 2*clients)
}

// R134: once an app was seen to hang up, it has nothing idle left to hang up on.
func TestConnectionsAreUsedOnceAfterTheAppHungUp(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{KeepIdle: 20 * time.Millisecond})
	client := newClient(t, invoker.Options{})
	eventually(t, "a connection that is used once", func() bool {
		checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
		<-time.After(30 * time.Millisecond)
		calls := target.Calls()
		return calls[len(calls)-1].Header.Get("Connection") == "close"
	})
	before := len(target.Calls())
	remotes := map[string]bool{}
	for range 20 {
		checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
	}
	for _, c := range target.Calls()[before:] {
		remotes[c.Remote] = true
	}
	if len(remotes) != 20 {
		t.Errorf("20 callbacks came over %d connections", len(remotes))
	}
}

// R134: this side is the one that closes first, well before the second for which an app is asked
// to keep a connection; in a burst, connections are kept.
func TestConnectionsAreKeptForHalfASecond(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{})
	client := newClient(t, invoker.Options{})
	for _, pause := range []time.Duration{0, 700 * time.Millisecond, 0} {
		checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
		<-time.After(pause)
	}
	calls := target.Calls()
	if calls[0].Remote != calls[1].Remote || calls[1].Remote == calls[2].Remote {
		t.Errorf("connections %s, %s, %s: want the first kept for the second callback, and another one after 0.7 s",
			calls[0].Remote, calls[1].Remote, calls[2].Remote)
	}
}

// R134: an app that keeps idle connections for a second sees no failed and no doubled run,
// whatever the pauses between them.
func TestKeepingIdleConnectionsForASecondIsEnough(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{KeepIdle: time.Second})
	client := newClient(t, invoker.Options{})
	pauses := []time.Duration{
		0, 100 * time.Millisecond, 480 * time.Millisecond, 499 * time.Millisecond, 500 * time.Millisecond,
		501 * time.Millisecond, 520 * time.Millisecond, 950 * time.Millisecond, 999 * time.Millisecond,
		time.Second, 1001 * time.Millisecond, 1050 * time.Millisecond,
	}
	var wg sync.WaitGroup
	for _, pause := range pauses {
		wg.Go(func() {
			for range 4 {
				if got := invoke(client, attempt(target.URL()+"/")); got.State != run.StateSucceeded {
					t.Errorf("with pauses of %s: %+v", pause, got)
				}
				<-time.After(pause)
			}
		})
	}
	wg.Wait()
	checkOnceEach(t, target.Calls(), 4*len(pauses))
}

// R134: an app that hangs up every 50 ms, in the middle of whatever comes. Only the first time
// can it meet a request that is just arriving.
func TestNoDoubleRunWhenIdleConnectionsAreClosedEvery50ms(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go target.CloseIdleEvery(ctx, 50*time.Millisecond)
	client := newClient(t, invoker.Options{})

	results := make(chan result, 8*100)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				a := attempt(target.URL() + "/")
				results <- result{a.Run.ID, invoke(client, a)}
				<-time.After(rand.N(20 * time.Millisecond))
			}
		})
	}
	wg.Wait()
	close(results)
	if kinds := checkAccounts(t, target, results); kinds[run.StateFailed] > 8 {
		t.Errorf("%d runs failed, want at most one for each worker", kinds[run.StateFailed])
	}
}

// Requests that the app counts are attempts recorded, but for those recorded as never sent:
// also when attempts are canceled or time out at any moment.
func TestAccountsAgreeUnderCancellationAtAnyMoment(t *testing.T) {
	target := startApp(t, app.Options{})
	target.Script("*", app.After(time.Millisecond, app.Status(200)))
	client := newClient(t, invoker.Options{})
	results := make(chan result, 8*150)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 150 {
				var over atomic.Bool
				a := attempt(target.URL() + "/")
				a.MayStart = func() error {
					if over.Load() {
						t.Error("MayStart was asked after Invoke had returned")
					}
					return nil
				}
				a.Started = func(time.Time) {
					if over.Load() {
						t.Error("Started was told after Invoke had returned")
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				if (w+i)%2 == 0 {
					a.Timeout = max(rand.N(3*time.Millisecond), 1)
				} else {
					time.AfterFunc(rand.N(3*time.Millisecond), cancel)
				}
				out := client.Invoke(ctx, a)
				over.Store(true)
				cancel()
				results <- result{a.Run.ID, out}
			}
		})
	}
	wg.Wait()
	close(results)
	// What was written last may still be on its way to the handler.
	checkAccounts(t, target, results)
}

func TestCancelSaysWhoCanceled(t *testing.T) {
	because := errors.New("canceled by alice")
	canceled := run.Outcome{State: run.StateCanceled, Code: run.CodeCanceled}
	sent, unsent := canceled, canceled
	sent.Unknown, unsent.NotSent = true, true

	t.Run("while the app works", func(t *testing.T) {
		target := startApp(t, app.Options{})
		target.Script("/", app.Never())
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			_, _ = target.WaitFor(1, 5*time.Second)
			cancel(because)
		}()
		checkOutcome(t, newClient(t, invoker.Options{}).Invoke(ctx, attempt(target.URL()+"/")), sent, "canceled by alice")
	})
	t.Run("before anything was sent", func(t *testing.T) {
		target := startApp(t, app.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(because)
		checkOutcome(t, newClient(t, invoker.Options{}).Invoke(ctx, attempt(target.URL()+"/")), unsent, "canceled by alice")
		if n := len(target.Calls()); n != 0 {
			t.Errorf("%d requests arrived", n)
		}
	})
	t.Run("while it waits for an app that is not there", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(because) })
		checkOutcome(t, newClient(t, invoker.Options{}).Invoke(ctx, attempt("http://"+freeAddress(t)+"/")), unsent, "canceled by alice")
	})
	t.Run("a deadline of the caller is a timeout", func(t *testing.T) {
		target := startApp(t, app.Options{})
		target.Script("/", app.Never())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		checkOutcome(t, newClient(t, invoker.Options{}).Invoke(ctx, attempt(target.URL()+"/")), timedOut, "timeout")
	})
	t.Run("after the timeout it is still a timeout", func(t *testing.T) {
		target := startApp(t, app.Options{})
		target.Script("/", app.Never())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(400*time.Millisecond, func() { cancel(because) })
		a := attempt(target.URL() + "/")
		a.Timeout = 100 * time.Millisecond
		checkOutcome(t, newClient(t, invoker.Options{}).Invoke(ctx, a), timedOut, "timeout")
	})
}

type result struct {
	id  string
	out run.Outcome
}

// checkOnceEach fails unless exactly want runs arrived, each once.
func checkOnceEach(t *testing.T, calls []app.Call, want int) {
	t.Helper()
	seen := map[string]int{}
	for _, c := range calls {
		if seen[c.Body.ID]++; seen[c.Body.ID] == 2 {
			t.Errorf("run %s arrived twice", c.Body.ID)
		}
	}
	if len(seen) != want {
		t.Errorf("%d runs arrived, want %d", len(seen), want)
	}
}

// checkAccounts holds what the app saw against what the outcomes say, and counts these by state.
func checkAccounts(t *testing.T, target *app.App, results <-chan result) map[run.State]int {
	t.Helper()
	outcomes := map[string]run.Outcome{}
	answered := 0
	states, kinds := map[run.State]int{}, map[string]int{}
	for r := range results {
		outcomes[r.id] = r.out
		if r.out.Status != 0 {
			answered++
		}
		states[r.out.State]++
		kinds[fmt.Sprintf("%s unsent=%t unknown=%t", r.out.State, r.out.NotSent, r.out.Unknown)]++
	}
	calls, err := target.WaitFor(answered, 5*time.Second)
	if err != nil {
		t.Error(err)
	}
	seen := map[string]int{}
	for _, c := range calls {
		seen[c.Body.ID]++
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("run %s arrived %d times", id, n)
		}
		if outcomes[id].NotSent {
			t.Errorf("run %s arrived, recorded as never sent: %+v", id, outcomes[id])
		}
	}
	for id, out := range outcomes {
		if out.Status != 0 && seen[id] != 1 {
			t.Errorf("run %s arrived %d times, recorded as answered: %+v", id, seen[id], out)
		}
		if !out.NotSent && !out.Unknown && out.Status == 0 {
			t.Errorf("run %s is neither sent nor unsent: %+v", id, out)
		}
	}
	t.Logf("%d attempts, %d requests: %v", len(outcomes), len(calls), kinds)
	return states
}
