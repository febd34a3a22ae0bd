package telemetry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/telemetry"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a telemetry, its registry, and what engine and election would say.
type world struct {
	*telemetry.Telemetry
	t        *testing.T
	registry *prometheus.Registry
	status   engine.Status
	lease    telemetry.Lease
	around   telemetry.Surroundings
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, registry: prometheus.NewPedanticRegistry()}
	w.Telemetry = telemetry.New(w.registry, telemetry.Options{
		Version: "v0.1.0", Commit: "0123abc", Now: func() time.Time { return noon },
	})
	w.SetStatus(func() engine.Status { return w.status })
	w.SetLease(func() telemetry.Lease { return w.lease })
	w.SetSurroundings(func() telemetry.Surroundings { return w.around })
	return w
}

// lead makes the sidecar the leader of jobs.
func (w *world) lead(jobs ...engine.JobStatus) {
	w.status.Leading, w.lease.Leading = true, true
	w.status.Jobs = jobs
}

// series returns every series of the metrics named, as text, without those of zero buckets.
func (w *world) series(names ...string) []string {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, f := range families {
		for _, name := range names {
			if f.GetName() != "leasecron_"+name {
				continue
			}
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				series := name + "{" + strings.Join(labels, ",") + "} "
				switch {
				case m.GetCounter() != nil:
					series += fmt.Sprint(m.GetCounter().GetValue())
				case m.GetGauge() != nil:
					series += fmt.Sprint(int64(m.GetGauge().GetValue()))
				default:
					series += fmt.Sprintf("count %d sum %.3f", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
				}
				out = append(out, series)
			}
		}
	}
	return out
}

func (w *world) want(want []string, names ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.series(names...)); diff != "" {
		w.t.Errorf("series (-want +got):\n%s", diff)
	}
}

func jobs(names ...string) engine.JobsChanged {
	var e engine.JobsChanged
	for _, name := range names {
		e.Jobs = append(e.Jobs, config.Job{Name: name})
	}
	return e
}

func ended(job string, state run.State, took time.Duration) engine.RunEnded {
	return engine.RunEnded{Run: run.Run{Key: run.Key{Job: job}, State: state, FiredAt: noon, EndedAt: noon.Add(took)}, Final: true}
}

func status(name string) engine.JobStatus {
	return engine.JobStatus{Job: config.Job{Name: name}, FirstSeen: noon.Add(-time.Hour), Next: noon.Add(time.Minute)}
}

func TestNamesAndLabelsFollowTheRules(t *testing.T) {
	w := newWorld(t)
	w.Observe(jobs("a"))
	w.lead(status("a"))
	w.lease.RenewedAt = noon
	problems, err := testutil.GatherAndLint(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "leasecron_") {
			t.Errorf("%s does not start with leasecron_", f.GetName())
		}
		for _, l := range f.GetMetric()[0].GetLabel() {
			if l.GetName() == "job" || l.GetName() == "instance" {
				t.Errorf("%s has the label %s, which is Prometheus' own", f.GetName(), l.GetName())
			}
		}
	}
}

func TestHistogramsAreNativeAndClassic(t *testing.T) {
	w := newWorld(t)
	w.Observe(engine.RunStarted{Lateness: 3 * time.Millisecond})
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			found++
			if h.Schema == nil || len(h.GetBucket()) == 0 {
				t.Errorf("%s: native %v, %d classic buckets; want both", f.GetName(), h.Schema != nil, len(h.GetBucket()))
			}
		}
	}
	if found != 4 {
		t.Errorf("histograms = %d, want 4", found)
	}
}

func TestSeriesOfAJobLiveAsLongAsTheJob(t *testing.T) {
	w := newWorld(t)
	w.want([]string{}, "runs_total", "missed_triggers_total")

	w.Observe(jobs("a", "b"))
	if got, want := len(w.series("runs_total")), 2*5; got != want {
		t.Errorf("runs_total has %d series, want %d", got, want)
	}
	if got, want := len(w.series("missed_triggers_total")), 2*len(run.Reasons()); got != want {
		t.Errorf("missed_triggers_total has %d series, want %d", got, want)
	}
	for _, s := range w.series("runs_total", "missed_triggers_total") {
		if !strings.HasSuffix(s, " 0") {
			t.Errorf("%s, want 0 before anything happened", s)
		}
	}

	w.Observe(ended("a", run.StateFailed, 0))
	w.Observe(jobs("a"))
	w.want([]string{
		"runs_total{job_name=a,outcome=canceled} 0", "runs_total{job_name=a,outcome=failed} 1",
		"runs_total{job_name=a,outcome=lost} 0", "runs_total{job_name=a,outcome=needs-review} 0",
		"runs_total{job_name=a,outcome=succeeded} 0",
	}, "runs_total")

	w.Observe(ended("b", run.StateSucceeded, 0)) // it was still running when its job left
	w.Observe(jobs("a"))
	if got := len(w.series("runs_total")); got != 5 {
		t.Errorf("runs_total has %d series after b left, want 5", got)
	}
}

// R189: short runs between two scrapes are counted, each.
func TestShortRunsAreCountedOneByOne(t *testing.T) {
	w := newWorld(t)
	w.Observe(jobs("a"))
	for range 100 {
		w.Observe(engine.RunStarted{Run: run.Run{Key: run.Key{Job: "a"}}, Lateness: time.Millisecond})
		w.Observe(ended("a", run.StateSucceeded, 10*time.Millisecond))
	}
	if s := w.series("runs_total"); s[4] != "runs_total{job_name=a,outcome=succeeded} 100" {
		t.Errorf("runs_total = %v", s)
	}
	w.want([]string{"fire_lateness_seconds{} count 100 sum 0.100", "run_duration_seconds{} count 100 sum 1.000"},
		"run_duration_seconds", "fire_lateness_seconds")
}

