// Package leases_test runs the examples against a sidecar.
package leases_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/spawn"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// The times to live of the examples' leases, in seconds; they renew after a third of it.
const (
	ttl   = 9
	brief = 3
)

// example is one of the programs, told to work for some seconds.
type example struct {
	language string
	command  func(name string, ttl, steps int) []string
}

func examples(t *testing.T) []example {
	t.Helper()
	for _, tool := range []string{"python3", "curl", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the examples are run with python3, curl and sh, as CONTRIBUTING.md says: %v", err)
		}
	}
	program := filepath.Join(t.TempDir(), "lease")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []example{
		{"go", func(name string, ttl, steps int) []string {
			return []string{program, "-name", name, "-ttl", fmt.Sprintf("%ds", ttl), "-steps", fmt.Sprint(steps)}
		}},
		{"python", func(name string, ttl, steps int) []string {
			return []string{"python3", "python/lease.py", "--name", name, "--ttl", fmt.Sprint(ttl), "--steps", fmt.Sprint(steps)}
		}},
		{"shell", func(name string, ttl, steps int) []string {
			const work = `i=1; while [ $i -le "$0" ]; do echo "step $i with token $LEASE_TOKEN"; i=$((i+1)); sleep 1 & wait $!; done`
			return []string{"shell/lease.sh", name, fmt.Sprint(ttl), "sh", "-c", work, fmt.Sprint(steps)}
		}},
	}
}

// running is an example at work.
type running struct {
	name  string // of its lease
	first chan string
	ended chan struct{}
	code  int

	mu   sync.Mutex
	text bytes.Buffer
}

func (r *running) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *running) steps() int { return strings.Count(r.output(), "step ") }

func (e example) start(t *testing.T, sidecar *cluster.Sidecar, name string, ttl, steps int) *running {
	t.Helper()
	args := e.command(name, ttl, steps)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LEASECRON_URL=http://"+sidecar.APIAddress())
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := spawn.Start(cmd); err != nil {
		t.Fatal(err)
	}
	r := &running{name: name, first: make(chan string, 1), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.mu.Lock()
			fmt.Fprintln(&r.text, lines.Text())
			r.mu.Unlock()
			select {
			case r.first <- lines.Text():
			default:
			}
		}
		if err := cmd.Wait(); err != nil {
			r.code = -1
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				r.code = exit.ExitCode()
			}
		}
	}()
	return r
}

// begun waits for the first step, and returns its token.
func (r *running) begun(t *testing.T) (token int64) {
	t.Helper()
	select {
	case line := <-r.first:
		if _, err := fmt.Sscanf(line, "step 1 with token %d", &token); err != nil {
			t.Fatalf("%s began with %q", r.name, line)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not begin", r.name)
	}
	return token
}

// wantEnd waits for an end with that exit code and words.
func (r *running) wantEnd(t *testing.T, within time.Duration, code int, words string) {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(within):
		t.Fatalf("%s still works:\n%s", r.name, r.output())
	}
	if r.code != code || !strings.Contains(r.output(), words) {
		t.Errorf("%s ended with %d, want %d and %q:\n%s", r.name, r.code, code, words, r.output())
	}
}

// Each example takes its lease, renews it while it works, and releases it; a second one is refused
// meanwhile. From some the lease is taken, and the sidecar of others stands still.
func TestExamples(t *testing.T) {
	all := examples(t)
	sidecar, still := startSidecar(t), startSidecar(t)
	renewed := watchRenewals(t, sidecar)
	var working, robbed, cut []*running
	for _, e := range all {
		working = append(working, e.start(t, sidecar, e.language+".works", ttl, 6))
		robbed = append(robbed, e.start(t, sidecar, e.language+".robbed", ttl, 60))
		cut = append(cut, e.start(t, still, e.language+".cut", brief, 60))
	}
	var seconds []*running
	for i, e := range all {
		cut[i].begun(t)
		working[i].begun(t)
		seconds = append(seconds, e.start(t, sidecar, e.language+".works", ttl, 1))
	}
	for i, e := range all {
		seconds[i].wantEnd(t, 10*time.Second, 75, "held by somebody else: lease \""+e.language+".works\" is held by "+e.language+"-")
	}
	if err := still.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := make([]int, len(cut))
	for i, r := range cut {
		before[i] = r.steps()
	}
	for _, r := range robbed {
		release(t, sidecar, r.name, r.begun(t))
	}
	for _, r := range robbed {
		r.wantEnd(t, 20*time.Second, 1, "lease lost")
		if !strings.Contains(r.output(), "nobody holds it") {
			t.Errorf("%s was not told what became of the lease:\n%s", r.name, r.output())
		}
	}
	for _, r := range working {
		r.wantEnd(t, 20*time.Second, 0, "done")
		if _, seen := renewed.Load(r.name); !seen {
			t.Errorf("%s was not seen to renew its lease", r.name)
		}
		if r.steps() != 6 {
			t.Errorf("%s made %d steps, want 6:\n%s", r.name, r.steps(), r.output())
		}
	}
	for i, r := range cut {
		r.wantEnd(t, 20*time.Second, 1, "lease lost: its time is over")
		if after := r.steps() - before[i]; after > brief+1 { // a step takes a second, and one may be cut short
			t.Errorf("%s made %d steps after the sidecar stood still, with a lease of %d s:\n%s", r.name, after, brief, r.output())
		}
	}
	if _, body := ask(t.Context(), http.MethodGet, sidecar, "/v1/leases", nil); body != `{"leases":[]}` {
		t.Errorf("leases are left: %s", body)
	}
}

func startSidecar(t *testing.T) *cluster.Sidecar {
	t.Helper()
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("jobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	beside := cluster.StartApp(t)
	return cluster.Start(t, beside, cluster.Settings{"ELECTION": "standalone", "LEDGER": "memory", "JOBS_FILE": jobs, "TARGET": beside.URL()})
}

// watchRenewals collects the names of leases that were renewed, for as long as the test lasts.
func watchRenewals(t *testing.T, s *cluster.Sidecar) *sync.Map {
	t.Helper()
	seen := new(sync.Map)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			var list struct {
				Leases []struct {
					Name      string
					RenewedAt time.Time
				}
			}
			if _, body := ask(ctx, http.MethodGet, s, "/v1/leases", nil); json.Unmarshal([]byte(body), &list) != nil {
				continue
			}
			for _, l := range list.Leases {
				if !l.RenewedAt.IsZero() {
					seen.Store(l.Name, true)
				}
			}
		}
	})
	t.Cleanup(func() { stop(); watching.Wait() })
	return seen
}

// release ends a lease as a person would.
func release(t *testing.T, s *cluster.Sidecar, name string, token int64) {
	t.Helper()
	body, err := json.Marshal(map[string]int64{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := ask(t.Context(), http.MethodPost, s, "/v1/leases/"+name+"/release", body); status != http.StatusNoContent {
		t.Fatalf("release %s = %d %s", name, status, answer)
	}
}

// ask returns status 0 where no answer came.
func ask(ctx context.Context, method string, s *cluster.Sidecar, path string, body []byte) (status int, answer string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.APIAddress()+path, bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}
