package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/state"
)

var (
	leaderDesc   = desc("leader", "1 while this sidecar leads, else 0.")
	renewAgeDesc = desc("lease_renew_age_seconds",
		"Time since the last successful renewal of the Lease was sent; only while this sidecar leads.")
	inFlightDesc    = desc("runs_in_flight", "Runs of this sidecar whose request has not ended, or that the app has accepted.")
	ledgerBytesDesc = desc("ledger_bytes", "Size of the ledger as this sidecar last saw it.")
	ledgerLimitDesc = desc("ledger_limit_bytes", "Size beyond which the ledger takes nothing more.")
	catalogDesc     = desc("catalog_writable",
		"0 while the newest job definitions are not in force because the catalog does not take them, else 1. Leader only.")
	historyDesc = desc("history_writable",
		"0 while the history takes nothing of what ended, else 1. Leader only.")
	clockSkewDesc = desc("clock_skew_seconds",
		"How far this sidecar's clock is ahead of the API server's, negative: behind; 0 while that is not known.")
	clockLimitDesc = desc("clock_skew_limit_seconds", "Clock skew beyond which this sidecar does not lead.")
	reachableDesc  = desc("app_reachable", "1 while the app answers, 0 while it does not, or was not asked yet: this sidecar does not lead then.")

	signingDesc = desc("signing_secrets_last_reload_successful",
		"1 while every signing secret file holds a secret, 0 while one does not and its last good one is in use; absent without such files.")

	rightsDesc = desc("missing_rights",
		"Rights in the cluster that this sidecar uses and does not have, as far as known; its log and /readyz?verbose name them. Absent without an API server.")

	unreadableDesc = desc("unreadable_records",
		"Records that this sidecar cannot make sense of and keeps as they are, by document (ledger, catalog, history). Leader only.", labelDocument)

	nextFireDesc = desc("job_next_fire_timestamp_seconds",
		"When the job is due next, or since when it has been; absent without a next instant. Leader only.", labelJob)
	lastSuccessDesc = desc("job_last_success_timestamp_seconds",
		"When the job last succeeded; 0: never. It never goes back. Leader only.", labelJob)
	lastStartDesc = desc("job_last_start_timestamp_seconds",
		"When the newest request of the job was begun, or was due where its sidecar died before telling; 0: never. It never goes back. Leader only.", labelJob)
	lastFailureDesc = desc("job_last_failure_timestamp_seconds",
		"When a run of the job last failed or was lost without a further attempt; 0: never. It never goes back. Leader only.", labelJob)
	successDueDesc = desc("job_success_due_timestamp_seconds",
		"The second instant after the last success, or after the job was first seen, changed or resumed: a job without a success by then is overdue; "+
			"absent without such an instant and while paused. Leader only.", labelJob)
	unfinishedDesc = desc("job_unfinished_runs",
		"Runs of the job that have not ended, those that wait for a slot or for a retry included. Leader only.", labelJob)
	reviewDesc = desc("job_runs_in_review",
		"Runs that wait for a person to say how they ended; of jobs with recovery: review. Leader only.", labelJob)
	errorDesc     = desc("job_error", "1 while the job cannot run, for a reason that the API tells, else 0. Leader only.", labelJob)
	pausedDesc    = desc("job_paused", "1 while a pause keeps all of the job from firing, else 0. Leader only.", labelJob)
	heldDesc      = desc("job_paused_triggers", "Triggers of the job that are paused, by themselves or with the job. Leader only.", labelJob)
	firstSeenDesc = desc("job_first_seen_timestamp_seconds",
		"When the job was first loaded. Leader only.", labelJob)
)

// statusCollector exports what engine and election know, asked at each scrape.
type statusCollector struct {
	telemetry *Telemetry

	mu     sync.Mutex
	latest map[string]state.Latest // the latest times told of each job
}

