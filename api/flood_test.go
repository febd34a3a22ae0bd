package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// flood is how many connections come to an address: more than there is room for, twice over.
const flood = 5 * api.MaxConnections / 2

// slowLeases lets acquisitions wait until they are let go.
type slowLeases struct {
	fakeLeases
	entered chan struct{}
	leave   chan struct{}
}

func newSlowLeases() *slowLeases {
	return &slowLeases{fakeLeases: fakeLeases{lease: heldLease()}, entered: make(chan struct{}, flood), leave: make(chan struct{})}
}

func (f *slowLeases) Acquire(ctx context.Context, _ leases.AcquireRequest) (leases.Lease, error) {
	f.entered <- struct{}{}
	select {
	case <-f.leave:
		return f.lease, nil
	case <-ctx.Done():
		return leases.Lease{}, ctx.Err()
	}
}

// getThrough sends what cannot wait, each on a connection of its own. Its time-out is far below what the
// flood would take to go away by itself.
func getThrough(t *testing.T, w *world) {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	requests := []struct{ method, url, body string }{
		{"GET", w.pod + "/livez", ""},
		{"GET", w.pod + "/readyz", ""},
		{"GET", w.pod + "/leader", ""},
		{"GET", w.pod + "/metrics", ""},
		{"GET", w.api + "/livez", ""},
		{"GET", w.api + "/readyz", ""},
		{"GET", w.api + "/leader", ""},
		{"POST", w.api + "/v1/leases/mine/renew", `{"token":1796063516289}`},
		{"POST", w.api + "/v1/leases/mine/release", `{"token":1796063516289}`},
		{"POST", w.api + "/v1/runs/" + asyncRun + "/complete", ""},
		{"POST", w.api + "/v1/runs/" + asyncRun + "/fail", `{"message":"locked"}`},
		{"POST", w.api + "/v1/runs/" + asyncRun + "/heartbeat", `{"progress":40}`},
		{"POST", w.api + "/drain?wait=0s", ""},
	}
	for _, r := range requests {
		req, err := http.NewRequestWithContext(t.Context(), r.method, r.url, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if r.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", r.method, r.url, err)
			continue
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Errorf("%s %s = %d %s", r.method, r.url, resp.StatusCode, b)
		}
	}
}

// floodWith opens connections to both addresses, each of which sends that.
func floodWith(t *testing.T, w *world, path, text string) {
	t.Helper()
	for _, base := range []string{w.pod, w.api} {
		address := strings.TrimPrefix(base, "http://")
		for range flood {
			send(t, address, strings.ReplaceAll(strings.ReplaceAll(text, "PATH", path), "\n", "\r\n"))
		}
	}
}

func TestUrgentRequestsGetThrough(t *testing.T) {
	tests := map[string]string{
		"connections that say nothing":       "",
		"idle connections":                   "GET PATH HTTP/1.1\nHost: localhost\n\n",
		"half requests":                      "GET PATH HTT",
		"heads whose bodies do not come":     "POST PATH HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 90\n\n{",
		"probes whose bodies do not come":    "GET /livez HTTP/1.1\nHost: localhost\nContent-Length: 90\n\n",
		"more answers than anybody has read": strings.Repeat("GET PATH HTTP/1.1\nHost: localhost\n\n", 20),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			floodWith(t, w, "/v1/runs/"+asyncRun+"/complete", text)
			getThrough(t, w)
		})
	}
}

func TestAcquisitionsThatWaitKeepNobodyOut(t *testing.T) {
	slow := newSlowLeases()
	w := serve(t, func(o *api.Options) { o.Leases = slow })
	var wg sync.WaitGroup
	const many = api.MaxConnections * 3 / 4 // all of them have room; what bounds them is that they wait
	statuses := make(chan string, many)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: many}}
	defer client.CloseIdleConnections()
	for range many {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), "POST", w.api+"/v1/leases/taken/acquire",
				strings.NewReader(`{"holder":"w","ttlSeconds":30,"waitSeconds":30}`))
			if err != nil {
				statuses <- err.Error()
				return
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			if err != nil {
				statuses <- err.Error()
				return
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			got := fmt.Sprint(resp.StatusCode)
			if resp.StatusCode == 503 {
				got += " " + resp.Header.Get("Retry-After")
				if resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(string(b), string(run.CodeTooBusy)) {
					got = string(b)
				}
			}
			statuses <- got
		})
	}
	for range api.MaxAcquires {
		<-slow.entered
	}
	got := map[string]int{}
	for range many - api.MaxAcquires {
		got[<-statuses]++
	}
	floodWith(t, w, "/livez", "GET PATH HTTP/1.1\nHost: localhost\n\n") // closes none that waits
	getThrough(t, w)
	close(slow.leave)
	wg.Wait()
	close(statuses)
	for s := range statuses {
		got[s]++
	}
	if got["503 1"] != many-api.MaxAcquires || got["200"] != api.MaxAcquires {
		t.Errorf("answers = %v, want %d times 200 and else 503 with Retry-After", got, api.MaxAcquires)
	}
}

