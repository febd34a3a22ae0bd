// Package callback_test runs each example app beside a real sidecar.
package callback_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/spawn"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// needs names a program that a test cannot do without.
func needs(t *testing.T, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: install %s to run the tests of this example (CONTRIBUTING.md lists what the tests need)", name, install)
	}
	return path
}

// TestExamples: each app keeps the contract of docs/callback.md beside the real sidecar, with
// jobs.yaml as it is.
func TestExamples(t *testing.T) {
	for name, command := range map[string]func(t *testing.T) []string{"go": goApp, "python": pythonApp, "node": nodeApp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, command(t))
			p.retriesUntilItSucceeds(t)
			p.takesSignedRequestsOfTheLeaderOnly(t)
			p.doesOnceWhatComesAtOnce(t)
			p.completesLater(t)
			p.endsInGoodOrder(t)
		})
	}
}

func goApp(t *testing.T) []string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "example")
	if out, err := exec.Command("go", "build", "-o", program, "./go").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	return []string{program}
}

func pythonApp(t *testing.T) []string {
	t.Helper()
	return []string{needs(t, "python3", "Python 3.9 or later"), "python/app.py"}
}

func nodeApp(t *testing.T) []string {
	t.Helper()
	return []string{needs(t, "node", "Node.js 20 or later"), "node/app.js"}
}

// pair is an example app and a sidecar beside it.
type pair struct {
	app     *example
	sidecar *cluster.Sidecar
	key     []byte
	first   run // the successful run of report
}

