//go:build footprint && linux

// Package footprint_test measures what a sidecar costs the pod it sits in, and fails when that
// is more than promised. make bench-footprint runs it.
package footprint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/spawn"
)

// What is promised.
const (
	maxSizeMB  = 30.0
	maxRSSMiB  = 30.0
	maxCPU     = 0.2 // percent of a core
	maxReadyMS = 300.0
)

const (
	idle   = time.Minute
	starts = 7
)

// binary is what make build makes.
var binary = filepath.Join("..", "..", "bin", "sidecar")

// jobs are those of a small application. None is due while it is measured, unless that is around
// midnight. The replicas take the example's, from a ConfigMap.
var jobs = func() string {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "- {name: nightly-%d, path: /jobs/nightly, schedule: \"%d 0 * * *\"}\n", i, i)
	}
	return b.String()
}()

func TestMain(m *testing.M) { controlplane.Main(m) }

func TestFootprint(t *testing.T) {
	callee, err := app.Start(app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer callee.Close()
	standalone := append(settings(callee), "LEASECRON_ELECTION=standalone", "LEASECRON_JOBS_FILE="+jobsFile(t))
	replica := append(settings(callee), clusterSettings(t)...)

	var report table
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	report.add("binary, stripped", "MB", maxSizeMB, map[string]float64{"all": float64(info.Size()) / 1e6})
	report.add(fmt.Sprintf("start to ready, median of %d", starts), "ms", maxReadyMS, map[string]float64{
		"standalone": medianStart(t, standalone),
		"leader":     medianStart(t, replica),
	})

	// Side by side: each process is accounted for by itself.
	roles := map[string]*sidecar{"standalone": start(t, standalone)}
	roles["leader"] = start(t, replica)
	roles["leader"].waitFor(t, "/leader?require=self")
	roles["follower"] = start(t, replica)
	roles["standalone"].waitFor(t, "/leader?require=self")

	settle := time.NewTimer(5 * time.Second)
	defer settle.Stop()
	<-settle.C
	before := map[string]time.Duration{}
	for role, s := range roles {
		before[role] = s.cpu(t)
	}
	began := time.Now()
	rest := time.NewTimer(idle)
	defer rest.Stop()
	<-rest.C
	rss, cpu := map[string]float64{}, map[string]float64{}
	for role, s := range roles {
		cpu[role] = 100 * float64(s.cpu(t)-before[role]) / float64(time.Since(began))
		rss[role] = s.rssMiB(t)
	}
	report.add("resident memory, after a minute idle", "MiB", maxRSSMiB, rss)
	report.add("CPU, over that minute", "% of a core", maxCPU, cpu)

	report.print(os.Stdout)
	for _, over := range report.over {
		t.Error(over)
	}
}

func settings(a *app.App) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, "LEASECRON_TARGET="+a.URL(), "LEASECRON_LOG_LEVEL=error", "LEASECRON_APP=shop")
}

func jobsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clusterSettings prepare a namespace with what is packed, and just its rights.
func clusterSettings(t *testing.T) []string {
	t.Helper()
	c := cluster.New(t, controlplane.Shared(t), "jobs: []\n")
	return []string{"LEASECRON_ELECTION=kubernetes", "LEASECRON_NAMESPACE=" + c.Namespace, "KUBECONFIG=" + c.Kubeconfig}
}

func medianStart(t *testing.T, env []string) float64 {
	t.Helper()
	var took []float64
	for range starts {
		s := start(t, env)
		took = append(took, float64(s.ready.Microseconds())/1000)
		s.stop(t)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// sidecar is one running process.
type sidecar struct {
	cmd     *exec.Cmd
	address string
	ready   time.Duration // from its start to the first 200 of /readyz
}

func start(t *testing.T, env []string) *sidecar {
	t.Helper()
	address, err := app.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &sidecar{address: address, cmd: exec.Command(binary, "run")}
	s.cmd.Env = append(slices.Clone(env), "LEASECRON_LISTEN="+address, "LEASECRON_API_LISTEN=127.0.0.1:0")
	s.cmd.Stderr = os.Stderr
	began := time.Now()
	if err := spawn.Start(s.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
	s.waitFor(t, "/readyz")
	s.ready = time.Since(began)
	return s
}

func (s *sidecar) stop(t *testing.T) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the sidecar ended with %v", err)
	}
}

// waitFor asks for a path until the answer is 200.
func (s *sidecar) waitFor(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		err := get(ctx, "http://"+s.address+path)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("GET %s: %v", path, err)
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status + ": " + string(body))
	}
	return err
}

// cpu is the time that the process has spent on a core.
func (s *sidecar) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat := s.proc(t, "stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // Linux tells it in hundredths of a second
}

func (s *sidecar) rssMiB(t *testing.T) float64 {
	t.Helper()
	_, after, _ := strings.Cut(s.proc(t, "status"), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

func (s *sidecar) proc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// table is the report.
type table struct {
	rows []row
	over []string
}

type row struct {
	what, unit string
	limit      float64
	values     map[string]float64 // by role; "all" where it is the same
}

func (r *table) add(what, unit string, limit float64, values map[string]float64) {
	r.rows = append(r.rows, row{what, unit, limit, values})
	for role, value := range values {
		if value > limit {
			r.over = append(r.over, fmt.Sprintf("%s (%s): %.2f %s, limit %g", what, role, value, unit, limit))
		}
	}
}

func (r *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\t\tstandalone\tleader\tfollower\tlimit\t")
	for _, row := range r.rows {
		fmt.Fprintf(w, "%s\t%s\t", row.what, row.unit)
		for _, role := range []string{"standalone", "leader", "follower"} {
			value, ok := row.values[role]
			if !ok {
				value, ok = row.values["all"]
			}
			if ok {
				fmt.Fprintf(w, "%.2f\t", value)
			} else {
				fmt.Fprint(w, "-\t")
			}
		}
		fmt.Fprintf(w, "%g\t\n", row.limit)
	}
	_ = w.Flush()
}
