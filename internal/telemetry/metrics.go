package telemetry

import (
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// namespace is the prefix of every metric.
const namespace = "leasecron"

// The labels. Never "job" or "instance": those are Prometheus' own.
const (
	labelJob       = "job_name"
	labelDocument  = "document"
	labelOutcome   = "outcome"
	labelReason    = "reason"
	labelVersion   = "version"
	labelCommit    = "commit"
	labelGoVersion = "goversion"
)

// Options says what a [Telemetry] is told once.
type Options struct {
	Version string // of the program, for build_info
	Commit  string // of the source, for build_info
	// Runtime adds the metrics of the Go runtime and of the process (go_…, process_…).
	Runtime bool
	// Now is the clock that ages are counted by; nil is time.Now.
	Now func() time.Time
}

// Lease is what an election knows of the Lease at one moment.
type Lease struct {
	// Leading: this sidecar holds the Lease and it has not expired by its own clocks.
	Leading bool
	// RenewedAt is when the last successful renewal was sent; zero: never, or not leading.
	RenewedAt time.Time
}

// Surroundings is what a sidecar knows of what it depends on, at one moment.
type Surroundings struct {
	ClockAhead   time.Duration // how far its clock is ahead of the API server's; 0: not known
	ClockLimit   time.Duration // a sidecar whose clock is off by more does not lead
	AppReachable bool          // the app answered when it was last asked
	LedgerLimit  int           // bytes that the ledger may have
}

// Telemetry keeps the metrics of one sidecar. It is an [engine.Observer]. All its methods are
// safe for concurrent use and none of them blocks.
type Telemetry struct {
	now     func() time.Time
	status  atomic.Pointer[func() engine.Status]
	lease   atomic.Pointer[func() Lease]
	signing atomic.Pointer[func() error]
	rights  atomic.Pointer[func() int]
	jobs    jobCounts

	namedLeases namedLeases

	surroundings atomic.Pointer[func() Surroundings]

	runDuration    prometheus.Histogram
	fireLateness   prometheus.Histogram
	manualTriggers prometheus.Counter
	retries        prometheus.Counter

	ledgerCommit         prometheus.Histogram
	ledgerCommitFailures prometheus.Counter
	recordsDropped       prometheus.Counter

	leaderTransitions prometheus.Counter
	leadershipLost    prometheus.Counter
	renew             prometheus.Histogram
	renewFailures     prometheus.Counter

	traceExportFailures prometheus.Counter

	reloadSuccessful  prometheus.Gauge
	reloadSuccessTime prometheus.Gauge
}

var _ engine.Observer = (*Telemetry)(nil)

// New creates the metrics and registers them with reg. It panics when one of them is
// registered already: a registry serves one Telemetry.
func New(reg prometheus.Registerer, opts Options) *Telemetry {
	t := &Telemetry{now: opts.Now}
	if t.now == nil {
		t.now = time.Now
	}
	t.jobs.init()

	t.runDuration = histogram("run_duration_seconds",
		"Time from the start of a run's request to its end.",
		0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400)
	t.fireLateness = histogram("fire_lateness_seconds",
		"Time from the moment at which a run was due to the start of its request.",
		0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60)
	t.manualTriggers = counter("manual_triggers_total", "Runs asked for by hand and accepted.")
	t.retries = counter("retries_total", "Further attempts planned after a failed one.")

	t.ledgerCommit = histogram("ledger_commit_seconds",
		"Time that one successful swap of the ledger took, its retries after conflicts included.",
		0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
	t.ledgerCommitFailures = counter("ledger_commit_failures_total", "Swaps of the ledger that ended with an error.")

	t.recordsDropped = counter("history_records_dropped_total",
		"Records of what ended that were dropped because the history took none and the ledger needed their room.")

	t.leaderTransitions = counter("leader_transitions_total", "Times that this sidecar became the leader; over all sidecars, the changes of leadership.")
	t.leadershipLost = counter("leadership_lost_total",
		"Times that this sidecar stopped leading without having handed over on purpose.")
	t.renew = histogram("lease_renew_seconds", "Time that one successful renewal of the Lease took.",
		0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
	t.renewFailures = counter("lease_renew_failures_total", "Renewals of the Lease that failed or got no answer.")

	t.traceExportFailures = counter("trace_export_failures_total", "Batches of spans that the collector did not take.")

	t.reloadSuccessful = gauge("config_last_reload_successful",
		"1 when the job definitions seen last are in force, 0 when they were missing or refused.")
	t.reloadSuccessTime = gauge("config_last_reload_success_timestamp_seconds",
		"When job definitions were last accepted; 0: never.")

	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels tell which program this is.",
		ConstLabels: prometheus.Labels{
			labelVersion: opts.Version, labelCommit: opts.Commit, labelGoVersion: runtime.Version(),
		},
	})
	info.Set(1)

	reg.MustRegister(
		t.runDuration, t.fireLateness, t.manualTriggers, t.retries,
		t.ledgerCommit, t.ledgerCommitFailures, t.recordsDropped,
		t.leaderTransitions, t.leadershipLost, t.renew, t.renewFailures,
		t.traceExportFailures, t.reloadSuccessful, t.reloadSuccessTime, info,
		&t.jobs, &statusCollector{telemetry: t, latest: map[string]state.Latest{}}, &t.namedLeases,
	)
	if opts.Runtime {
		// The two dozen memstats gauges stay out: every series is paid for in every pod.
		reg.MustRegister(
			collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		)
	}
	return t
}

// SetStatus says where to read what the engine knows, at each scrape. Without it the gauges of
// the engine and of its jobs are not exported.
func (t *Telemetry) SetStatus(status func() engine.Status) { t.status.Store(&status) }

// SetLease says where to read what the election knows, at each scrape. Without it the leader
// gauge follows the engine, and the renewal's age is not exported.
func (t *Telemetry) SetLease(lease func() Lease) { t.lease.Store(&lease) }

// SetSigning says where to ask, at each scrape, what is wrong with the signing secrets. Without it
// their gauge is not exported.
func (t *Telemetry) SetSigning(problem func() error) { t.signing.Store(&problem) }

// SetRights says where to ask, at each scrape, how many rights are missing. Without it their gauge is
// not exported.
func (t *Telemetry) SetRights(missing func() int) { t.rights.Store(&missing) }

// SetSurroundings says where to read what the sidecar knows of app, clock and store, at each scrape.
// Without it their gauges are not exported.
func (t *Telemetry) SetSurroundings(f func() Surroundings) { t.surroundings.Store(&f) }

// TraceExportFailed records that a batch of spans was not exported.
func (t *Telemetry) TraceExportFailed() { t.traceExportFailures.Inc() }

// LeaseRenewed records one renewal of the Lease, successful or not. It counts no failure of a
// context that was canceled on purpose; the caller leaves such a renewal out.
func (t *Telemetry) LeaseRenewed(took time.Duration, err error) {
	if err != nil {
		t.renewFailures.Inc()
		return
	}
	t.renew.Observe(seconds(took))
}

// LeadershipLost records that the election ended a term because the Lease was taken away: it had
// expired, somebody else has it, or it is gone. It is not called for a hand-over, nor when the
// engine stepped down, which the engine's events tell.
func (t *Telemetry) LeadershipLost() { t.leadershipLost.Inc() }

// JobsLoaded says which jobs this sidecar would plan if it led: their counters exist from now on.
func (t *Telemetry) JobsLoaded(jobs []config.Job) { t.jobs.load(jobs) }

// ConfigReloaded records that job definitions seen at a time were accepted, or why they were not.
func (t *Telemetry) ConfigReloaded(at time.Time, err error) {
	if err != nil {
		t.reloadSuccessful.Set(0)
		return
	}
	t.reloadSuccessful.Set(1)
	t.reloadSuccessTime.Set(timestamp(at))
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

// histogram is native and classic at once: servers that do not scrape native histograms, the
// default, see the buckets.
func histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// seconds is a duration as a metric tells it; a clock that stepped back makes none negative.
func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }

// timestamp is a time as Unix seconds, 0 for the zero time.
func timestamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}

// outcomes are the states in which an attempt can end, in the order of their columns.
var outcomes = [...]run.State{
	run.StateSucceeded, run.StateFailed, run.StateCanceled, run.StateLost, run.StateNeedsReview,
}

// outcomeLabel is the label of a state.
func outcomeLabel(s run.State) string {
	if s == run.StateNeedsReview {
		return "needs-review"
	}
	return strings.ToLower(string(s))
}
