package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/callback"
)

// report is a request to the API of a sidecar.
type report struct {
	id, what, body string
}

// fakeAPI is a sidecar's API that answers as docs/callback.md says. What it is told goes to reports.
type fakeAPI struct {
	url     string
	reports chan report

	mu     sync.Mutex
	answer map[string][]string // by what: "status body", the first one first; the last one stays
}

func startAPI(t *testing.T) *fakeAPI {
	t.Helper()
	a := &fakeAPI{reports: make(chan report, 1000), answer: make(map[string][]string)}
	a.url = serve(t, a)
	return a
}

// script says how requests are answered.
func (a *fakeAPI) script(what string, answers ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer[what] = answers
}

func (a *fakeAPI) next(what string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	script := a.answer[what]
	switch len(script) {
	case 0:
		return `200 {"state":"Running"}`
	case 1:
		return script[0]
	}
	a.answer[what] = script[1:]
	return script[0]
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	parts := strings.Split(r.URL.Path, "/") // "", v1, runs, ID, what
	if len(parts) != 5 || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || !json.Valid(text) {
		panic(fmt.Sprintf("%s %s %s", r.Method, r.URL, text))
	}
	answer := a.next(parts[4])
	if answer == "close" {
		a.reports <- report{parts[3], parts[4], string(text)}
		panic(http.ErrAbortHandler)
	}
	write(w, answer)
	a.reports <- report{parts[3], parts[4], string(text)}
}

