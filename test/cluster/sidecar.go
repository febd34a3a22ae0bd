package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/spawn"
)

// Settings are LEASECRON_ variables without the prefix, or other variables with a "!" before
// their name.
type Settings map[string]string

// Environment is what a process with these settings is given: nothing of the test's own but PATH
// and HOME, and free ports of the loopback interface unless the settings name some.
func (s Settings) Environment() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	all := Settings{"LISTEN": "127.0.0.1:0", "API_LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json"}
	maps.Copy(all, s)
	for name, value := range all {
		if bare, ok := strings.CutPrefix(name, "!"); ok {
			env = append(env, bare+"="+value)
			continue
		}
		env = append(env, "LEASECRON_"+name+"="+value)
	}
	return env
}

// Sidecar is one process. Its methods may be called concurrently.
type Sidecar struct {
	App *app.App // beside it

	cmd    *exec.Cmd
	exited chan struct{}

	mu  sync.Mutex
	log []LogLine
	raw bytes.Buffer
}

// LogLine is one line of a sidecar's log.
type LogLine map[string]any

// Launch starts a process. It does not wait until that serves, and nobody ends it but the caller,
// or the end of the calling program.
func Launch(a *app.App, settings Settings) (*Sidecar, error) {
	s := &Sidecar{App: a, exited: make(chan struct{})}
	s.cmd = exec.Command(program, "run")
	s.cmd.Env = settings.Environment()
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := spawn.Start(s.cmd); err != nil {
		return nil, fmt.Errorf("start a sidecar: %w", err)
	}
	go s.read(stderr)
	return s, nil
}

// Start starts a process, returns when it serves, and ends it with the test.
func Start(t testing.TB, a *app.App, settings Settings) *Sidecar {
	t.Helper()
	s, err := Launch(a, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", cmp.Or(settings["NODE_ID"], "the sidecar"), s.Log())
		}
	})
	s.WaitLog(t, started, 20*time.Second)
	return s
}

// StartApp starts an app that ends with the test.
func StartApp(t testing.TB) *app.App {
	t.Helper()
	a, err := app.Start(app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func (s *Sidecar) read(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line LogLine
		_ = json.Unmarshal(scanner.Bytes(), &line)
		s.mu.Lock()
		s.log = append(s.log, line)
		s.raw.Write(append(scanner.Bytes(), '\n'))
		s.mu.Unlock()
	}
	_ = s.cmd.Wait()
	close(s.exited)
}

// Log is what the process has logged so far.
func (s *Sidecar) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// Line returns the first log line with that message, nil if there is none yet.
func (s *Sidecar) Line(msg string) LogLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.log {
		if line["msg"] == msg {
			return line
		}
	}
	return nil
}

// started is what a sidecar logs once it listens, with its addresses.
const started = "started"

// Address is where the process serves the pod network, empty while it does not yet.
func (s *Sidecar) Address() string {
	address, _ := s.Line(started)["address"].(string)
	return address
}

// APIAddress is where the process serves its API, empty while it does not yet.
func (s *Sidecar) APIAddress() string {
	address, _ := s.Line(started)["api_address"].(string)
	return address
}

// WaitLog waits for a line with that message.
func (s *Sidecar) WaitLog(t testing.TB, msg string, within time.Duration) LogLine {
	t.Helper()
	var found LogLine
	Eventually(t, within, fmt.Sprintf("a log line %q of %s", msg, s.cmd), func() bool {
		if found = s.Line(msg); found != nil {
			return true
		}
		if s.Exited() {
			t.Fatalf("the sidecar ended while the test waited for a log line %q:\n%s", msg, s.Log())
		}
		return false
	})
	return found
}

// Eventually polls a condition, which other processes bring about.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// Get reads a path of the pod network; status 0 says that no answer came.
func (s *Sidecar) Get(path string) (status int, body string) {
	return s.request(http.MethodGet, s.Address(), path)
}

// Post asks this sidecar's API for something, without a body; status 0 says that no answer came.
func (s *Sidecar) Post(path string) (status int, body string) {
	return s.request(http.MethodPost, s.APIAddress(), path)
}

// Enqueue asks this sidecar's API for a run of a job, with data or without, and returns the run's
// ID.
func (s *Sidecar) Enqueue(job string) (id string, err error) {
	status, body := s.request(http.MethodPost, s.APIAddress(), "/v1/jobs/"+job+"/enqueue")
	if status != http.StatusAccepted {
		return "", fmt.Errorf("enqueue %s: %d %s", job, status, body)
	}
	var r struct{ ID string }
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.ID == "" {
		return "", fmt.Errorf("enqueue %s: the answer names no run: %s", job, body)
	}
	return r.ID, nil
}

// GetAPI reads a path of this sidecar's API; status 0 says that no answer came.
func (s *Sidecar) GetAPI(path string) (status int, body string) {
	return s.request(http.MethodGet, s.APIAddress(), path)
}

// PostBody is Post with a JSON body, unless that is empty, and as much time as it is given.
func (s *Sidecar) PostBody(path, json string, within time.Duration) (status int, body string) {
	return send(http.MethodPost, s.APIAddress(), path, json, within)
}

func (s *Sidecar) request(method, address, path string) (status int, body string) {
	return send(method, address, path, "", 5*time.Second)
}

func send(method, address, path, json string, within time.Duration) (status int, body string) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(json))
	if err != nil {
		return 0, err.Error()
	}
	if json != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(answer)
}

// Leads reports whether the sidecar says that it leads.
func (s *Sidecar) Leads() bool {
	status, _ := s.Get("/leader?require=self")
	return status == http.StatusOK
}

// Metric returns the value of a series as it is printed, empty where there is none.
func (s *Sidecar) Metric(series string) string {
	_, body := s.Get("/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return value
		}
	}
	return ""
}

// Signal sends a signal; after a SIGSTOP it returns when that was obeyed.
func (s *Sidecar) Signal(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil {
		return err
	}
	if sig == syscall.SIGSTOP {
		return spawn.WaitStopped(s.cmd.Process.Pid)
	}
	return nil
}

// Kill ends the process, if it runs, and waits for its end.
func (s *Sidecar) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.exited
}

// Done is closed when the process has ended.
func (s *Sidecar) Done() <-chan struct{} { return s.exited }

// Exited reports whether the process has ended.
func (s *Sidecar) Exited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// errRuns says that a process has not ended in time.
var errRuns = errors.New("the sidecar did not end in time")

// ExitCode waits for the end of the process and returns its exit code, -1 after a signal.
func (s *Sidecar) ExitCode(within time.Duration) (int, error) {
	select {
	case <-s.exited:
		return s.cmd.ProcessState.ExitCode(), nil
	case <-time.After(within):
		return 0, fmt.Errorf("%w: %s", errRuns, within)
	}
}

// Wait is ExitCode for a process that has to end.
func (s *Sidecar) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	code, err := s.ExitCode(within)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// Stop ends the process as Kubernetes does and expects a clean end.
func (s *Sidecar) Stop(t testing.TB, within time.Duration) {
	t.Helper()
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.Wait(t, within); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// Leader waits until one of them leads, and fails the test if two say that they do.
func Leader(t testing.TB, within time.Duration, all []*Sidecar) *Sidecar {
	t.Helper()
	var found *Sidecar
	Eventually(t, within, "a leader", func() bool {
		found = nil
		for _, s := range all {
			if s.Leads() {
				if found != nil {
					t.Errorf("two sidecars say that they lead: %s and %s", found.Address(), s.Address())
				}
				found = s
			}
		}
		return found != nil
	})
	return found
}
