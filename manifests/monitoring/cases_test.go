package monitoring_test

import (
	"fmt"
	"slices"
)

// job are the series of one job as its leader tells them: times in seconds since the begin, each either
// constant or, with a step, growing by the minute.
func job(name, next, start, success, failure string, more ...string) []string {
	l := fmt.Sprintf("job_name=%q", name)
	out := []string{
		s(0, "job_last_start_timestamp_seconds", start, l), s(0, "job_last_success_timestamp_seconds", success, l),
		s(0, "job_last_failure_timestamp_seconds", failure, l), s(0, "job_first_seen_timestamp_seconds", "0x300", l),
	}
	if next != "" {
		out = append(out, s(0, "job_next_fire_timestamp_seconds", next, l))
	}
	return append(out, more...)
}

func unfinished(job, values string) string {
	return s(0, "job_unfinished_runs", values, fmt.Sprintf("job_name=%q", job))
}

func paused(job, values string) string {
	return s(0, "job_paused", values, fmt.Sprintf("job_name=%q", job))
}

func due(job, values string) string {
	return s(0, "job_success_due_timestamp_seconds", values, fmt.Sprintf("job_name=%q", job))
}

func alertCases() []alertCase {
	return slices.Concat(clusterCases(), jobCases(), counterCases(), replicaCases(), []alertCase{normalWork(), rollOut()})
}

