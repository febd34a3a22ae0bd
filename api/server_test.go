package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var _ api.Engine = (*engine.Engine)(nil)

// fakeEngine keeps runs in a list.
type fakeEngine struct {
	status engine.Status
	runs   []run.Run
	err    error
	asked  []string
	data   json.RawMessage
	holds  []plan.Hold // after a resume

	nextBefore time.Time
}

func (f *fakeEngine) Status() engine.Status { return f.status }

func (f *fakeEngine) Jobs(context.Context) ([]engine.JobStatus, error) { return f.status.Jobs, f.err }

func (f *fakeEngine) Enqueue(_ context.Context, job string, data json.RawMessage) (run.Run, error) {
	if f.err != nil {
		return run.Run{}, f.err
	}
	f.asked = append(f.asked, "enqueue "+job)
	f.data = data
	return run.Run{
		ID: "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b", Occurrence: "00112233445566778899aabbccddeeff", Key: run.Key{Job: job},
		Version: 3, Cause: run.CauseManual, State: run.StateQueued, ScheduledAt: noon, DueAt: noon, DecidedAt: noon, Attempt: 1,
	}, nil
}

func (f *fakeEngine) Pause(_ context.Context, key run.Key, reason string, until time.Time) ([]run.Run, error) {
	f.asked = append(f.asked, fmt.Sprintf("pause %q %q %s", key, reason, until.Format(time.RFC3339)))
	return f.runs, f.err
}

func (f *fakeEngine) Resume(_ context.Context, key run.Key, skip bool) ([]plan.Hold, error) {
	f.asked = append(f.asked, fmt.Sprintf("resume %q skip=%v", key, skip))
	return f.holds, f.err
}

func (f *fakeEngine) Everything(context.Context) (*plan.Hold, error) {
	return f.status.Everything, f.err
}

func (f *fakeEngine) Resolve(_ context.Context, id string, as run.State, note string) (run.Run, error) {
	f.asked = append(f.asked, fmt.Sprintf("resolve %s %s %q", id, as, note))
	r := succeeded()
	r.State, r.Message = as, note
	return r, f.err
}

func (f *fakeEngine) Complete(_ context.Context, id string, result engine.Result) (run.Run, error) {
	f.asked = append(f.asked, fmt.Sprintf("complete %s %+v", id, result))
	r := succeeded()
	r.Async, r.Message = true, result.Message
	if result.Failed {
		r.State, r.Code, r.AppCode = run.StateFailed, run.CodeFailed, result.Code
	}
	return r, f.err
}

func (f *fakeEngine) Heartbeat(_ context.Context, id string, percent *int, text string) (engine.Alive, error) {
	said := "-"
	if percent != nil {
		said = fmt.Sprint(*percent)
	}
	f.asked = append(f.asked, fmt.Sprintf("heartbeat %s %s %q", id, said, text))
	r := succeeded()
	r.State = run.StateRunning
	return engine.Alive{Run: r, TimeoutAt: noon.Add(time.Hour), NextBefore: f.nextBefore}, f.err
}

func (f *fakeEngine) Runs(_ context.Context, job string, limit int) ([]run.Run, error) {
	f.asked = append(f.asked, fmt.Sprintf("runs %q %d", job, limit))
	return f.runs, f.err
}

type fakeLeadership struct{ leader api.Leader }

func (f *fakeLeadership) Leader() api.Leader { return f.leader }

// world is one served pair of addresses and what lies behind them.
type world struct {
	engine     *fakeEngine
	leadership *fakeLeadership
	pod, api   string // base URLs
}

func serve(t *testing.T, change func(*api.Options)) *world {
	t.Helper()
	w := &world{
		engine: &fakeEngine{status: leaderStatus(t), runs: []run.Run{succeeded()}},
		leadership: &fakeLeadership{api.Leader{
			Name: "demo-0_4f1c", Self: "demo-0_4f1c", IsLeader: true, Term: 12, Lease: "demo-leasecron",
			AcquiredAt: noon.Add(-time.Hour), RenewedAt: noon, SeenAt: noon, AgeSeconds: new(0.5),
		}},
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasecron_leader", Help: "."}))
	opts := api.Options{
		Address: "127.0.0.1:0", APIAddress: "127.0.0.1:0",
		Namespace: "default", App: "demo", Version: "v0.1.0", Commit: "0123abc", ZoneData: "2026b",
		DefaultTarget: "http://127.0.0.1:8080",
		Engine:        w.engine, Leadership: w.leadership, Drain: newFakeDrainer(), Leases: new(fakeLeases), Metrics: registry,
	}
	if change != nil {
		change(&opts)
	}
	server, err := api.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v, want nil after its context ended", err)
		}
	})
	w.pod, w.api = "http://"+server.Address(), "http://"+server.APIAddress()
	return w
}

