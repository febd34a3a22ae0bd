package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/api"
)

// fakeDrainer is drained when the test says so.
type fakeDrainer struct {
	over chan struct{}

	mu     sync.Mutex
	begun  int
	status api.DrainStatus
}

func newFakeDrainer() *fakeDrainer {
	return &fakeDrainer{over: make(chan struct{}), status: api.DrainStatus{State: api.DrainServing, Runs: 2}}
}

func (f *fakeDrainer) Drain() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	if f.status.State == api.DrainServing {
		f.status = api.DrainStatus{State: api.DrainDraining, Since: noon, HandedOverAt: noon.Add(5 * time.Millisecond), Until: noon.Add(25 * time.Second), Runs: 2}
	}
	return f.over
}

func (f *fakeDrainer) DrainStatus() api.DrainStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *fakeDrainer) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.State, f.status.EndedAt, f.status.Runs, f.status.Lost = api.DrainDrained, noon.Add(3*time.Second), 0, 1
	close(f.over)
}

func (f *fakeDrainer) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

func TestDrain(t *testing.T) {
	drainer := newFakeDrainer()
	w := serve(t, func(o *api.Options) { o.Drain = drainer })
	steps := []struct {
		name, method, query string
		status              int
		state               string
		begun               int
		golden              string
	}{
		{"asking begins nothing", "GET", "", 200, "serving", 0, "drain-serving.json"},
		{"a mistake begins nothing", "POST", "?wait=10", 400, "", 0, ""},
		{"nor does a wait that is too long", "POST", "?wait=3h", 400, "", 0, ""},
		{"nor a negative one", "POST", "?wait=-1s", 400, "", 0, ""},
		{"nor an unknown parameter", "POST", "?timeout=1s", 400, "", 0, ""},
		{"the first request begins", "POST", "?wait=0s", 202, "draining", 1, "drain-draining.json"},
		{"the second joins", "POST", "?wait=1ms", 202, "draining", 2, ""},
	}
	for _, step := range steps {
		a := do(t, step.method, w.api+"/drain"+step.query, "", nil)
		var got api.DrainStatus
		_ = json.Unmarshal([]byte(a.body), &got)
		if a.status != step.status || got.State != step.state || drainer.asked() != step.begun {
			t.Errorf("%s: %s /drain%s = %d %q, begun %d times; want %d %q, %d", step.name, step.method, step.query,
				a.status, got.State, drainer.asked(), step.status, step.state, step.begun)
		}
		if step.golden != "" {
			golden(t, step.golden, a.body)
		}
	}
	drainer.finish()
	a := do(t, "POST", w.api+"/drain", "", nil)
	if a.status != 200 {
		t.Errorf("POST /drain when it is over = %d, want 200", a.status)
	}
	golden(t, "drain-drained.json", a.body)
	if a := do(t, "POST", w.pod+"/drain", "", nil); a.status != 404 {
		t.Errorf("POST /drain from the pod network = %d, want 404", a.status)
	}
}

// A hook waits as long as the grace, which is longer than a request may usually take.
func TestADrainMayTakeItsTime(t *testing.T) {
	drainer := newFakeDrainer()
	server, err := api.New(api.Options{APIAddress: "127.0.0.1:0", Engine: &fakeEngine{}, Leadership: &fakeLeadership{}, Drain: drainer})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 50 * time.Millisecond
	server.SetTimeouts(limit)
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	time.AfterFunc(6*limit, drainer.finish)
	a := do(t, "POST", "http://"+server.APIAddress()+"/drain", "", nil)
	var got api.DrainStatus
	_ = json.Unmarshal([]byte(a.body), &got)
	if a.status != 200 || got.State != api.DrainDrained {
		t.Errorf("POST /drain = %d %s, want it to wait for the end", a.status, a.body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOldClientsFindTheLeaderAtTheRoot(t *testing.T) {
	w := serve(t, nil)
	w.leadership.leader = api.Leader{Name: "demo-1", Self: "demo-0", SeenAt: noon, AgeSeconds: new(4.25)}
	a := get(t, w.pod+"/")
	golden(t, "leader-root.json", a.body)
	if b := get(t, w.pod+"/leader"); b.body != a.body || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("/ = %s, /leader = %s, want the same JSON", a.body, b.body)
	}
	if a := get(t, w.pod+"/?require=self"); a.status != http.StatusServiceUnavailable {
		t.Errorf("/?require=self on a follower = %d, want 503", a.status)
	}
	if a := get(t, w.pod+"/?leader"); a.status != http.StatusBadRequest {
		t.Errorf("/?leader = %d, want 400", a.status)
	}
}