func startPair(t *testing.T, command []string) *pair {
	t.Helper()
	dir := t.TempDir()
	p := &pair{key: bytes.Repeat([]byte{7}, 32)}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("whsec_"+base64.StdEncoding.EncodeToString(p.key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := app.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p.app = startExample(t, append(command, "--listen", "127.0.0.1:0", "--sidecar", "http://"+api, "--secrets", secret))
	p.sidecar = cluster.Start(t, nil, cluster.Settings{
		"ELECTION": "standalone", "LEDGER": "memory", "JOBS_FILE": "jobs.yaml", "TARGET": p.app.url, "API_LISTEN": api,
		"SIGNING_SECRET_FILES": secret,
	})
	return p
}

// run is a run as the API shows it.
type run struct {
	ID, Occurrence, Job, State, Cause, Message string
	ScheduledAt                                time.Time
	Attempt, Status                            int
	Term                                       int64
	Progress                                   *struct {
		Percent *int
		Message string
	}
}

// runs are the runs of a job.
func (p *pair) runs(t *testing.T, job string) []run {
	t.Helper()
	resp, err := http.Get("http://" + p.sidecar.APIAddress() + "/v1/runs?job=" + job)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct{ Runs []run }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Runs
}

// enqueue starts a run and returns its occurrence.
func (p *pair) enqueue(t *testing.T, job string) (occurrence string) {
	t.Helper()
	var id string
	cluster.Eventually(t, 20*time.Second, "a leader that knows "+job, func() (ok bool) {
		var err error
		id, err = p.sidecar.Enqueue(job)
		return err == nil
	})
	cluster.Eventually(t, 20*time.Second, "the run "+id+" of "+job, func() bool {
		for _, r := range p.runs(t, job) {
			if r.ID == id {
				occurrence = r.Occurrence
			}
		}
		return occurrence != ""
	})
	return occurrence
}

// await waits until an attempt of an occurrence is as it should be.
func (p *pair) await(t *testing.T, job, occurrence, what string, ok func(run) bool) (found run) {
	t.Helper()
	cluster.Eventually(t, 30*time.Second, what, func() bool {
		for _, r := range p.runs(t, job) {
			if r.Occurrence == occurrence && ok(r) {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// retriesUntilItSucceeds: the first attempt fails and is forgotten, the second one passes.
func (p *pair) retriesUntilItSucceeds(t *testing.T) {
	t.Helper()
	occurrence := p.enqueue(t, "report")
	failed := p.await(t, "report", occurrence, "the first attempt fails", func(r run) bool { return r.State == "Failed" })
	if failed.Attempt != 1 || failed.Status != 500 || failed.Message != "the printer is out of paper" {
		t.Errorf("the first attempt is %+v", failed)
	}
	p.first = p.await(t, "report", occurrence, "an attempt succeeds", func(r run) bool { return r.State == "Succeeded" })
	if p.first.Attempt != 2 || !strings.HasPrefix(p.first.Message, "pdf of account 9007199254740993 for 20") {
		t.Errorf("the second attempt is %+v, want the account digit by digit", p.first)
	}
	if n := p.app.workedAtLeast(t, 2, "report", occurrence); n != 2 {
		t.Errorf("the app worked %d times on the occurrence, want 2", n)
	}
}

// takesSignedRequestsOfTheLeaderOnly sends requests as somebody else.
func (p *pair) takesSignedRequestsOfTheLeaderOnly(t *testing.T) {
	t.Helper()
	known, unknown := body(p.first.Occurrence, p.first.Term), body(strings.Repeat("0", 32), p.first.Term)
	other := bytes.Repeat([]byte{8}, 32)
	large := strings.Replace(unknown, "pdf", strings.Repeat("x", 600<<10), 1)
	now := time.Now()
	for _, step := range []struct {
		what   string
		body   string
		header http.Header
		status int
		says   string
	}{
		{"a delivery of what is done", known, sign(p.key, now, known), 200, p.first.Message},
		{"one that is not signed", unknown, sign(nil, now, unknown), 401, ""},
		{"one signed with another secret", unknown, sign(other, now, unknown), 401, "secret"},
		{"one signed for another body", unknown, sign(p.key, now, known), 401, ""},
		{"one that was signed an hour ago", unknown, sign(p.key, now.Add(-time.Hour), unknown), 401, "from now"},
		{"one of an overtaken leader", body(strings.Repeat("0", 32), 1), sign(p.key, now, body(strings.Repeat("0", 32), 1)), 409, "leader"},
		{"a signed one that is no callback", `{"a":1}`, sign(p.key, now, `{"a":1}`), 400, ""},
		{"a signed one that is not JSON", "hello", sign(p.key, now, "hello"), 400, ""},
		{"one signed for another run", unknown, with(sign(p.key, now, unknown), "Webhook-Id", strings.Repeat("2", 32)), 401, ""},
		{"one of another run than was signed", strings.Replace(unknown, `"id":"0`, `"id":"1`, 1), sign(p.key, now, strings.Replace(unknown, `"id":"0`, `"id":"1`, 1)), 400, ""},
		{"one of another content type", unknown, with(sign(p.key, now, unknown), "Content-Type", "text/plain"), 415, ""},
		{"a large one", large, sign(p.key, now, large), 413, ""},
		{"one with a number that is a text", strings.Replace(unknown, `"attempt":3`, `"attempt":"3"`, 1), sign(p.key, now, strings.Replace(unknown, `"attempt":3`, `"attempt":"3"`, 1)), 400, ""},
		{"one with data that is a list", strings.Replace(unknown, `{"format":"pdf","account":1}`, "[1]", 1), sign(p.key, now, strings.Replace(unknown, `{"format":"pdf","account":1}`, "[1]", 1)), 400, ""},
	} {
		if status, text := p.post(t, step.header, step.body); status != step.status || !strings.Contains(text, step.says) {
			t.Errorf("%s: answered %d %q, want %d and %q", step.what, status, text, step.status, step.says)
		}
	}
	if n := p.app.workedAtLeast(t, 2, "report", p.first.Occurrence); n != 2 {
		t.Errorf("the app worked %d times on what was done, want 2", n)
	}
	if n := p.app.worked("report", strings.Repeat("0", 32)); n != 0 {
		t.Errorf("the app worked %d times on what was refused", n)
	}
}

func with(h http.Header, name, value string) http.Header {
	h.Set(name, value)
	return h
}

// doesOnceWhatComesAtOnce: deliveries of one occurrence at the same time get one answer.
func (p *pair) doesOnceWhatComesAtOnce(t *testing.T) {
	t.Helper()
	occurrence := strings.Repeat("1", 32)
	text := body(occurrence, p.first.Term)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if status, says := p.post(t, sign(p.key, time.Now(), text), text); status != 200 || says != "pdf of account 1 for 2026-10-04T22:00:00Z" {
				t.Errorf("one of several deliveries was answered %d %q", status, says)
			}
		})
	}
	all.Wait()
	if n := p.app.workedAtLeast(t, 1, "report", occurrence); n != 1 {
		t.Errorf("the app worked %d times on the occurrence, want 1", n)
	}
}

// body is a callback of the job report.
func body(occurrence string, term int64) string {
	return fmt.Sprintf(`{"id":"%032x","occurrence":"%s","job":"report","trigger":null,"cause":"retry","scheduledAt":"2026-10-04T22:00:00Z",`+
		`"coveredUntil":null,"firedAt":"2026-10-04T22:00:00.000412Z","attempt":3,"retryOf":null,"originalOccurrence":null,"term":%d,`+
		`"version":1,"data":{"format":"pdf","account":1}}`, 77, occurrence, term)
}

// post sends a request to the app; status 0 says that no answer came.
func (p *pair) post(t *testing.T, header http.Header, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.app.url+"/jobs/report", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// sign makes the headers of a request; without a key it is not signed.
func sign(key []byte, at time.Time, body string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if key == nil {
		return h
	}
	id, stamp := fmt.Sprintf("%032x", 77), strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

// completesLater: the app answers 202, reports progress, and completes the run.
func (p *pair) completesLater(t *testing.T) {
	t.Helper()
	occurrence := p.enqueue(t, "import")
	running := p.await(t, "import", occurrence, "progress", func(r run) bool {
		return r.Progress != nil && r.Progress.Percent != nil && *r.Progress.Percent > 0
	})
	if running.State != "Running" || !strings.HasSuffix(running.Progress.Message, " of 5 files") {
		t.Errorf("the run is %+v, progress %+v", running, running.Progress)
	}
	done := p.await(t, "import", occurrence, "the end of the run", func(r run) bool { return r.State != "Running" })
	if done.State != "Succeeded" || done.Attempt != 1 || done.Message != "5 files imported" {
		t.Errorf("the run is %+v", done)
	}
	if n := p.app.workedAtLeast(t, 1, "import", occurrence); n != 1 {
		t.Errorf("the app worked %d times on the occurrence, want 1", n)
	}
}

// endsInGoodOrder: an app that is stopped says so of the run that it works on.
func (p *pair) endsInGoodOrder(t *testing.T) {
	t.Helper()
	occurrence := p.enqueue(t, "import")
	p.await(t, "import", occurrence, "progress", func(r run) bool { return r.Progress != nil })
	if err := p.app.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := p.await(t, "import", occurrence, "the end of the run", func(r run) bool { return r.State != "Running" })
	switch {
	case ended.State == "Succeeded" && ended.Message == "5 files imported": // there was time to finish
	case ended.State == "Failed" && ended.Status != 500 && ended.Message != "":
	default:
		t.Errorf("the run is %+v, want it finished, or failed with a reason", ended)
	}
	select {
	case <-p.app.exited:
	case <-time.After(30 * time.Second):
		t.Error("the app still runs 30 s after SIGTERM")
	}
}

// example is the process of an app.
type example struct {
	cmd    *exec.Cmd
	url    string
	exited chan struct{}

	mu  sync.Mutex
	out []string
}

// startExample returns when the app listens.
func startExample(t *testing.T, command []string) *example {
	t.Helper()
	e := &example{cmd: exec.Command(command[0], command[1:]...), exited: make(chan struct{})}
	e.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "PYTHONDONTWRITEBYTECODE=1", "http_proxy=http://127.0.0.1:9"}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.cmd.Stderr = e.cmd.Stdout
	if err := spawn.Start(e.cmd); err != nil {
		t.Fatal(err)
	}
	go e.read(out)
	t.Cleanup(func() {
		_ = e.cmd.Process.Kill()
		<-e.exited
		if t.Failed() {
			t.Logf("the app printed:\n%s", strings.Join(e.lines(), "\n"))
		}
	})
	cluster.Eventually(t, 20*time.Second, "the app listens", func() bool {
		for _, line := range e.lines() {
			if url, ok := strings.CutPrefix(line, "listening on "); ok {
				e.url = url
			}
		}
		return e.url != ""
	})
	return e
}

func (e *example) read(r io.Reader) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		e.mu.Lock()
		e.out = append(e.out, scanner.Text())
		e.mu.Unlock()
	}
	_ = e.cmd.Wait()
	close(e.exited)
}

func (e *example) lines() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.out...)
}

// workedAtLeast is worked once that is what is wanted at least: the app prints beside its answers, and
// what it prints takes its own way here.
func (e *example) workedAtLeast(t *testing.T, want int, job, occurrence string) int {
	t.Helper()
	cluster.Eventually(t, 30*time.Second, "the app prints its work", func() bool { return e.worked(job, occurrence) >= want })
	return e.worked(job, occurrence)
}

// worked is how often the app began to work on an occurrence.
func (e *example) worked(job, occurrence string) int {
	n := 0
	for _, line := range e.lines() {
		if strings.HasPrefix(line, "work "+job+" occurrence="+occurrence) {
			n++
		}
	}
	return n
}