func TestALostRunHasNoDuration(t *testing.T) {
	w := newWorld(t)
	w.Observe(ended("a", run.StateLost, time.Hour))
	w.Observe(engine.RunEnded{Run: run.Run{Key: run.Key{Job: "a"}, State: run.StateCanceled, EndedAt: noon}}) // never sent
	w.want([]string{"run_duration_seconds{} count 0 sum 0.000"}, "run_duration_seconds")
}

func TestAClockThatStepsBackMakesNothingNegative(t *testing.T) {
	w := newWorld(t)
	w.Observe(engine.RunStarted{Lateness: -time.Second})
	w.Observe(ended("a", run.StateSucceeded, -time.Second))
	w.want([]string{"fire_lateness_seconds{} count 1 sum 0.000", "run_duration_seconds{} count 1 sum 0.000"},
		"run_duration_seconds", "fire_lateness_seconds")
}

// R185, R192: every missed instant is counted under its job and its own reason.
func TestMissedInstantsAreCountedByReason(t *testing.T) {
	for i, reason := range run.Reasons() {
		t.Run(string(reason), func(t *testing.T) {
			w := newWorld(t)
			w.Observe(jobs("a"))
			w.Observe(engine.Missed{Key: run.Key{Job: "a", Trigger: "default"}, Reason: reason, Count: i + 1})
			for _, s := range w.series("missed_triggers_total") {
				want := " 0"
				if strings.Contains(s, "reason="+string(reason)+"}") {
					want = fmt.Sprint(" ", i+1)
				}
				if !strings.HasSuffix(s, want) {
					t.Errorf("%s, want%s", s, want)
				}
			}
		})
	}
}

func TestCounters(t *testing.T) {
	w := newWorld(t)
	all := []string{
		"leader_transitions_total", "leadership_lost_total", "ledger_commit_failures_total", "ledger_commit_seconds",
		"lease_renew_failures_total", "lease_renew_seconds", "manual_triggers_total", "retries_total",
	}
	w.Observe(engine.TermBegan{Term: 1})
	w.Observe(engine.TermEnded{Term: 1}) // handed over
	w.Observe(engine.TermBegan{Term: 3})
	w.Observe(engine.TermEnded{Term: 3, Err: errors.New("lease expired")})
	w.LeadershipLost() // as the election tells of the same end
	w.Observe(engine.TermBegan{Term: 5})
	w.Observe(engine.TermEnded{Term: 5, Err: fmt.Errorf("turn: %w", engine.ErrTermOver)})
	w.Observe(engine.Committed{Took: 5 * time.Millisecond, Bytes: 100})
	w.Observe(engine.Committed{Took: time.Second, Err: errors.New("no answer")})
	w.Observe(engine.Committed{Err: engine.ErrNoChange})
	w.Observe(engine.RetryPlanned{})
	w.Observe(engine.ManualPlanned{})
	w.LeaseRenewed(4*time.Millisecond, nil)
	w.LeaseRenewed(time.Second, errors.New("no answer"))
	w.want([]string{
		"leader_transitions_total{} 3", "leadership_lost_total{} 2",
		"lease_renew_failures_total{} 1", "lease_renew_seconds{} count 1 sum 0.004",
		"ledger_commit_failures_total{} 1", "ledger_commit_seconds{} count 1 sum 0.005",
		"manual_triggers_total{} 1", "retries_total{} 1",
	}, all...)
}

func TestConfigReloads(t *testing.T) {
	w := newWorld(t)
	names := []string{"config_last_reload_successful", "config_last_reload_success_timestamp_seconds"}
	w.want([]string{"config_last_reload_success_timestamp_seconds{} 0", "config_last_reload_successful{} 0"}, names...)
	w.ConfigReloaded(noon, nil)
	w.want([]string{fmt.Sprint("config_last_reload_success_timestamp_seconds{} ", noon.Unix()), "config_last_reload_successful{} 1"}, names...)
	w.ConfigReloaded(noon.Add(time.Minute), errors.New("line 3"))
	w.want([]string{fmt.Sprint("config_last_reload_success_timestamp_seconds{} ", noon.Unix()), "config_last_reload_successful{} 0"}, names...)
}

// A follower's counters exist from the moment at which it has loaded the jobs: what it counts in its
// first second as the leader, such as the runs that its predecessor lost, is an increase then.
func TestAFollowersCountersExist(t *testing.T) {
	w := newWorld(t)
	lost := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, s := range w.series("runs_total") {
			if strings.Contains(s, "outcome=lost") {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	}
	w.JobsLoaded(jobs("a", "b").Jobs)
	lost("runs_total{job_name=a,outcome=lost} 0", "runs_total{job_name=b,outcome=lost} 0")
	w.Observe(engine.TermBegan{Term: 2})
	w.Observe(ended("a", run.StateLost, 0))
	w.Observe(jobs("a", "b", "of-the-api"))
	lost("runs_total{job_name=a,outcome=lost} 1", "runs_total{job_name=b,outcome=lost} 0", "runs_total{job_name=of-the-api,outcome=lost} 0")
	w.JobsLoaded(jobs("a").Jobs)
	w.Observe(jobs("a", "of-the-api"))
	lost("runs_total{job_name=a,outcome=lost} 1", "runs_total{job_name=of-the-api,outcome=lost} 0")
	w.Observe(engine.TermEnded{Term: 2})
	w.JobsLoaded(jobs("a", "c").Jobs)
	lost("runs_total{job_name=a,outcome=lost} 1", "runs_total{job_name=c,outcome=lost} 0")
}