func clusterCases() []alertCase {
	up := s(0, "build_info", "1x60", `version="v1"`)
	return []alertCase{
		{"nothing is scraped", "LeasecronAbsent", []string{s(0, "build_info", "1x10 _x60")}, []string{"30m"}, []firing{{nil, "No sidecar of the app is scraped."}}},
		{"a short gap", "LeasecronAbsent", []string{s(0, "build_info", "1x10 _x12 1x60")}, []string{"15m", "21m", "40m"}, nil},

		{"nobody leads", "LeasecronNoLeader", []string{up, s(0, "leader", "0x60"), s(1, "leader", "1x10 0x50")}, []string{"20m"}, []firing{{nil, "No sidecar leads: no job runs."}}},
		{"the leadership moves to a follower", "LeasecronNoLeader", []string{s(0, "leader", "0x10 1x50"), s(1, "leader", "1x8 0x52")}, []string{"9m", "10m", "15m", "40m"}, nil},

		{"two lead", "LeasecronSeveralLeaders", []string{s(0, "leader", "1x60"), s(1, "leader", "0x10 1x50")}, []string{"20m"}, []firing{{nil, "2 sidecars lead at once."}}},
		{"the old leader's last value is not gone yet", "LeasecronSeveralLeaders", []string{s(0, "leader", "1x11 0x50"), s(1, "leader", "0x10 1x50")}, []string{"11m", "12m", "15m"}, nil},

		{
			"the leadership was lost three times", "LeasecronLeadershipFlapping",
			[]string{s(0, "leadership_lost_total", "0x60 1 1x10 2 2x10 3x30"), s(0, "leader_transitions_total", "1x200")},
			[]string{"100m"},
			[]firing{{nil, "The leadership changes all the time."}},
		},
		{"a roll-out of five replicas", "LeasecronLeadershipFlapping", []string{
			s(0, "leader_transitions_total", "0x60 1x60"), s(1, "leader_transitions_total", "0x62 1x60"), s(2, "leader_transitions_total", "0x64 1x60"),
			s(3, "leader_transitions_total", "0x66 1x60"), s(4, "leader_transitions_total", "0x68 1x60"), s(0, "leadership_lost_total", "0x60 1x60"),
		}, []string{"60m", "70m", "100m"}, nil},

		{"renewals fail", "LeasecronLeaseRenewalFailing", []string{s(0, "lease_renew_failures_total", "0x10 0+2x60")}, []string{"30m"}, []firing{{nil, "The Lease can hardly be renewed."}}},
		{"one renewal fails", "LeasecronLeaseRenewalFailing", []string{s(0, "lease_renew_failures_total", "0x10 1x60")}, []string{"15m", "30m"}, nil},
		{"swaps fail", "LeasecronLedgerFailing", []string{s(0, "ledger_commit_failures_total", "0x10 0+2x60")}, []string{"30m"}, []firing{{nil, "The ledger can hardly be written."}}},
		{"one swap fails", "LeasecronLedgerFailing", []string{s(0, "ledger_commit_failures_total", "0x10 1x60")}, []string{"15m", "30m"}, nil},

		{"the ledger fills", "LeasecronLedgerNearLimit", []string{s(0, "ledger_bytes", "750x60"), s(0, "ledger_limit_bytes", "1000x60")}, []string{"20m"}, []firing{{nil, "The ledger is 75% full."}}},
		{"a burst in the ledger", "LeasecronLedgerNearLimit", []string{s(0, "ledger_bytes", "10x10 900x10 10x60"), s(0, "ledger_limit_bytes", "1000x100")}, []string{"15m", "20m", "40m"}, nil},

		{"the catalog is full", "LeasecronDefinitionsNotStored", []string{s(0, "catalog_writable", "1x10 0x50")}, []string{"20m"}, []firing{{nil, "The newest job definitions are not in force: the catalog does not take them."}}},
		{"a write of the catalog fails and the next does not", "LeasecronDefinitionsNotStored", []string{s(0, "catalog_writable", "1x10 0x2 1x50")}, []string{"12m", "20m"}, nil},
		{"the history is gone", "LeasecronHistoryNotWritten", []string{s(0, "history_writable", "1x10 0x50")}, []string{"20m"}, []firing{{nil, "What ended is not written to the history."}}},
		{"the leader changes", "LeasecronHistoryNotWritten", []string{s(0, "history_writable", "1x10 0x2 stale"), s(1, "history_writable", "_x12 1x50")}, []string{"12m", "20m"}, nil},

		{"a record was edited by hand", "LeasecronRecordsUnreadable", []string{s(0, "unreadable_records", "0x10 1x50", `document="ledger"`), s(0, "unreadable_records", "0x60", `document="catalog"`)}, []string{"20m"}, []firing{{map[string]string{"document": "ledger"}, "Records of the ledger make no sense to the leader."}}},
		{"and repaired", "LeasecronRecordsUnreadable", []string{s(0, "unreadable_records", "0x10 1x2 0x50", `document="ledger"`)}, []string{"12m", "20m"}, nil},

		{"runs start late", "LeasecronFiringLate", []string{
			s(0, "fire_lateness_seconds_bucket", "0x80", `le="5"`), s(0, "fire_lateness_seconds_bucket", "0+10x80", `le="15"`), s(0, "fire_lateness_seconds_bucket", "0+10x80", `le="+Inf"`),
		}, []string{"40m"}, []firing{{nil, "Runs start 14.9s late."}}},
		{"runs start late, by native histograms", "LeasecronFiringLate", []string{
			s(0, "fire_lateness_seconds", "{{schema:0 sum:0 count:0 buckets:[0]}}+{{schema:0 sum:100 count:10 buckets:[0 0 0 0 10]}}x80"),
		}, []string{"40m"}, []firing{{nil, "Runs start 15.89s late."}}},
		{"runs start in time", "LeasecronFiringLate", []string{
			s(0, "fire_lateness_seconds_bucket", "0+10x80", `le="5"`), s(0, "fire_lateness_seconds_bucket", "0+10x80", `le="15"`), s(0, "fire_lateness_seconds_bucket", "0+10x80", `le="+Inf"`),
		}, []string{"40m"}, nil},
	}
}

