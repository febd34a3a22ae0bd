package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
)

// hostile is one way in which an app goes wrong, and what its runs have to become.
type hostile struct {
	name    string
	options app.Options
	behave  app.Behavior
	also    func(ctx context.Context, a *app.App) // goes on beside it
	absent  time.Duration                         // nothing listens for so long
	ends    func(r api.Run) bool                  // whether an attempt may end like that
}

func (h hostile) String() string { return h.name }

func succeeds(r api.Run) bool { return r.State == "Succeeded" && r.Status == 200 }

func unknown(r api.Run) bool {
	return r.State == "Failed" && r.Unknown && r.Status == 0 && r.Code == "SCHEDULING_UNEXPECTED_001"
}

func timesOut(r api.Run) bool {
	return r.State == "Failed" && r.Unknown && r.Status == 0 && r.Code == "SCHEDULING_TIMEOUT_001"
}

func neverSent(r api.Run) bool { return r.State == "Failed" && r.FiredAt.IsZero() && !r.Unknown }

// hostiles are the servers of issue 6, must show 1.
var hostiles = []hostile{
	{name: "closes", behave: app.ReadThenClose(), ends: unknown},                                        // R132
	{name: "resets", behave: app.Reset(), ends: unknown},                                                // R132
	{name: "never", behave: app.Never(), ends: timesOut},                                                // R133
	{name: "late", behave: app.After(1500*time.Millisecond, app.Status(200)), ends: timesOut},           // R133
	{name: "huge", behave: app.Huge(200, 100<<20, make(chan int64, 1000)), ends: succeeds},              // 100 MB
	{name: "trickles", behave: app.Trickle(200, strings.Repeat("x", 100), time.Second), ends: succeeds}, // the status decides
	{
		name: "idle50", behave: app.Status(200), // R134
		also: func(ctx context.Context, a *app.App) { a.CloseIdleEvery(ctx, 50*time.Millisecond) },
		ends: func(r api.Run) bool { return succeeds(r) || unknown(r) },
	},
	{name: "idle1s", options: app.Options{KeepIdle: time.Second}, behave: app.Status(200), ends: succeeds}, // R134
	{
		name: "comes", behave: app.Status(200), absent: 5 * time.Second, // R139
		ends: func(r api.Run) bool { return succeeds(r) || neverSent(r) },
	},
}

// TestRequestsAreAttempts: whatever the app does, the requests that it counts are the attempts that the
// engine records, one for one, but for those recorded as never sent. Issue 6, must show 2; each server
// with a job that retries, one that retries only what the app surely did not do (R132), and one that does not (R133:
// no retry means one request).
func TestRequestsAreAttempts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var jobs strings.Builder
	jobs.WriteString("defaults: {timeout: 1s, historyLimit: 1000, overlap: parallel}\njobs:\n")
	apps := make(map[string]*app.App)
	for _, h := range hostiles {
		address, err := app.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		o := h.options
		o.Address = address
		start := func() {
			a, err := app.Start(o)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(a.Close)
			a.Script("*", h.behave)
			apps[h.name] = a
			if h.also != nil {
				go h.also(ctx, a)
			}
		}
		if h.absent == 0 {
			start()
		} else {
			timer := make(chan struct{})
			time.AfterFunc(h.absent, func() { start(); close(timer) })
			defer func() { <-timer }()
		}
		fmt.Fprintf(&jobs, "- {name: %[1]s.retried, path: /retried, target: 'http://%[2]s', schedule: rate 1s, retry: {maxRetries: 2, delay: 300ms}}\n"+
			"- {name: %[1]s.careful, path: /careful, target: 'http://%[2]s', schedule: rate 1s, retry: {maxRetries: 2, delay: 300ms, unknown: false}}\n"+
			"- {name: %[1]s.once, path: /once, target: 'http://%[2]s', schedule: rate 1s}\n", h.name, address)
	}
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(jobs.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	beside := cluster.StartApp(t) // the default target, which the probe asks
	s := cluster.Start(t, beside, cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": file, "TARGET": beside.URL(), "MAX_CONCURRENT_RUNS": "200",
	})
	<-time.After(10 * time.Second) // of callbacks, retries among them
	if status, body := s.Post("/v1/pause"); status != http.StatusOK {
		t.Fatalf("pause = %d %s", status, body)
	}
	var runs []api.Run
	cluster.Eventually(t, 20*time.Second, "every run and retry to have ended", func() bool {
		runs = allRuns(t, s)
		for _, r := range runs {
			if r.State == "Queued" || r.State == "Pending" || r.State == "Running" {
				return false
			}
		}
		return len(runs) > 0
	})
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) { checkRequestsAreAttempts(t, h, runs, apps[h.name].Calls()) })
	}
}