func leaderStatus(t *testing.T) engine.Status {
	t.Helper()
	nightly, err := schedule.Parse("cron 0 0 3 * * * tz=Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	job := func(name string, triggers ...config.Trigger) config.Job {
		return config.Job{
			Name: name, Path: "/jobs/" + name, Method: "POST",
			Headers: map[string]string{"X-Secret": "hidden"}, Data: json.RawMessage(`{"secret":"hidden"}`),
			Timeout: 30 * time.Second, Overlap: config.OverlapSerial, Recovery: config.RecoveryNone,
			Scope: config.ScopeCluster, Triggers: triggers,
		}
	}
	trigger := config.Trigger{
		Name: "default", Schedule: nightly, Priority: 5,
		Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: time.Minute},
	}
	elsewhere := job("running", trigger)
	elsewhere.Target = "http://reports.default:80"
	return engine.Status{
		Node: "demo-0_4f1c", Leading: true, Term: 12, LastTurn: noon,
		Jobs: []engine.JobStatus{
			{Job: job("blocked", trigger), Next: noon.Add(time.Hour), DueSince: noon.Add(-time.Second), InFlight: 1, FirstSeen: noon.Add(-24 * time.Hour)},
			{Job: job("broken", trigger), Error: `time zone "Mars/Olympus" is not known`},
			{Job: job("done", trigger), Latest: state.Latest{LastSuccess: noon.Add(-time.Hour)}},
			{Job: job("manual")},
			{
				Job: job("nightly", trigger), Next: noon.Add(7 * time.Hour).In(time.FixedZone("CST", 8*3600)), FirstSeen: noon.Add(-24 * time.Hour),
				Triggers: []engine.TriggerStatus{{Name: "default", Next: noon.Add(7 * time.Hour).In(time.FixedZone("CST", 8*3600)), DueSince: noon.Add(-time.Second)}},
			},
			{Job: job("paused", trigger), Paused: true, Next: noon.Add(7 * time.Hour), PausedBy: []plan.Hold{
				{By: plan.HoldEverything, Reason: "stock-taking", Since: noon.Add(-time.Hour), Until: noon.Add(time.Hour)},
				{By: plan.HoldDefinition, Since: noon.Add(-24 * time.Hour)},
				{By: plan.HoldTrigger, Trigger: "default", Since: noon.Add(-time.Minute)},
				{By: plan.HoldTrigger, Trigger: "other", Since: noon.Add(-time.Minute)},
			}},
			{Job: elsewhere, Next: noon.Add(7 * time.Hour), InFlight: 1},
		},
	}
}

func succeeded() run.Run {
	return run.Run{
		ID: "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b", Occurrence: "00112233445566778899aabbccddeeff",
		Key: run.Key{Job: "nightly", Trigger: "default"}, Version: 3, Cause: run.CauseSchedule, State: run.StateSucceeded,
		ScheduledAt: noon, CoveredUntil: noon.Add(24 * time.Hour), DueAt: noon, Attempt: 1,
		Node: "demo-0_4f1c", Term: 12, DecidedAt: noon.Add(-200 * time.Millisecond), FiredAt: noon.Add(2 * time.Millisecond),
		EndedAt: noon.Add(time.Second), Status: 200, Message: "ok", Data: json.RawMessage(`{"secret":"hidden"}`),
	}
}

// syncBuffer is a log that is read while the server may still write.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, url string) answer { t.Helper(); return do(t, http.MethodGet, url, "", nil) }

func do(t *testing.T, method, url, body string, header http.Header) answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, header)
	req.Host = header.Get("Host")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// golden compares a JSON text with a file, whatever the white space.