// write answers with "status body".
func write(w http.ResponseWriter, answer string) {
	status, text, _ := strings.Cut(answer, " ")
	code, err := strconv.Atoi(status)
	if err != nil {
		panic(answer)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// wait returns the next report of a kind.
func (a *fakeAPI) wait(t *testing.T, what string) report {
	t.Helper()
	for {
		if r := receive(t, a.reports, "a report: "+what); r.what == what {
			return r
		}
	}
}

// none checks that no report of this kind has come.
func (a *fakeAPI) none(t *testing.T, what string) {
	t.Helper()
	for {
		select {
		case r := <-a.reports:
			if r.what == what {
				t.Errorf("the sidecar was told %+v", r)
			}
		default:
			return
		}
	}
}

const (
	over    = `409 {"code":"SCHEDULING_CONFLICT_006","detail":"the run is Canceled"}`
	noRun   = `404 {"code":"SCHEDULING_NOTFOUND_004","detail":"no such run"}`
	notMine = `409 {"code":"SCHEDULING_CONFLICT_007","detail":"the job is not async"}`
	away    = `503 {"code":"SCHEDULING_UNAVAILABLE_003"}`
)

func newAsync(t *testing.T, o callback.Options) (*callback.Receiver, *fakeAPI) {
	t.Helper()
	api := startAPI(t)
	s, err := callback.NewSidecar(api.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Sidecar = s
	r := callback.NewReceiver(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.Shutdown(ctx)
	})
	return r, api
}

func TestAsyncRunIsAcceptedWorkedOnAndCompleted(t *testing.T) {
	r, api := newAsync(t, callback.Options{})
	step := make(chan struct{})
	url := serve(t, r.AsyncHandler(func(ctx context.Context, run *callback.Run) (string, error) {
		callback.ReportProgress(ctx, 40, "17 of 42 files")
		<-step
		return "42 files imported", nil
	}))
	mustPost(t, url, body).check(t, 202, "")
	for {
		beat := api.wait(t, "heartbeat")
		if beat.id != runID {
			t.Errorf("heartbeat of %s, want %s", beat.id, runID)
		}
		if beat.body == `{"progress":40,"message":"17 of 42 files"}` {
			break
		}
		if beat.body != `{}` {
			t.Errorf("heartbeat %s", beat.body)
		}
	}
	close(step)
	if got := api.wait(t, "complete"); got != (report{runID, "complete", `{"message":"42 files imported"}`}) {
		t.Errorf("told %+v", got)
	}
	got := mustPost(t, url, attempt(otherRunID, 2))
	got.check(t, 200, "42 files imported") // known: done at once
}

func TestAsyncFailuresAreTold(t *testing.T) {
	t.Parallel()
	boom := errors.New("the source is locked")
	tests := map[string]struct {
		do   func() (string, error)
		want string
	}{
		"a plain error":   {fails(boom), `{"message":"the source is locked","retryable":true}`},
		"a permanent one": {fails(callback.Permanent(boom)), `{"message":"the source is locked","retryable":false}`},
		"a stale token":   {fails(callback.ErrStaleToken), `{"message":"` + callback.ErrStaleToken.Error() + `","retryable":false}`},
		"with a code and a pause": {
			fails(callback.WithCode(callback.RetryAfter(boom, 1500*time.Millisecond), "SOURCE_LOCKED")),
			`{"message":"the source is locked","code":"SOURCE_LOCKED","retryable":true,"retryAfter":2}`,
		},
		"a long pause is cut to what is allowed": {
			fails(callback.RetryAfter(boom, 9000*time.Hour)),
			`{"message":"the source is locked","retryable":true,"retryAfter":2592000}`,
		},
		"a code that is none is left out": {fails(callback.WithCode(boom, "not a code")), `{"message":"the source is locked","retryable":true}`},
		"a panic":                         {func() (string, error) { panic("inside") }, `{"message":"the handler panicked: the app's log says where","retryable":true}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, api := newAsync(t, callback.Options{Logger: slog.New(slog.DiscardHandler)})
			url := serve(t, r.AsyncHandler(new(count).job(tt.do, says("done"))))
			mustPost(t, url, body).check(t, 202, "")
			if got := api.wait(t, "fail"); got.body != tt.want || got.id != runID {
				t.Errorf("told %+v, want %s", got, tt.want)
			}
			// It was forgotten before it was told, so that the retry passes.
			mustPost(t, url, attempt(otherRunID, 2)).check(t, 202, "")
			if got := api.wait(t, "complete"); got.id != otherRunID {
				t.Errorf("completed %s, want %s", got.id, otherRunID)
			}
		})
	}
}

// TestAsyncWorkEndsWithItsRun: the sidecar says that the run is over, and nothing is told after.
func TestAsyncWorkEndsWithItsRun(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"canceled": over, "unknown": noRun} {
		t.Run(name, func(t *testing.T) {
			r, api := newAsync(t, callback.Options{Logger: slog.New(slog.DiscardHandler)})
			api.script("heartbeat", `200 {"nextBefore":"2026-01-01T00:00:00Z"}`, answer) // soon
			cause := make(chan error, 1)
			url := serve(t, r.AsyncHandler(func(ctx context.Context, _ *callback.Run) (string, error) {
				callback.ReportProgress(ctx, 1, "")
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return "", ctx.Err()
			}))
			mustPost(t, url, body).check(t, 202, "")
			if err := receive(t, cause, "the end of the context"); !errors.Is(err, callback.ErrRunOver) {
				t.Errorf("cause %v, want ErrRunOver", err)
			}
			if err := r.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown() = %v", err)
			}
			api.none(t, "fail")
		})
	}
}

// TestLateSuccessIsTold: the sidecar can spare a retry with it.
func TestLateSuccessIsTold(t *testing.T) {
	var log bytes.Buffer
	r, api := newAsync(t, callback.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	api.script("heartbeat", over)
	api.script("complete", over)
	url := serve(t, r.AsyncHandler(func(ctx context.Context, _ *callback.Run) (string, error) {
		<-ctx.Done()
		return "done all the same", nil
	}))
	mustPost(t, url, body).check(t, 202, "")
	api.wait(t, "complete")
	if err := r.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
	if !strings.Contains(log.String(), "the run is Canceled") {
		t.Errorf("the log does not say that the success came too late: %s", log.String())
	}
}

// TestHeartbeatThatIsNotTakenEndsNoWork: of a job that is not async, or while the sidecar is away.
func TestHeartbeatThatIsNotTakenEndsNoWork(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]string{
		"not async": {notMine}, "not a sidecar": {"404 page not found"}, "restarts": {away, "close", `200 {}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, api := newAsync(t, callback.Options{Logger: slog.New(slog.DiscardHandler)})
			api.script("heartbeat", answers...)
			end := make(chan struct{})
			url := serve(t, r.AsyncHandler(func(ctx context.Context, _ *callback.Run) (string, error) {
				select {
				case <-end:
					return "done", nil
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
			}))
			mustPost(t, url, body).check(t, 202, "")
			for range answers {
				api.wait(t, "heartbeat")
			}
			close(end)
			api.wait(t, "complete")
		})
	}
}

// TestCompletionIsRepeatedUntilItIsAnswered, and no longer.
func TestCompletionIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	api.script("complete", "close", away, "502 ", `429 {}`, `200 {}`)
	s, err := callback.NewSidecar(api.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Complete(t.Context(), runID, "done"); err != nil {
		t.Errorf("Complete() = %v", err)
	}
	for range 5 {
		if got := api.wait(t, "complete"); got.body != `{"message":"done"}` {
			t.Errorf("told %+v", got)
		}
	}
	for _, tt := range []struct {
		answer string
		over   bool
	}{{over, true}, {noRun, true}, {notMine, false}, {`400 {"code":"SCHEDULING_VALIDATION_002","detail":"message: too long"}`, false}, {"302 ", false}, {"404 nginx", false}} {
		api.script("complete", tt.answer)
		err := s.Complete(t.Context(), runID, "")
		var final *callback.APIError
		if !errors.As(err, &final) || errors.Is(err, callback.ErrRunOver) != tt.over {
			t.Errorf("Complete() answered %q = %v, want an APIError, over %v", tt.answer, err, tt.over)
		}
		if got := api.wait(t, "complete"); got.body != `{}` {
			t.Errorf("told %+v", got)
		}
		api.none(t, "complete")
	}
	api.script("complete", away)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	go func() {
		<-api.reports
		<-api.reports
		cancel(stop)
	}()
	if err := s.Complete(ctx, runID, ""); !errors.Is(err, stop) || !strings.Contains(err.Error(), "SCHEDULING_UNAVAILABLE_003") {
		t.Errorf("Complete() after its context = %v, want why, and the last answer", err)
	}
}

func TestSidecarIsAskedForRunsOnly(t *testing.T) {
	s, err := callback.NewSidecar("", nil)
	if err != nil {
		t.Fatal(err)
	}
	var final *callback.APIError
	if err := s.Complete(t.Context(), "../jobs", ""); !errors.As(err, &final) || errors.Is(err, callback.ErrRunOver) {
		t.Errorf("Complete() of no run = %v, want an APIError", err)
	}
	for _, address := range []string{"127.0.0.1:9471", "ftp://127.0.0.1", "http://", "http://x?y", "://"} {
		if _, err := callback.NewSidecar(address, nil); err == nil || !strings.Contains(err.Error(), callback.DefaultSidecar) {
			t.Errorf("NewSidecar(%q) = %v, want an error with an example", address, err)
		}
	}
}

func TestHeartbeatTellsTheLimits(t *testing.T) {
	api := startAPI(t)
	s, err := callback.NewSidecar(api.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	api.script("heartbeat", `200 {"state":"Running","timeoutAt":"2026-10-04T23:00:00Z","nextBefore":"2026-10-04T22:02:00.5Z"}`, away, `200 nonsense`)
	got, err := s.Heartbeat(t.Context(), runID, &callback.Progress{Percent: 400, Message: strings.Repeat("ü", 200)})
	want := callback.Beat{TimeoutAt: time.Date(2026, 10, 4, 23, 0, 0, 0, time.UTC), NextBefore: time.Date(2026, 10, 4, 22, 2, 0, 5e8, time.UTC)}
	if err != nil || got != want {
		t.Errorf("Heartbeat() = %v, %v, want %v", got, err, want)
	}
	if told := api.wait(t, "heartbeat"); told.body != `{"progress":100,"message":"`+strings.Repeat("ü", 128)+`"}` {
		t.Errorf("told %+v", told)
	}
	for range 2 {
		var final *callback.APIError
		if _, err := s.Heartbeat(t.Context(), runID, nil); err == nil || errors.As(err, &final) {
			t.Errorf("Heartbeat() = %v, want an error after which the next one may fare better", err)
		}
	}
}

// TestSecondAsyncDeliveryWaitsAfterItsAnswer, and is completed with the first one's work.
func TestSecondAsyncDeliveryWaitsAfterItsAnswer(t *testing.T) {
	store := newWatched()
	r, api := newAsync(t, callback.Options{Store: store})
	end := make(chan error)
	var work count
	url := serve(t, r.AsyncHandler(func(context.Context, *callback.Run) (string, error) {
		work.calls.Add(1)
		return "done once", <-end
	}))
	mustPost(t, url, body).check(t, 202, "")
	mustPost(t, url, attempt(otherRunID, 2)).check(t, 202, "")
	receive(t, store.waits, "the second waits")
	close(end)
	ended := map[string]bool{api.wait(t, "complete").id: true, api.wait(t, "complete").id: true}
	if !ended[runID] || !ended[otherRunID] {
		t.Errorf("completed %v, want both", ended)
	}
	work.check(t, 1)
}

func TestShutdown(t *testing.T) {
	t.Run("waits for the work and its report", func(t *testing.T) {
		r, api := newAsync(t, callback.Options{})
		end := make(chan struct{})
		h := r.AsyncHandler(func(context.Context, *callback.Run) (string, error) { <-end; return "done", nil })
		url := serve(t, h)
		mustPost(t, url, body).check(t, 202, "")
		ended := make(chan error, 1)
		go func() { ended <- r.Shutdown(t.Context()) }()
		// Refused as soon as the shutdown has begun.
		for {
			got := mustPost(t, url, strings.Replace(body, occurrence, strings.Repeat("9", 32), 1))
			if got.status == 503 {
				got.check(t, 503, "shutting down")
				break
			}
		}
		close(end)
		if err := receive(t, ended, "the end of Shutdown"); err != nil {
			t.Errorf("Shutdown() = %v", err)
		}
		api.wait(t, "complete")
		if err := r.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown() once more = %v", err)
		}
	})
	t.Run("cuts work short that takes too long", func(t *testing.T) {
		r, api := newAsync(t, callback.Options{})
		url := serve(t, r.AsyncHandler(func(ctx context.Context, _ *callback.Run) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}))
		mustPost(t, url, body).check(t, 202, "")
		ctx, cancel := context.WithCancelCause(t.Context())
		late := errors.New("grace over")
		cancel(late)
		if err := r.Shutdown(ctx); !errors.Is(err, late) {
			t.Errorf("Shutdown() = %v, want %v", err, late)
		}
		if got := api.wait(t, "fail"); got.body != `{"message":"the app is shutting down","retryable":true}` {
			t.Errorf("told %+v", got)
		}
	})
	t.Run("without any work ends at once", func(t *testing.T) {
		if err := callback.NewReceiver(callback.Options{}).Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown() = %v", err)
		}
	})
}