func TestDrainsThatWaitKeepNobodyOut(t *testing.T) {
	w := serve(t, nil)
	address := strings.TrimPrefix(w.api, "http://")
	drain := "POST /drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	answered := make(chan int, flood)
	for range flood {
		conn := send(t, address, drain)
		go func() {
			var b [12]byte
			_, _ = io.ReadFull(conn, b[:])
			if string(b[:]) == "HTTP/1.1 202" {
				answered <- 202
			}
		}()
	}
	// The first to be told how far it is shows that as many as may wait do.
	<-answered
	getThrough(t, w)
}

// slowEngine does not come back before it is let go.
type slowEngine struct {
	*fakeEngine
	entered, leave chan struct{}
}

func (f slowEngine) Complete(context.Context, string, engine.Result) (run.Run, error) {
	f.entered <- struct{}{}
	<-f.leave
	return succeeded(), nil
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	slow := slowEngine{entered: make(chan struct{}, flood), leave: make(chan struct{})}
	w := serve(t, func(o *api.Options) {
		slow.fakeEngine, _ = o.Engine.(*fakeEngine)
		o.Engine = slow
	})
	address := strings.TrimPrefix(w.api, "http://")
	complete := "POST /v1/runs/" + asyncRun + "/complete HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	var under []net.Conn
	for range api.MaxUrgent {
		under = append(under, send(t, address, complete))
	}
	for range api.MaxUrgent {
		<-slow.entered
	}
	if got := status(t, send(t, address, complete)); got != 503 {
		t.Errorf("one too many = %d, want 503", got)
	}
	for _, body := range []string{"", "{}"} {
		a := do(t, "POST", w.api+"/v1/runs/"+asyncRun+"/complete", body, nil)
		if a.status != 503 || a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, string(run.CodeTooBusy)) {
			t.Errorf("one too many, body %q = %d, Retry-After %q, %s", body, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
	for _, path := range []string{"/livez", "/leader", "/drain", "/v1/jobs"} {
		if a := get(t, w.api+path); a.status != 200 {
			t.Errorf("GET %s = %d, want 200 beside them", path, a.status)
		}
	}
	close(slow.leave)
	for _, c := range under {
		if got := status(t, c); got != 200 {
			t.Errorf("a request under way = %d, want 200", got)
		}
	}
}

func TestLargeBodiesShareTheirMemory(t *testing.T) {
	w := serve(t, nil)
	address := strings.TrimPrefix(w.api, "http://")
	data := `{"data":{"x":"` + strings.Repeat("x", 250<<10) + `"}}`
	enqueue := func() answer { return do(t, "POST", w.api+"/v1/jobs/reports.nightly/enqueue", data, nil) }
	if a := enqueue(); a.status != 202 {
		t.Fatalf("alone = %d %s", a.status, a.body)
	}
	// Each sends all but the end of its body.
	for range 10 {
		send(t, address, "POST /v1/jobs/reports.nightly/enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Content-Length: 500000\r\n\r\n"+strings.Repeat(" ", 499000))
	}
	var a answer
	for deadline := time.Now().Add(4 * time.Second); a.status != 503; a = enqueue() { // they are read meanwhile
		if time.Now().After(deadline) {
			t.Fatalf("beside ten others = %d, want 503 in the end", a.status)
		}
	}
	if a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, string(run.CodeTooBusy)) {
		t.Errorf("Retry-After %q, %s", a.header.Get("Retry-After"), a.body)
	}
	getThrough(t, w)
}

// A scrape that nobody reads would keep its place among the few that are answered at once.
func TestScrapesThatAreNotTakenKeepNobodyOut(t *testing.T) {
	registry := prometheus.NewRegistry()
	series := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "large", Help: "."}, []string{"text"})
	registry.MustRegister(series)
	for i := range 80 {
		series.WithLabelValues(fmt.Sprint(i, strings.Repeat("x", 100<<10))).Set(1)
	}
	w := serve(t, func(o *api.Options) { o.Metrics = registry })
	for range 8 {
		send(t, strings.TrimPrefix(w.pod, "http://"), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	deadline := time.Now().Add(10 * time.Second)
	for get(t, w.pod+"/metrics").status != 200 {
		if time.Now().After(deadline) {
			t.Fatal("no scrape was answered within 10s")
		}
	}
}
