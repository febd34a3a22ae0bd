package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/controlplane"
)

// binary is the sidecar, built anew before the tests, beside the other binaries of the repository.
var binary = filepath.Join("..", "..", "bin", "e2e", "sidecar")

func TestMain(m *testing.M) {
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "github.com/leasecron/leasecron/cmd/sidecar")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the sidecar: %v\n%s", err, out)
		os.Exit(1)
	}
	controlplane.Main(m)
}

// sidecar is one process of the binary.
type sidecar struct {
	t       *testing.T
	cmd     *exec.Cmd
	app     *app.App
	address string // of the pod network
	api     string

	mu     sync.Mutex
	log    []logLine
	raw    bytes.Buffer
	exited chan struct{}
}

type logLine map[string]any

// startSidecar starts a process and returns when it serves. The settings are LEASECRON_ variables
// without the prefix, or other variables with a "!" before their name.
func startSidecar(t *testing.T, a *app.App, settings map[string]string) *sidecar {
	t.Helper()
	s := &sidecar{t: t, app: a, exited: make(chan struct{})}
	s.cmd = exec.CommandContext(context.Background(), binary, "run")
	s.cmd.Env = environment(settings)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.exited
		if t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Logf("log of %s:\n%s", settings["NODE_ID"], s.raw.String())
		}
	})
	go s.read(stderr)
	started := s.waitLog("started", 20*time.Second)
	s.address, _ = started["address"].(string)
	s.api, _ = started["api_address"].(string)
	return s
}

func environment(settings map[string]string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	defaults := map[string]string{"LISTEN": "127.0.0.1:0", "API_LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json"}
	for name, value := range settings {
		defaults[name] = value
	}
	for name, value := range defaults {
		if bare, ok := strings.CutPrefix(name, "!"); ok {
			env = append(env, bare+"="+value)
			continue
		}
		env = append(env, "LEASECRON_"+name+"="+value)
	}
	return env
}

func (s *sidecar) read(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line logLine
		_ = json.Unmarshal(scanner.Bytes(), &line)
		s.mu.Lock()
		s.log = append(s.log, line)
		s.raw.Write(append(scanner.Bytes(), '\n'))
		s.mu.Unlock()
	}
	_ = s.cmd.Wait()
	close(s.exited)
}

// waitLog waits for a line with that message.
func (s *sidecar) waitLog(msg string, within time.Duration) logLine {
	s.t.Helper()
	var found logLine
	s.eventually(within, fmt.Sprintf("a log line %q", msg), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, line := range s.log {
			if line["msg"] == msg {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

func (s *sidecar) eventually(within time.Duration, what string, ok func() bool) {
	s.t.Helper()
	eventually(s.t, within, what+" of "+s.cmd.String(), func() bool {
		if ok() {
			return true
		}
		select {
		case <-s.exited:
			s.t.Fatalf("the sidecar ended while the test waited for %s:\n%s", what, s.raw.String())
		default:
		}
		return false
	})
}

// eventually polls a condition, which other processes bring about.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
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

// get reads a path of the pod network.
func (s *sidecar) get(path string) (int, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(body)
}

func (s *sidecar) leads() bool {
	status, _ := s.get("/leader?require=self")
	return status == http.StatusOK
}

// metric returns the value of a series as it is printed, empty where there is none.
func (s *sidecar) metric(series string) string {
	_, body := s.get("/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return value
		}
	}
	return ""
}

func (s *sidecar) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// wait returns the exit code.
func (s *sidecar) wait(within time.Duration) int {
	s.t.Helper()
	select {
	case <-s.exited:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		s.t.Fatalf("the sidecar did not end within %s", within)
		return -1
	}
}

// stop ends the process as Kubernetes does and expects a clean end.
func (s *sidecar) stop(within time.Duration) {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	if code := s.wait(within); code != 0 {
		s.t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// leader waits until exactly one of them leads.
func leader(t *testing.T, within time.Duration, all []*sidecar) *sidecar {
	t.Helper()
	var found *sidecar
	eventually(t, within, "a leader", func() bool {
		found = nil
		for _, s := range all {
			if s.leads() {
				if found != nil {
					t.Errorf("two sidecars say that they lead: %s and %s", found.address, s.address)
				}
				found = s
			}
		}
		return found != nil
	})
	return found
}

func startApp(t *testing.T) *app.App {
	t.Helper()
	a, err := app.Start(app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}
