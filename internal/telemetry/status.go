package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
)

var (
	leaderDesc   = desc("leader", "1 while this sidecar leads, else 0.")
	renewAgeDesc = desc("lease_renew_age_seconds",
		"Time since the last successful renewal of the Lease was sent; only while this sidecar leads.")
	inFlightDesc    = desc("runs_in_flight", "Runs of this sidecar whose request has not ended.")
	ledgerBytesDesc = desc("ledger_bytes", "Size of the ledger as this sidecar last saw it.")

	signingDesc = desc("signing_secrets_last_reload_successful",
		"1 while every signing secret file holds a secret, 0 while one does not and its last good one is in use; absent without such files.")

	nextFireDesc = desc("job_next_fire_timestamp_seconds",
		"When the job is due next, or since when it has been; absent without a next instant. Leader only.", labelJob)
	lastSuccessDesc = desc("job_last_success_timestamp_seconds",
		"When the job last succeeded; 0: never. It never goes back. Leader only.", labelJob)
	pausedDesc    = desc("job_paused", "1 while the job is paused, else 0. Leader only.", labelJob)
	firstSeenDesc = desc("job_first_seen_timestamp_seconds",
		"When the job was first loaded. Leader only.", labelJob)
)

// statusCollector exports what engine and election know, asked at each scrape.
type statusCollector struct {
	telemetry *Telemetry

	mu          sync.Mutex
	lastSuccess map[string]float64 // the greatest value told of each job
}

// Describe implements [prometheus.Collector].
func (c *statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		leaderDesc, renewAgeDesc, inFlightDesc, ledgerBytesDesc, signingDesc,
		nextFireDesc, lastSuccessDesc, pausedDesc, firstSeenDesc,
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
	for i := range status.Jobs {
		// An instance's own jobs are its own to tell, whoever leads.
		if cluster || status.Jobs[i].Job.Scope == config.ScopeInstance {
			c.collectJob(ch, &status.Jobs[i])
		}
	}
	if !cluster {
		return
	}
	c.forget(status.Jobs)
}

func (c *statusCollector) collectJob(ch chan<- prometheus.Metric, j *engine.JobStatus) {
	name := j.Job.Name
	// A due instant that nobody decides must make time() - next grow; that is what an alert
	// watches. While a job is paused its instants wait on purpose.
	next := j.Next
	if !j.DueSince.IsZero() && !j.Paused {
		next = j.DueSince
	}
	if !next.IsZero() {
		ch <- constGauge(nextFireDesc, timestamp(next), name)
	}
	ch <- constGauge(lastSuccessDesc, c.latest(name, timestamp(j.LastSuccess)), name)
	ch <- constGauge(pausedDesc, truth(j.Paused), name)
	ch <- constGauge(firstSeenDesc, timestamp(j.FirstSeen), name)
}

// latest is the greatest last success ever told of a job.
func (c *statusCollector) latest(job string, at float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	at = max(at, c.lastSuccess[job])
	c.lastSuccess[job] = at
	return at
}

// forget drops what was told of jobs that have left.
func (c *statusCollector) forget(jobs []engine.JobStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lastSuccess) <= len(jobs) {
		return
	}
	here := make(map[string]float64, len(jobs))
	for i := range jobs {
		name := jobs[i].Job.Name
		here[name] = c.lastSuccess[name]
	}
	c.lastSuccess = here
}

func constGauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
