package throughput_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
)

var (
	trials      = flag.Int("throughput.trials", 1, "trials of each client; with 5 and more, the limit counts")
	trialTime   = flag.Duration("throughput.time", 150*time.Millisecond, "length of a trial")
	concurrency = flag.Int("throughput.concurrency", 32, "callbacks at once; the default is that of a sidecar")
)

// minRatio is what the invoker has to reach of a bare client's requests per second.
const minRatio = 0.6

// full reports whether the machine is there for the measurement alone.
func full() bool { return *trials >= 5 }

// TestThroughput alternates short trials of both clients. What else happens on the machine hits
// two neighbours alike: their ratio is taken first, and the median of these ratios counts.
func TestThroughput(t *testing.T) {
	s := startServer(t)
	plain, signing := newInvoker(t, nil), newInvoker(t, newSigner(t))
	bare := newBare(s.url)
	send := map[string]func() error{
		"bare":    bare.send,
		"invoker": func() error { return invoke(plain, s.url) },
		"signing": func() error { return invoke(signing, s.url) },
	}
	results := make(map[string][]figures)
	names := []string{"bare", "invoker", "signing"} // the first two are neighbours
	var sent int64
	for _, name := range names { // warm up: connections, caches
		sent += measure(t, *trialTime/5, send[name]).requests
	}
	for range *trials {
		for _, name := range names {
			f := measure(t, *trialTime, send[name])
			results[name] = append(results[name], f)
			sent += f.requests
		}
		slices.Reverse(names) // so that none always comes second
	}

	if got := s.served(t); got != sent {
		t.Errorf("the server got %d requests, %d attempts were made: want as many", got, sent)
	}
	say("callbacks as fast as possible, %d at once, to a server in another process; %d trials of %s each, alternating; medians:",
		*concurrency, *trials, *trialTime)
	say("%-10s %12s %16s %18s %14s", "client", "requests/s", "CPU/callback", "allocs/callback", "bytes/callback")
	medians := make(map[string]figures)
	for _, name := range []string{"bare", "invoker", "signing"} {
		m := medianOf(results[name])
		medians[name] = m
		say("%-10s %12.0f %13.1f µs %18.0f %14.0f", name, m.rate, m.cpu, m.allocs, m.bytes)
	}
	ratios := make([]float64, *trials)
	for i := range ratios {
		ratios[i] = results["invoker"][i].rate / results["bare"][i].rate
	}
	slices.Sort(ratios)
	ratio := ratios[len(ratios)/2]
	say("requests per second, invoker to bare client: %.2f (limit %.2f); from %.2f to %.2f in single pairs of trials, %.2f of the medians",
		ratio, minRatio, ratios[0], ratios[len(ratios)-1], medians["invoker"].rate/medians["bare"].rate)
	if full() && ratio < minRatio {
		t.Errorf("the invoker reaches %.2f of a bare client, want at least %.2f", ratio, minRatio)
	}
}

func newInvoker(t *testing.T, signer *invoker.Signer) *invoker.Client {
	t.Helper()
	c, err := invoker.New(invoker.Options{Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newSigner signs with one secret.
func newSigner(t *testing.T) *invoker.Signer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := invoker.NewSigner([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// figures are what a trial measures, per callback but for the first two. CPU is that of this
// process, user and system, in microseconds.
type figures struct {
	requests                 int64
	rate, cpu, allocs, bytes float64
}

// measure sends from all workers until the time is up and each has its last answer.
func measure(t *testing.T, length time.Duration, send func() error) figures {
	t.Helper()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(t), time.Now()
	counts := make([]int64, *concurrency)
	var workers sync.WaitGroup
	for i := range counts {
		workers.Go(func() {
			n := int64(0)
			for time.Since(start) < length {
				if err := send(); err != nil {
					t.Error(err)
					return
				}
				n++
			}
			counts[i] = n
		})
	}
	workers.Wait()
	passed, used := time.Since(start), cpuTime(t)-cpu
	runtime.ReadMemStats(&after)
	f := figures{}
	for _, n := range counts {
		f.requests += n
	}
	if f.requests == 0 {
		t.Fatal("no request was answered")
	}
	n := float64(f.requests)
	f.rate = n / passed.Seconds()
	f.cpu = float64(used.Nanoseconds()) / 1000 / n
	f.allocs = float64(after.Mallocs-before.Mallocs) / n
	f.bytes = float64(after.TotalAlloc-before.TotalAlloc) / n
	return f
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// medianOf takes the median of each figure by itself.
func medianOf(all []figures) figures {
	of := func(get func(figures) float64) float64 {
		values := make([]float64, len(all))
		for i, f := range all {
			values[i] = get(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		rate:   of(func(f figures) float64 { return f.rate }),
		cpu:    of(func(f figures) float64 { return f.cpu }),
		allocs: of(func(f figures) float64 { return f.allocs }),
		bytes:  of(func(f figures) float64 { return f.bytes }),
	}
}

// invoke delivers an attempt as the engine does: a run of its own, and both questions.
func invoke(client *invoker.Client, url string) error {
	due := time.Date(2026, 10, 4, 22, 0, 0, 0, time.UTC)
	out := client.Invoke(context.Background(), run.Attempt{
		Namespace: "team-a", App: "shop",
		Run: run.Run{
			ID:         "0192f1c2a7b97c3e8d5f6a7b8c9d0e1f",
			Occurrence: "5f0e3f8d7c6b5a493827161504f3e2d1",
			Key:        run.Key{Job: "reports.nightly", Trigger: "workdays"},
			Version:    3, Cause: run.CauseSchedule, ScheduledAt: due, CoveredUntil: due.Add(24 * time.Hour), Attempt: 1,
		},
		URL: url + "/jobs/report", Method: http.MethodPost, Data: json.RawMessage(`{"format":"pdf"}`),
		Timeout: 30 * time.Second, FencingTerm: 12, TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
		MayStart: func() error { return nil },
		Started:  func(time.Time) {},
	})
	if out.State != run.StateSucceeded {
		return fmt.Errorf("outcome %+v", out)
	}
	return nil
}

// bare is what a plain program would do: one client, one request per callback with the same body
// and no more headers than it needs.
type bare struct {
	client *http.Client
	url    string
	body   []byte
}

func newBare(url string) *bare {
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * *concurrency}
	return &bare{
		client: &http.Client{Transport: transport, Timeout: 30 * time.Second},
		url:    url + "/jobs/report",
		body: []byte(`{"id":"0192f1c2a7b97c3e8d5f6a7b8c9d0e1f","occurrence":"5f0e3f8d7c6b5a493827161504f3e2d1",` +
			`"job":"reports.nightly","trigger":"workdays","cause":"schedule","scheduledAt":"2026-10-04T22:00:00Z",` +
			`"coveredUntil":"2026-10-05T22:00:00Z","firedAt":"2026-10-04T22:00:00.000412Z","attempt":1,"retryOf":null,` +
			`"originalOccurrence":null,"term":12,"version":3,"data":{"format":"pdf"}}`),
	}
}

func (b *bare) send() error {
	resp, err := b.client.Post(b.url, "application/json", bytes.NewReader(b.body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// say prints for people; go test shows it with -v only.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
