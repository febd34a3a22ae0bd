package invoker_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

var sixAM = time.Date(2026, 10, 4, 22, 0, 0, 0, time.UTC)

func newClient(t *testing.T, o invoker.Options) *invoker.Client {
	t.Helper()
	c, err := invoker.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v", o, err)
	}
	t.Cleanup(c.Close)
	return c
}

func startApp(t *testing.T, o app.Options) *app.App {
	t.Helper()
	a, err := app.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := app.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// attempt is a callback to url with everything else at an ordinary value.
func attempt(url string) run.Attempt {
	return run.Attempt{
		Namespace: "team-a",
		App:       "shop",
		Run: run.Run{
			ID:          run.NewID(),
			Occurrence:  run.OccurrenceID("team-a", "shop", run.Key{Job: "reports.nightly", Trigger: "workdays"}, sixAM, ""),
			Key:         run.Key{Job: "reports.nightly", Trigger: "workdays"},
			Version:     3,
			Cause:       run.CauseSchedule,
			ScheduledAt: sixAM,
			Attempt:     1,
		},
		URL:         url,
		Method:      "POST",
		Data:        json.RawMessage(`{"format":"pdf"}`),
		Timeout:     5 * time.Second,
		FencingTerm: 12,
	}
}

// ask records the questions that an attempt asks, and answers them.
type ask struct {
	mu      sync.Mutex
	answers []error // the last one stays; none: yes
	asked   int
	first   time.Time // when it was first asked
	started []time.Time
}

func (q *ask) on(a run.Attempt) run.Attempt {
	a.MayStart = func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.asked++; q.asked == 1 {
			q.first = time.Now()
		}
		if len(q.answers) == 0 {
			return nil
		}
		return q.answers[min(q.asked, len(q.answers))-1]
	}
	a.Started = func(at time.Time) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.started = append(q.started, at)
	}
	return a
}

func (q *ask) counts() (asked, started int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked, len(q.started)
}

// firstAsked is when the first try asked whether it may start.
func (q *ask) firstAsked() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first
}

// checkOutcome compares what the planner acts on; the message must contain a piece of text.
func checkOutcome(t *testing.T, got, want run.Outcome, message string) {
	t.Helper()
	if !strings.Contains(got.Message, message) {
		t.Errorf("message = %q, want it to contain %q", got.Message, message)
	}
	if len(got.Message) > 1024 {
		t.Errorf("message has %d bytes, want at most 1024", len(got.Message))
	}
	if got.EndedAt.IsZero() {
		t.Error("EndedAt is not set")
	}
	if !got.NotSent && got.StartedAt.IsZero() {
		t.Error("StartedAt is not set although the request was sent")
	}
	got.Message, got.StartedAt, got.EndedAt = "", time.Time{}, time.Time{}
	want.Message = ""
	if got != want {
		t.Errorf("outcome:\n got %+v\nwant %+v", got, want)
	}
}

func invoke(c *invoker.Client, a run.Attempt) run.Outcome {
	return c.Invoke(context.Background(), a)
}

var (
	succeeded = run.Outcome{State: run.StateSucceeded, Status: 200}
	lost      = run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Unknown: true, Retryable: true}
	timedOut  = run.Outcome{State: run.StateFailed, Code: run.CodeTimeout, Unknown: true, Retryable: true}
	unreached = run.Outcome{State: run.StateFailed, Code: run.CodeFailed, NotSent: true, Retryable: true}
	forbidden = run.Outcome{State: run.StateFailed, Code: run.CodeFailed, NotSent: true}
	refused   = run.Outcome{State: run.StateCanceled, Code: run.CodeCanceled, NotSent: true, Refused: true}
)

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 10s in vain for %s", what)
		}
	}
}
