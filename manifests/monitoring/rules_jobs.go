package monitoring

import "fmt"

// missedReasons are the reasons for missed instants that nobody has chosen and no other alert tells: the
// others follow from the job's own overlap policy or from how somebody resumed it, or are lost runs.
const missedReasons = `reason=~"misfire|window"`

// jobs are the alerts about each job. Times and states of a job are compared within what one replica
// tells: of a cluster's job only the leader tells them, of an instance's own job each replica.
func (q queries) jobs() []Alert {
	const hour, day = 3600, 86400
	since := func(metric string) string { return "time() - " + q.series(metric) }
	worst := func(expr string) string { return fmt.Sprintf("max %s (%s)", byJob, expr) }
	unfinished := q.series("job_unfinished_runs")
	failing := fmt.Sprintf("(time() - (%s > %s) unless %s == 1)",
		q.series("job_last_failure_timestamp_seconds"), q.series("job_last_success_timestamp_seconds"), q.series("job_paused"))
	long := fmt.Sprintf("%s > %d and %s > 0", since("job_last_start_timestamp_seconds"), hour, unfinished)
	return []Alert{
		{
			Name: "LeasecronJobOverdue", Severity: critical, For: "5m",
			Expr:    worst(fmt.Sprintf("%s > 120 and %s == 0", since("job_next_fire_timestamp_seconds"), unfinished)),
			Summary: "Job {{ $labels.job_name }} is due for {{ $value | humanizeDuration }} and does not start.",
			Detail:  "The job is due, nothing of it runs, and nobody decides what becomes of it: the leader's planning stands still.",
		}, {
			Name: "LeasecronJobStale", Severity: critical, For: "10m",
			Expr: worst(fmt.Sprintf("%s > 0 and %s == 0 or %s > %d",
				since("job_success_due_timestamp_seconds"), unfinished, since("job_success_due_timestamp_seconds"), day)),
			Summary: "Job {{ $labels.job_name }} has not succeeded for two of its instants or more.",
			Detail:  "Two instants of the job have passed since its last success, or since it was first seen, changed or resumed. Its history says what became of them.",
		}, {
			Name: "LeasecronJobFailing", Severity: warning, For: "5m",
			// A job that is not due again cannot make up for its failure: one hour of that is enough.
			Expr:    worst(fmt.Sprintf("%s < %d or %s and %s", failing, hour, failing, q.series("job_next_fire_timestamp_seconds"))),
			Summary: "Job {{ $labels.job_name }} fails.",
			Detail:  "The newest run of the job failed or was lost, retries included, {{ $value | humanizeDuration }} ago. Its history has the status and the beginning of the answer.",
		}, {
			Name: "LeasecronJobStuck", Severity: warning, For: "5m",
			Expr: fmt.Sprintf("%s or %s and sum %s (%s) > 0",
				worst(fmt.Sprintf("%s and %s > %d", long, since("job_next_fire_timestamp_seconds"), hour)),
				worst(long), byJob, q.recent("1h", "missed_triggers_total", `reason="overlap"`)),
			Summary: "A run of job {{ $labels.job_name }} takes {{ $value | humanizeDuration }} and holds up the next ones.",
			Detail:  "A run has not ended for an hour, or waits that long for its next attempt, and instants of the job wait for it or were skipped because of it.",
		}, {
			Name: "LeasecronTriggersMissed", Severity: warning,
			Expr:    fmt.Sprintf("sum by (namespace, app, job_name, reason) (%s) > 0", q.recent("15m", "missed_triggers_total", missedReasons)),
			Summary: "Job {{ $labels.job_name }} missed {{ $value | humanize }} instants: {{ $labels.reason }}.",
			Detail:  "Instants of the job got no run of their own. misfire: too late, so that one run stands for several of them, or none does; window: older than the job's window.",
		}, {
			Name: "LeasecronRunsLost", Severity: warning,
			Expr:    fmt.Sprintf("sum %s (%s) > 0", byJob, q.recent("15m", "runs_total", `outcome="lost"`)),
			Summary: "{{ $value | humanize }} runs of job {{ $labels.job_name }} were lost.",
			Detail:  "The sidecar that had sent the run is gone, so it is not known whether the app did the work. The job's recovery setting says what follows.",
		}, {
			Name: "LeasecronRunNeedsReview", Severity: warning, For: "5m",
			Expr:    worst(q.series("job_runs_in_review") + " > 0"),
			Summary: "{{ $value }} runs of job {{ $labels.job_name }} wait for a person.",
			Detail:  "It is not known how these runs ended, and the job asks for a person to say. Until then it counts as running.",
		}, {
			Name: "LeasecronJobBroken", Severity: critical, For: "5m",
			Expr:    worst(q.series("job_error") + " > 0"),
			Summary: "Job {{ $labels.job_name }} cannot run.",
			Detail:  "The job's definition cannot be computed any more, or a record of it cannot be read. It stands still, the others do not.",
		},
	}
}

// replicas are the alerts about each sidecar.
func (q queries) replicas() []Alert {
	return []Alert{
		{
			Name: "LeasecronConfigRefused", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("min %s (%s) < 1", byApp, q.series("config_last_reload_successful")),
			Summary: "Job definitions are missing or were refused.",
			Detail:  "The newest job definitions are not in force; the last good ones stay so. /readyz?verbose and the log name each mistake with its line.",
		}, {
			Name: "LeasecronRightMissing", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("max %s (%s) > 0", byApp, q.series("missing_rights")),
			Summary: "The sidecars lack {{ $value }} of the rights that they use.",
			Detail:  "The Role does not allow something that the sidecars do. Their log and /readyz?verbose name verb and resource, and the command that repairs it.",
		}, {
			Name: "LeasecronSigningSecretRefused", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("min %s (%s) < 1", byApp, q.series("signing_secrets_last_reload_successful")),
			Summary: "A signing secret cannot be read.",
			Detail:  "A file of LEASECRON_SIGNING_SECRET_FILES holds no secret. Its last good one is still in use, until the process restarts.",
		}, {
			Name: "LeasecronClockSkew", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("abs(%s) > 0.5 * %s", q.series("clock_skew_seconds"), q.series("clock_skew_limit_seconds")),
			Summary: "The clock of {{ $labels.pod }} is off by {{ $value | humanizeDuration }}.",
			Detail:  "The clock is off the API server's by more than half of what is allowed. Beyond that the sidecar does not lead.",
		}, {
			Name: "LeasecronAppUnreachable", Severity: warning, For: "15m",
			Expr:    fmt.Sprintf("%s < 1", q.series("app_reachable")),
			Summary: "The sidecar of {{ $labels.pod }} cannot reach its app.",
			Detail:  "The app of this replica does not answer its sidecar, which therefore does not lead.",
		}, {
			Name: "LeasecronTargetDown", Severity: warning, For: "10m",
			Expr:    fmt.Sprintf("up{%s} == 0", q.selector(fmt.Sprintf("job=%q", scrapeJob))),
			Summary: "The sidecar of {{ $labels.pod }} cannot be scraped.",
			Detail:  "Prometheus finds this sidecar and gets no answer: it hangs, or a NetworkPolicy is in the way.",
		},
	}
}
