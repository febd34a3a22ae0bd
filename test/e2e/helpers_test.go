package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/callback"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
)

// helped is an app made with package callback, and a sidecar beside it.
type helped struct {
	*cluster.Sidecar
	receiver *callback.Receiver
	settings cluster.Settings

	mu     sync.Mutex
	worked map[string]int // by occurrence
}

// startHelped starts the app, whose work is given by path, and a sidecar with the jobs given.
func startHelped(t *testing.T, jobs string, sync, async map[string]callback.Func) *helped {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(file, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := app.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := callback.NewSidecar("http://"+api, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &helped{worked: make(map[string]int)}
	h.receiver = callback.NewReceiver(callback.Options{Sidecar: sidecar, Fence: callback.NewMemoryFence(), Logger: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	for path, do := range sync {
		mux.Handle("POST "+path, h.receiver.Handler(h.counted(do)))
	}
	for path, do := range async {
		mux.Handle("POST "+path, h.receiver.AsyncHandler(h.counted(do)))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.receiver.Shutdown(ctx)
		server.Close()
	})
	h.settings = cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": file, "LEDGER_FILE": filepath.Join(dir, "ledger.json"), "TARGET": server.URL,
		"API_LISTEN": api, "!POD_UID": "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
	}
	h.Sidecar = cluster.Start(t, nil, h.settings)
	return h
}

func (h *helped) counted(do callback.Func) callback.Func {
	return func(ctx context.Context, run *callback.Run) (string, error) {
		h.mu.Lock()
		h.worked[run.Occurrence]++
		h.mu.Unlock()
		return do(ctx, run)
	}
}

// shownRun is what the tests read of a run.
type shownRun struct {
	ID, Occurrence, State, Code, Message, AppCode string
	Attempt                                       int
	Unknown, Async                                bool
	FiredAt, EndedAt                              time.Time
}

func (h *helped) runs(t *testing.T, job string) []shownRun {
	t.Helper()
	resp, err := http.Get("http://" + h.APIAddress() + "/v1/runs?job=" + job)
	if err != nil {
		return nil // it restarts
	}
	defer resp.Body.Close()
	var list struct{ Runs []shownRun }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Runs
}

func (h *helped) enqueue(t *testing.T, job string) (id string) {
	t.Helper()
	cluster.Eventually(t, 20*time.Second, "a leader that knows "+job, func() (ok bool) {
		var err error
		id, err = h.Enqueue(job)
		return err == nil
	})
	return id
}

// await waits for a run of a job.
func (h *helped) await(t *testing.T, job, what string, ok func(shownRun) bool) (found shownRun) {
	t.Helper()
	cluster.Eventually(t, 30*time.Second, what, func() bool {
		for _, r := range h.runs(t, job) {
			if ok(r) {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

func (h *helped) awaitEnd(t *testing.T, job, id string) shownRun {
	t.Helper()
	return h.await(t, job, "the end of run "+id, func(r shownRun) bool { return r.ID == id && !r.EndedAt.IsZero() })
}

func (h *helped) checkWorked(t *testing.T, occurrence string, want int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.worked[occurrence]; got != want {
		t.Errorf("the app worked %d times on occurrence %s, want %d", got, occurrence, want)
	}
}

// value waits for what a handler tells.
func value[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("waited 30 s in vain: %s", what)
		panic("unreachable")
	}
}

// TestWorkThatOutlivesItsTimeoutIsDoneOnce: the app works on although the sidecar has closed the
// connection; the retry waits for that work and gets its answer. R132.
func TestWorkThatOutlivesItsTimeoutIsDoneOnce(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	h := startHelped(t, `
jobs:
  - {name: slow, path: /slow, schedule: manual, timeout: 1s, retry: {maxRetries: 5, delay: 1s}}
`, map[string]callback.Func{"/slow": func(context.Context, *callback.Run) (string, error) { <-end; return "42 rows", nil }}, nil)
	first := h.enqueue(t, "slow")
	if r := h.awaitEnd(t, "slow", first); r.State != "Failed" || r.Code != "SCHEDULING_TIMEOUT_001" || !r.Unknown {
		t.Errorf("the first attempt is %+v, want a timeout of unknown outcome", r)
	}
	h.await(t, "slow", "a retry under way", func(r shownRun) bool { return r.Attempt == 2 && !r.FiredAt.IsZero() })
	close(end)
	r := h.await(t, "slow", "an attempt that succeeds", func(r shownRun) bool { return r.State == "Succeeded" })
	if r.Message != "42 rows" {
		t.Errorf("the successful attempt is %+v", r)
	}
	h.checkWorked(t, r.Occurrence, 1)
}

// TestAsyncFailureSaysWhetherToRetry: what the error of the work says reaches the record.
func TestAsyncFailureSaysWhetherToRetry(t *testing.T) {
	t.Parallel()
	locked := errors.New("the source is locked")
	h := startHelped(t, `
defaults: {timeout: 1m, retry: {maxRetries: 3, delay: 1s}}
jobs:
  - {name: final, path: /final, schedule: manual, async: true}
  - {name: flaky, path: /flaky, schedule: manual, async: true}
`, nil, map[string]callback.Func{
		"/final": func(context.Context, *callback.Run) (string, error) {
			return "", callback.WithCode(callback.Permanent(locked), "SOURCE_GONE")
		},
		"/flaky": func(_ context.Context, run *callback.Run) (string, error) {
			if run.Attempt == 1 {
				return "", callback.RetryAfter(locked, 3*time.Second)
			}
			return "42 rows", nil
		},
	})
	final, flaky := h.enqueue(t, "final"), h.enqueue(t, "flaky")
	if r := h.awaitEnd(t, "final", final); r.State != "Failed" || r.AppCode != "SOURCE_GONE" || r.Message != locked.Error() {
		t.Errorf("the permanent failure is %+v", r)
	}
	failed := h.awaitEnd(t, "flaky", flaky)
	if failed.State != "Failed" || failed.Message != locked.Error() {
		t.Errorf("the first attempt is %+v", failed)
	}
	done := h.await(t, "flaky", "an attempt that succeeds", func(r shownRun) bool { return r.State == "Succeeded" })
	if done.Attempt != 2 || done.FiredAt.Sub(failed.EndedAt) < 3*time.Second {
		t.Errorf("attempt %d came %s after the failure, want the second one, and no sooner than 3 s", done.Attempt, done.FiredAt.Sub(failed.EndedAt))
	}
	h.checkWorked(t, done.Occurrence, 2)
	if runs := h.runs(t, "final"); len(runs) != 1 {
		t.Errorf("the job that failed for good has the runs %+v", runs)
	}
}

// TestAsyncWorkEndsWithItsRun: at its timeout, and when another run replaces it.
func TestAsyncWorkEndsWithItsRun(t *testing.T) {
	t.Parallel()
	causes := make(chan error, 100)
	began := make(chan string, 100)
	wait := func(ctx context.Context, run *callback.Run) (string, error) {
		if run.Job == "newest" {
			began <- run.ID
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "", ctx.Err()
	}
	h := startHelped(t, `
jobs:
  - {name: slow, path: /slow, schedule: manual, async: true, timeout: 2s}
  - {name: newest, path: /newest, schedule: "*/4 * * * * *", async: true, timeout: 1m, overlap: replace}
`, nil, map[string]callback.Func{"/slow": wait, "/newest": wait})

	slow := h.enqueue(t, "slow")
	replaced := value(t, began, "the first run of newest")
	for range 2 {
		if err := value(t, causes, "the end of both"); !errors.Is(err, callback.ErrRunOver) {
			t.Errorf("the work ended because of %v, want ErrRunOver", err)
		}
	}
	if r := h.awaitEnd(t, "slow", slow); r.State != "Failed" || r.Code != "SCHEDULING_TIMEOUT_001" {
		t.Errorf("the run that took too long is %+v", r)
	}
	if r := h.awaitEnd(t, "newest", replaced); r.State != "Canceled" {
		t.Errorf("the run that was replaced is %+v", r)
	}
	if id := value(t, began, "the work that replaces it"); id == replaced {
		t.Errorf("run %s began twice", id)
	}
}

// TestAsyncRunOutlivesItsSidecar: the sidecar dies while the app works, and ends the work's report
// when it is back in its pod; no attempt is repeated.
func TestAsyncRunOutlivesItsSidecar(t *testing.T) {
	t.Parallel()
	began, end := make(chan string, 10), make(chan struct{})
	h := startHelped(t, `
jobs:
  - {name: import, path: /import, schedule: manual, async: true, timeout: 2m, heartbeatTimeout: 30s, recovery: rerun, retry: {maxRetries: 3}}
`, nil, map[string]callback.Func{"/import": func(ctx context.Context, run *callback.Run) (string, error) {
		callback.ReportProgress(ctx, 50, "halfway")
		began <- run.ID
		select {
		case <-end:
			return "42 files imported", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}})
	id := h.enqueue(t, "import")
	value(t, began, "the work")
	h.await(t, "import", "the record that the app has accepted it", func(r shownRun) bool { return r.ID == id && r.Async })
	h.Kill()
	close(end) // it is completed while nobody listens
	h.Sidecar = cluster.Start(t, nil, h.settings)
	r := h.awaitEnd(t, "import", id)
	if r.State != "Succeeded" || r.Message != "42 files imported" || r.Attempt != 1 {
		t.Errorf("the run is %+v", r)
	}
	h.checkWorked(t, r.Occurrence, 1)
	if runs := h.runs(t, "import"); len(runs) != 1 {
		t.Errorf("the job has the runs %+v, want one", runs)
	}
}