// Describe implements [prometheus.Collector].
func (c *statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		leaderDesc, renewAgeDesc, inFlightDesc, ledgerBytesDesc, ledgerLimitDesc, catalogDesc, historyDesc, clockSkewDesc, clockLimitDesc, reachableDesc, signingDesc, rightsDesc, unreadableDesc,
		nextFireDesc, lastStartDesc, lastSuccessDesc, lastFailureDesc, successDueDesc,
		unfinishedDesc, reviewDesc, errorDesc, pausedDesc, heldDesc, firstSeenDesc,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *statusCollector) Collect(ch chan<- prometheus.Metric) {
	var status engine.Status
	if f := c.telemetry.status.Load(); f != nil {
		status = (*f)()
		ch <- constGauge(inFlightDesc, float64(status.InFlight))
		ch <- constGauge(ledgerBytesDesc, float64(status.LedgerBytes))
	}
	if f := c.telemetry.signing.Load(); f != nil {
		ch <- constGauge(signingDesc, truth((*f)() == nil))
	}
	if f := c.telemetry.rights.Load(); f != nil {
		ch <- constGauge(rightsDesc, float64((*f)()))
	}
	if f := c.telemetry.surroundings.Load(); f != nil {
		c.collectSurroundings(ch, (*f)())
	}
	leading := status.Leading
	if f := c.telemetry.lease.Load(); f != nil {
		// The Lease's own validity is the stricter truth: it ends by a timer, also when
		// the engine hangs.
		lease := (*f)()
		leading = lease.Leading
		if lease.Leading && !lease.RenewedAt.IsZero() {
			ch <- constGauge(renewAgeDesc, seconds(c.telemetry.now().Sub(lease.RenewedAt)))
		}
	}
	ch <- constGauge(leaderDesc, truth(leading))
	cluster := leading && status.Leading
	if cluster {
		ch <- constGauge(catalogDesc, truth(status.CatalogError == ""))
		ch <- constGauge(historyDesc, truth(status.HistoryError == ""))
		for _, document := range engine.Documents() {
			ch <- prometheus.MustNewConstMetric(unreadableDesc, prometheus.GaugeValue, float64(status.Unreadable[document]), document)
		}
	}
	out := newPoints(perJob * len(status.Jobs))
	for i := range status.Jobs {
		// An instance's own jobs are its own to tell, whoever leads.
		if cluster || status.Jobs[i].Job.Scope == config.ScopeInstance {
			c.collectJob(out, &status.Jobs[i])
		}
	}
	out.send(ch)
	if !cluster {
		return
	}
	c.forget(status.Jobs)
}

func (c *statusCollector) collectSurroundings(ch chan<- prometheus.Metric, s Surroundings) {
	ch <- constGauge(ledgerLimitDesc, float64(s.LedgerLimit))
	ch <- constGauge(clockSkewDesc, s.ClockAhead.Seconds())
	ch <- constGauge(clockLimitDesc, s.ClockLimit.Seconds())
	ch <- constGauge(reachableDesc, truth(s.AppReachable))
}

// perJob is how many series of a job there are at most.
const perJob = 12

func (c *statusCollector) collectJob(out *points, j *engine.JobStatus) {
	name := pair(labelJob, j.Job.Name)
	gauge := func(desc *prometheus.Desc, value float64) { out.add(desc, false, value, name) }
	// A due instant that nobody decides must make time() - next grow; that is what an alert
	// watches. While a job is paused its instants wait on purpose.
	next := j.Next
	if !j.Overdue.IsZero() {
		next = j.Overdue
	}
	if !next.IsZero() {
		gauge(nextFireDesc, timestamp(next))
	}
	latest := c.told(j.Job.Name, j.Latest)
	gauge(lastStartDesc, timestamp(latest.LastStart))
	gauge(lastSuccessDesc, timestamp(latest.LastSuccess))
	gauge(lastFailureDesc, timestamp(latest.LastFailure))
	if !j.SuccessDue.IsZero() {
		gauge(successDueDesc, timestamp(j.SuccessDue))
	}
	gauge(unfinishedDesc, float64(j.InFlight))
	if j.Job.Recovery == config.RecoveryReview || j.NeedsReview > 0 {
		gauge(reviewDesc, float64(j.NeedsReview))
	}
	gauge(errorDesc, truth(j.Error != ""))
	gauge(pausedDesc, truth(j.Paused))
	gauge(heldDesc, float64(j.PausedTriggers()))
	gauge(firstSeenDesc, timestamp(j.FirstSeen))
}

// told is the latest of what is and what ever was told of a job.
func (c *statusCollector) told(job string, latest state.Latest) state.Latest {
	c.mu.Lock()
	defer c.mu.Unlock()
	latest = latest.Merge(c.latest[job])
	c.latest[job] = latest
	return latest
}

// forget drops what was told of jobs that have left.
func (c *statusCollector) forget(jobs []engine.JobStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.latest) <= len(jobs) {
		return
	}
	here := make(map[string]state.Latest, len(jobs))
	for i := range jobs {
		name := jobs[i].Job.Name
		here[name] = c.latest[name]
	}
	c.latest = here
}

func constGauge(d *prometheus.Desc, v float64) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