func jobCases() []alertCase {
	const stale, failing = "Job a has not succeeded for two of its instants or more.", "Job a fails."
	return []alertCase{
		{"due since minute 10", "LeasecronJobOverdue", append(job("a", "600x60", "0x60", "0x60", "0x60"), unfinished("a", "0x60")), []string{"20m"}, []firing{{of("a"), "Job a is due for 10m 0s and does not start."}}},
		{"due, and its run goes on", "LeasecronJobOverdue", append(job("a", "600x60", "0x60", "0x60", "0x60"), unfinished("a", "1x60")), []string{"20m"}, nil},
		{"due next hour", "LeasecronJobOverdue", append(job("a", "3600x60", "0x60", "0x60", "0x60"), unfinished("a", "0x60")), []string{"20m", "59m"}, nil},
		{"by hand only", "LeasecronJobOverdue", append(job("a", "", "0x60", "0x60", "0x60"), unfinished("a", "0x60")), []string{"20m"}, nil},

		{"it never succeeded", "LeasecronJobStale", append(job("a", "3600x60", "0x60", "0x60", "0x60"), unfinished("a", "0x60"), due("a", "600x60")), []string{"25m"}, []firing{{of("a"), stale}}},
		{"a late run is under way", "LeasecronJobStale", append(job("a", "3600x60", "0x60", "0x60", "0x60"), unfinished("a", "1x60"), due("a", "600x60")), []string{"25m"}, nil},
		{"a run hangs for more than a day", "LeasecronJobStale", append(job("a", "3600x1600", "0x1600", "0x1600", "0x1600"), unfinished("a", "1x1600"), due("a", "600x1600")), []string{"1500m"}, []firing{{of("a"), stale}}},
		{"a success is due in an hour", "LeasecronJobStale", append(job("a", "3600x60", "0x60", "0x60", "0x60"), unfinished("a", "0x60"), due("a", "3600x60")), []string{"25m", "59m"}, nil},
		{"paused: no success is due", "LeasecronJobStale", append(job("a", "3600x60", "0x60", "0x60", "0x60"), unfinished("a", "0x60"), paused("a", "1x60")), []string{"25m"}, nil},

		{"the newest run failed", "LeasecronJobFailing", append(job("a", "9000x60", "540x60", "300x60", "0x10 600x50"), paused("a", "0x60")), []string{"20m"}, []firing{{of("a"), failing}}},
		{"a daily job failed hours ago", "LeasecronJobFailing", append(job("a", "90000x300", "540x300", "300x300", "600x300"), paused("a", "0x300")), []string{"290m"}, []firing{{of("a"), failing}}},
		{"a later run succeeded", "LeasecronJobFailing", append(job("a", "9000x60", "540x60", "0x12 720x50", "0x10 600x50"), paused("a", "0x60")), []string{"13m", "20m"}, nil},
		{"it failed and was paused", "LeasecronJobFailing", append(job("a", "9000x60", "540x60", "300x60", "600x60"), paused("a", "1x60")), []string{"20m", "50m"}, nil},
		{"by hand only, and it failed", "LeasecronJobFailing", append(job("a", "", "540x100", "300x100", "600x100"), paused("a", "0x100")), []string{"20m"}, []firing{{of("a"), failing}}},
		{"by hand only, and it failed long ago", "LeasecronJobFailing", append(job("a", "", "540x100", "300x100", "600x100"), paused("a", "0x100")), []string{"75m", "90m"}, nil},

		{"a run holds up the next ones", "LeasecronJobStuck", append(job("a", "120x200", "60x200", "0x200", "0x200"), unfinished("a", "1x200")), []string{"121m"}, []firing{{of("a"), "A run of job a takes 2h 0m 0s and holds up the next ones."}}},
		{"a run has instants skipped", "LeasecronJobStuck", append(job("a", "90000x200", "60x200", "0x200", "0x200"), unfinished("a", "1x200"),
			s(0, "missed_triggers_total", "0x30 0+1x200", `job_name="a"`, `reason="overlap"`)), []string{"121m"}, []firing{{of("a"), "A run of job a takes 2h 0m 0s and holds up the next ones."}}},
		{"a long run of a daily job", "LeasecronJobStuck", append(job("a", "90000x200", "60x200", "0x200", "0x200"), unfinished("a", "1x200"),
			s(0, "missed_triggers_total", "0x200", `job_name="a"`, `reason="overlap"`)), []string{"121m", "180m"}, nil},
		{"short runs one after the other", "LeasecronJobStuck", append(job("a", "0+60x200", "0+60x200", "0+60x200", "0x200"), unfinished("a", "1x200")), []string{"121m"}, nil},

		{"two runs wait for a person", "LeasecronRunNeedsReview", []string{s(0, "job_runs_in_review", "0x10 2x50", `job_name="a"`)}, []string{"20m"}, []firing{{of("a"), "2 runs of job a wait for a person."}}},
		{"none waits", "LeasecronRunNeedsReview", []string{s(0, "job_runs_in_review", "0x10 2x3 0x50", `job_name="a"`)}, []string{"12m", "20m"}, nil},
		{"it cannot be computed", "LeasecronJobBroken", []string{s(0, "job_error", "1x60", `job_name="a"`)}, []string{"20m"}, []firing{{of("a"), "Job a cannot run."}}},
		{"it can", "LeasecronJobBroken", []string{s(0, "job_error", "0x60", `job_name="a"`)}, []string{"20m"}, nil},
	}
}