// roundTrip is a sidecar within a bubble, where no socket may be.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHeartbeatsComeInTime: a third of the allowed silence, every five seconds otherwise, soon
// again after one that failed, and at the timeout, so that the work ends with its run. All
// goroutines end with it: a bubble that one outlives fails.
func TestHeartbeatsComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339Nano) }
		var beats []time.Duration
		answers := []string{
			`200 {"nextBefore":"` + at(3*time.Second) + `"}`,
			`200 {}`,
			away,
			`200 {"timeoutAt":"` + at(8*time.Second) + `","nextBefore":"` + at(time.Minute) + `"}`,
			over,
		}
		s, err := callback.NewSidecar("", &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/heartbeat") {
				t.Errorf("asked for %s", r.URL)
			}
			w := httptest.NewRecorder()
			write(w, answers[len(beats)])
			beats = append(beats, time.Since(start))
			return w.Result(), nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		r := callback.NewReceiver(callback.Options{Sidecar: s, Logger: slog.New(slog.DiscardHandler)})
		var cause error
		h := r.AsyncHandler(func(ctx context.Context, _ *callback.Run) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", ctx.Err()
		})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		req.Header = jsonHeader()
		h.ServeHTTP(httptest.NewRecorder(), req)
		if err := r.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown() = %v", err)
		}
		want := []time.Duration{0, time.Second, 6 * time.Second, 7 * time.Second, 8 * time.Second}
		if fmt.Sprint(beats) != fmt.Sprint(want) {
			t.Errorf("heartbeats after %v, want after %v", beats, want)
		}
		if !errors.Is(cause, callback.ErrRunOver) {
			t.Errorf("the work ended because of %v, want ErrRunOver", cause)
		}
	})
}