func golden(t *testing.T, name, got string) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(got), "", "  "); err != nil {
		t.Fatalf("%s: not JSON: %v\n%s", name, err, got)
	}
	text := strings.TrimSpace(pretty.String()) + "\n"
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got; go test ./api -update rewrites it):\n%s", name, diff)
	}
}

func TestLoopbackIsTheOnlyPlaceForTheAPI(t *testing.T) {
	tests := map[string]struct {
		address string
		ok      bool
	}{
		"IPv4 loopback":               {"127.0.0.1:0", true},
		"another IPv4 loopback":       {"127.0.0.2:0", true},
		"localhost":                   {"localhost:0", true},
		"all addresses":               {":0", false},
		"all IPv4 addresses":          {"0.0.0.0:0", false},
		"all IPv6 addresses":          {"[::]:0", false},
		"an address of the network":   {"10.0.0.1:0", false},
		"a name that could be anyone": {"example.test:0", false},
		"no port":                     {"127.0.0.1", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server, err := api.New(api.Options{
				APIAddress: tt.address, Engine: &fakeEngine{}, Leadership: &fakeLeadership{},
			})
			if err == nil {
				err = server.Listen(t.Context())
				server.Close()
			}
			if ok := err == nil; ok != tt.ok {
				t.Fatalf("serving the API on %q: error %v, want accepted = %v", tt.address, err, tt.ok)
			}
			if err != nil && !strings.Contains(err.Error(), "LEASECRON_API_LISTEN") {
				t.Errorf("error %q does not name the setting", err)
			}
		})
	}
}

func TestPortInUseNamesTheSettingAndLeavesNothingOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	in := taken.Addr().String()
	for setting, opts := range map[string]api.Options{
		"LEASECRON_LISTEN":     {Address: in},
		"LEASECRON_API_LISTEN": {Address: "127.0.0.1:0", APIAddress: in},
	} {
		t.Run(setting, func(t *testing.T) {
			opts.Engine, opts.Leadership = &fakeEngine{}, &fakeLeadership{}
			server, err := api.New(opts)
			if err != nil {
				t.Fatal(err)
			}
			err = server.Listen(t.Context())
			le, ok := errors.AsType[*api.ListenError](err)
			if !ok || le.Setting != setting || le.Address != in {
				t.Fatalf("Listen() = %v, want a ListenError of %s and %s", err, setting, in)
			}
			want := setting + ": " + in + " is in use by another process; stop that or choose another address"
			if err.Error() != want {
				t.Errorf("message:\n got %s\nwant %s", err, want)
			}
			if server.Address() != "" {
				t.Errorf("%s is still open", server.Address())
			}
		})
	}
}

func TestRequestsInFlightEndBeforeRunDoes(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	server, err := api.New(api.Options{
		Address: "127.0.0.1:0", Engine: &fakeEngine{}, Leadership: &fakeLeadership{},
		Live: []api.Check{{Name: "slow", Probe: func() (string, error) {
			close(entered)
			<-leave
			return "", nil
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	url := "http://" + server.Address() + "/livez"
	go func() { ended <- server.Run(ctx) }()
	answered := make(chan answer, 1)
	go func() { answered <- get(t, url) }()
	<-entered
	stop()
	select {
	case err := <-ended:
		t.Fatalf("Run() = %v while a request was in flight", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if a := <-answered; a.status != 200 {
		t.Errorf("status = %d, want 200", a.status)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
}

func TestNewRefusesWhatCouldNotBeServed(t *testing.T) {
	engine, leadership := &fakeEngine{}, &fakeLeadership{}
	works := func() (string, error) { return "", nil }
	tests := map[string]api.Options{
		"no engine":               {Leadership: leadership},
		"no leadership":           {Engine: engine},
		"a check without a probe": {Engine: engine, Leadership: leadership, Live: []api.Check{{Name: "loop"}}},
		"a check without a name":  {Engine: engine, Leadership: leadership, Ready: []api.Check{{Probe: works}}},
	}
	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := api.New(opts); err == nil {
				t.Error("New() = nil error")
			}
		})
	}
}

func TestRunNeedsListen(t *testing.T) {
	server, err := api.New(api.Options{Address: "127.0.0.1:0", Engine: &fakeEngine{}, Leadership: api.LeadershipFunc(func() api.Leader { return api.Leader{} })})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Run(t.Context()); err == nil {
		t.Error("Run() without Listen = nil error")
	}
}