func counterCases() []alertCase {
	missed := func(values, reason string) string {
		return s(0, "missed_triggers_total", values, `job_name="a"`, fmt.Sprintf("reason=%q", reason))
	}
	lost := func(values string) string {
		return s(0, "runs_total", values, `job_name="a"`, `outcome="lost"`)
	}
	return []alertCase{
		{"instants were too late", "LeasecronTriggersMissed", []string{missed("0x20 3x60", "misfire")}, []string{"21m"}, []firing{{
			map[string]string{"job_name": "a", "reason": "misfire"}, "Job a missed 3 instants: misfire.",
		}}},
		{"a new process missed some before its first scrape", "LeasecronTriggersMissed", []string{missed("_x20 4x60", "window"), s(0, "process_start_time_seconds", "_x20 1199x60")}, []string{"22m"}, []firing{{
			map[string]string{"job_name": "a", "reason": "window"}, "Job a missed 4 instants: window.",
		}}},
		{"it was long ago", "LeasecronTriggersMissed", []string{missed("0x20 3x60", "misfire"), s(0, "process_start_time_seconds", "0x80")}, []string{"20m", "40m"}, nil},
		{"an old process is scraped for the first time", "LeasecronTriggersMissed", []string{missed("_x50 7x60", "misfire"), s(0, "process_start_time_seconds", "_x50 0x60")}, []string{"51m", "60m"}, nil},
		{"the job's own policy skips", "LeasecronTriggersMissed", []string{missed("0+1x60", "overlap"), missed("0+1x60", "resume-skip")}, []string{"30m"}, nil},

		{"a run was lost", "LeasecronRunsLost", []string{lost("0x20 1x60")}, []string{"21m"}, []firing{{of("a"), "1 runs of job a were lost."}}},
		{"runs fail and none is lost", "LeasecronRunsLost", []string{lost("0x60"), s(0, "runs_total", "0+1x60", `job_name="a"`, `outcome="failed"`)}, []string{"21m"}, nil},
	}
}

func replicaCases() []alertCase {
	return []alertCase{
		{"refused", "LeasecronConfigRefused", []string{s(0, "config_last_reload_successful", "1x60"), s(1, "config_last_reload_successful", "1x10 0x50")}, []string{"20m"}, []firing{{nil, "Job definitions are missing or were refused."}}},
		{"a new replica has not read them yet", "LeasecronConfigRefused", []string{s(0, "config_last_reload_successful", "1x60"), s(1, "config_last_reload_successful", "_x10 0x2 1x50")}, []string{"11m", "12m", "20m"}, nil},
		{"the Role lacks a verb", "LeasecronRightMissing", []string{s(0, "missing_rights", "2x60"), s(1, "missing_rights", "2x60")}, []string{"20m"}, []firing{{nil, "The sidecars lack 2 of the rights that they use."}}},
		{"the Role is applied a moment after the pod", "LeasecronRightMissing", []string{s(0, "missing_rights", "2x3 0x60")}, []string{"3m", "20m"}, nil},
		{"a file is gone", "LeasecronSigningSecretRefused", []string{s(0, "signing_secrets_last_reload_successful", "1x10 0x50")}, []string{"20m"}, []firing{{nil, "A signing secret cannot be read."}}},
		{"all is well", "LeasecronSigningSecretRefused", []string{s(0, "signing_secrets_last_reload_successful", "1x60")}, []string{"20m"}, nil},
		{"far behind", "LeasecronClockSkew", []string{s(0, "clock_skew_seconds", "-90x60"), s(0, "clock_skew_limit_seconds", "60x60")}, []string{"20m"}, []firing{{pod(0), "The clock of shop-0 is off by 1m 30s."}}},
		{"a little ahead", "LeasecronClockSkew", []string{s(0, "clock_skew_seconds", "2x60"), s(0, "clock_skew_limit_seconds", "60x60")}, []string{"20m"}, nil},
		{"of one replica", "LeasecronAppUnreachable", []string{s(0, "app_reachable", "1x60"), s(1, "app_reachable", "1x10 0x50")}, []string{"30m"}, []firing{{pod(1), "The sidecar of shop-1 cannot reach its app."}}},
		{"starts slowly", "LeasecronAppUnreachable", []string{s(0, "app_reachable", "0x10 1x50")}, []string{"10m", "30m"}, nil},
		{"gives no answer", "LeasecronTargetDown", []string{s(0, "up", "1x10 0x50")}, []string{"30m"}, []firing{{pod(0), "The sidecar of shop-0 cannot be scraped."}}},
		{
			"the app's own target does not, and a pod ends", "LeasecronTargetDown",
			[]string{s(0, "up", "1x60"), s(1, "up", "1x10 0x2 stale"), `up{namespace="web",app="shop",job="web/shop",pod="shop-0",instance="10.0.0.0:8080"} 0x60`},
			[]string{"12m", "30m"},
			nil,
		},
	}
}