func checkRequestsAreAttempts(t *testing.T, h hostile, runs []api.Run, calls []app.Call) {
	t.Helper()
	requests := make(map[string]int)
	for _, c := range calls {
		requests[c.Body.ID]++
	}
	recorded, sent := make(map[string]bool), 0
	attempts := make(map[string]int)     // of each occurrence
	doubtful := make(map[string]api.Run) // attempts of careful jobs of which nobody knows
	for _, r := range runs {
		if strings.HasSuffix(r.Job, ".careful") && r.Unknown {
			doubtful[r.Occurrence] = r
		}
	}
	for _, r := range runs {
		if !strings.HasPrefix(r.Job, h.name+".") {
			continue
		}
		recorded[r.ID] = true
		attempts[r.Occurrence]++
		want := 1
		if r.FiredAt.IsZero() {
			want = 0
		} else {
			sent++
		}
		// The app hung up as the request arrived, and the kernel cannot say more.
		unread := h.name == "idle50" && unknown(r) && requests[r.ID] == 0
		if requests[r.ID] != want && !unread {
			t.Errorf("run %s (%s, attempt %d, %s: %s) arrived %d times, want %d", r.ID, r.Job, r.Attempt, r.State, r.Message, requests[r.ID], want)
		}
		if !h.ends(r) {
			t.Errorf("an attempt ended as %s, status %d, code %s, unknown %t, fired %s: %s", r.State, r.Status, r.Code, r.Unknown, r.FiredAt, r.Message)
		}
		if d, ok := doubtful[r.Occurrence]; ok && r.Attempt > d.Attempt {
			t.Errorf("attempt %d of %s was repeated, although the app may have done the work", d.Attempt, r.Job)
		}
		if strings.HasSuffix(r.Job, ".once") && r.Attempt > 1 {
			t.Errorf("%s, which has no retry, made attempt %d", r.Job, r.Attempt)
		}
	}
	for id, n := range requests {
		if !recorded[id] {
			t.Errorf("run %s arrived %d times and is not recorded", id, n)
		}
	}
	for occurrence, n := range attempts {
		if n > 3 {
			t.Errorf("occurrence %s had %d attempts, want at most 3", occurrence, n) // R138
		}
	}
	if len(recorded) < 10 {
		t.Errorf("%d attempts recorded: too few to prove anything", len(recorded))
	}
	t.Logf("%d attempts recorded, %d of them sent, %d requests counted", len(recorded), sent, len(calls))
}

func allRuns(t *testing.T, s *cluster.Sidecar) []api.Run {
	t.Helper()
	var all []api.Run
	for _, h := range hostiles {
		for _, kind := range []string{"retried", "careful", "once"} {
			status, body := getAPI(s, "/v1/runs?limit=1000&job="+h.name+"."+kind)
			var list api.RunList
			if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
				t.Fatalf("runs of %s.%s: %d %v", h.name, kind, status, err)
			}
			all = append(all, list.Runs...)
		}
	}
	return all
}

// TestAppThatComesAfter40s: the pod is restarted and its app takes 40 s to listen; an instant that was due
// meanwhile is delivered as soon as it does, in one run, with its own time, and nothing is counted as a
// failure. R129, R139, R140; issue 6, must show 1.
func TestAppThatComesAfter40s(t *testing.T) {
	t.Parallel()
	address, err := app.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.yaml")
	due := time.Now().UTC().Add(20 * time.Second).Truncate(time.Second)
	if err := os.WriteFile(file, []byte("jobs:\n- {name: early, path: /early, schedule: once "+due.Format(time.RFC3339)+", retry: {maxRetries: 3}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": file, "LEDGER_FILE": filepath.Join(dir, "ledger.json"), "TARGET": "http://" + address,
	}
	// The life before, in which the job was first seen: nothing fires for an instant before that.
	before, err := app.Start(app.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	s := cluster.Start(t, before, settings)
	s.WaitLog(t, "job definitions changed", 10*time.Second)
	s.Stop(t, 5*time.Second)
	before.Close()

	s = cluster.Start(t, nil, settings)
	<-time.After(40 * time.Second)
	if s.Metric("leasecron_leader") != "0" {
		t.Error("leads without an app")
	}
	came := time.Now()
	a, err := app.Start(app.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	call := waitCalls(t, a, 1)[0]
	if late := call.At.Sub(came); late > 3*time.Second {
		t.Errorf("delivered %s after the app came", late)
	}
	if !call.Body.ScheduledAt.Equal(due) || call.Body.Attempt != 1 {
		t.Errorf("delivered %+v, want the instant %s, attempt 1", call.Body, due)
	}
	cluster.Eventually(t, 10*time.Second, "the run to be counted", func() bool {
		return s.Metric(`leasecron_runs_total{job_name="early",outcome="succeeded"}`) == "1"
	})
	for series, want := range map[string]string{
		`leasecron_runs_total{job_name="early",outcome="failed"}`: "0", `leasecron_retries_total`: "0",
	} {
		if got := s.Metric(series); got != want {
			t.Errorf("%s is %s, want %s", series, got, want)
		}
	}
	if n := len(a.Calls()); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
	// R130: an outage is a line when it begins and one when it ends, not one for each second.
	if n := strings.Count(s.Log(), "became reachable") + strings.Count(s.Log(), "became unreachable"); n != 1 {
		t.Errorf("the log has %d lines about the app:\n%s", n, s.Log())
	}
	if n := strings.Count(s.Log(), "\n"); n > 12 {
		t.Errorf("40 s without an app made %d lines of log:\n%s", n, s.Log())
	}
}

// getAPI reads a path of a sidecar's API; status 0 says that no answer came.
func getAPI(s *cluster.Sidecar, path string) (status int, body string) {
	client := &http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + s.APIAddress() + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return resp.StatusCode, string(text)
}