// replica are the series that every sidecar has, for n minutes after a pause.
func replica(pod, pause, n int, leader string, started int) []string {
	v := func(value string) string {
		if pause == 0 {
			return fmt.Sprintf("%sx%d", value, n)
		}
		return fmt.Sprintf("_x%d %sx%d", pause, value, n)
	}
	out := []string{s(pod, "leader", leader), s(pod, "process_start_time_seconds", v(fmt.Sprint(started)))}
	for metric, value := range map[string]string{
		"up": "1", "build_info": "1", "config_last_reload_successful": "1", "app_reachable": "1", "clock_skew_seconds": "0.2", "clock_skew_limit_seconds": "60",
		"ledger_bytes": "4000", "ledger_limit_bytes": "921600", "leadership_lost_total": "0", "ledger_commit_failures_total": "0", "lease_renew_failures_total": "0",
	} {
		out = append(out, s(pod, metric, v(value)))
	}
	for _, name := range []string{"a", "paused", "by-hand"} {
		for _, outcome := range []string{"succeeded", "failed", "canceled", "lost"} {
			out = append(out, s(pod, "runs_total", v("0"), fmt.Sprintf("job_name=%q", name), fmt.Sprintf("outcome=%q", outcome)))
		}
		for _, reason := range []string{"misfire", "window", "overlap", "resume-skip", "lost"} {
			out = append(out, s(pod, "missed_triggers_total", v("0"), fmt.Sprintf("job_name=%q", name), fmt.Sprintf("reason=%q", reason)))
		}
	}
	return out
}

// normalWork: three replicas, of which one leads a job of every ten minutes, one that is paused, and one that
// is only run by hand. Nothing fires.
func normalWork() alertCase {
	series := slices.Concat(
		replica(0, 0, 300, "1x300", 0), replica(1, 0, 300, "0x300", 0), replica(2, 0, 300, "0x300", 0),
		job("a", "600x9 1200x9 1800x9 2400x9 3000x9 3600x9 4200x9", "0x9 600x9 1200x9 1800x9 2400x9 3000x9 3600x9", "0x9 601x9 1201x9 1801x9 2401x9 3001x9 3601x9", "0x70"),
		job("paused", "36000x300", "0x300", "0x300", "0x300"), job("by-hand", "", "0x300", "0x300", "0x300"),
		[]string{
			unfinished("a", "0x300"), unfinished("paused", "0x300"), unfinished("by-hand", "0x300"),
			paused("a", "0x300"), paused("paused", "1x300"), paused("by-hand", "0x300"),
			due("a", "1200x9 1800x9 2400x9 3000x9 3600x9 4200x9 4800x9"),
		})
	return alertCase{"an hour of normal work", "", series, []string{"9m", "30m", "61m"}, nil}
}

// rollOut: both replicas are replaced, one after the other; the leadership goes from one to the next.
func rollOut() alertCase {
	series := slices.Concat(
		replica(0, 0, 30, "1x30 stale", 0), replica(1, 0, 33, "0x33 stale", 0),
		replica(2, 30, 60, "_x30 0x1 1x60", 1800), replica(3, 33, 60, "_x33 0x60", 1980),
		[]string{
			s(0, "leader_transitions_total", "1x30 stale"), s(1, "leader_transitions_total", "0x33 stale"),
			s(2, "leader_transitions_total", "_x30 0 1x60"), s(3, "leader_transitions_total", "_x33 0x60"),
		})
	return alertCase{"a roll-out", "", series, []string{"31m", "32m", "35m", "40m", "60m"}, nil}
}
