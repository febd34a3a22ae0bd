package telemetry_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/internal/telemetry"
)

// jobGauges are what only the leader exports.
var jobGauges = []string{
	"job_error", "job_first_seen_timestamp_seconds", "job_last_failure_timestamp_seconds", "job_last_start_timestamp_seconds",
	"job_last_success_timestamp_seconds", "job_next_fire_timestamp_seconds", "job_paused", "job_paused_triggers", "job_unfinished_runs",
}

// R191: a former leader does not go on exporting old values of jobs.
func TestOnlyTheLeaderTellsAboutTheCluster(t *testing.T) {
	w := newWorld(t)
	w.want([]string{}, jobGauges...)

	w.lead(status("a"))
	w.want([]string{
		"job_error{job_name=a} 0",
		fmt.Sprint("job_first_seen_timestamp_seconds{job_name=a} ", noon.Add(-time.Hour).Unix()),
		"job_last_failure_timestamp_seconds{job_name=a} 0",
		"job_last_start_timestamp_seconds{job_name=a} 0",
		"job_last_success_timestamp_seconds{job_name=a} 0",
		fmt.Sprint("job_next_fire_timestamp_seconds{job_name=a} ", noon.Add(time.Minute).Unix()),
		"job_paused{job_name=a} 0",
		"job_paused_triggers{job_name=a} 0",
		"job_unfinished_runs{job_name=a} 0",
	}, jobGauges...)
	w.want([]string{"leader{} 1"}, "leader")

	// The Lease has run out; the engine has not noticed yet.
	w.lease = struct {
		Leading   bool
		RenewedAt time.Time
	}{}
	w.want([]string{}, jobGauges...)
	w.want([]string{"leader{} 0"}, "leader")

	// The Lease is won, but the ledger has not accepted the takeover.
	w.lease.Leading, w.status.Leading = true, false
	w.want([]string{}, jobGauges...)
}

func TestWhatTheDocumentsRefuseIsToldByTheLeader(t *testing.T) {
	names := []string{"catalog_writable", "history_writable", "history_records_dropped_total"}
	w := newWorld(t)
	w.want([]string{"history_records_dropped_total{} 0"}, names...)
	w.lead(status("a"))
	w.want([]string{"catalog_writable{} 1", "history_records_dropped_total{} 0", "history_writable{} 1"}, names...)
	w.status.CatalogError = "too large"
	w.want([]string{"catalog_writable{} 0", "history_records_dropped_total{} 0", "history_writable{} 1"}, names...)
	w.status.CatalogError, w.status.HistoryError = "", "forbidden"
	w.Observe(engine.RecordsDropped{Count: 44})
	w.want([]string{"catalog_writable{} 1", "history_records_dropped_total{} 44", "history_writable{} 0"}, names...)
}

// R190: the gauge follows the Lease's own validity, and the age of the renewal is there to see
// trouble before it ends.
func TestAgeOfTheRenewal(t *testing.T) {
	w := newWorld(t)
	w.want([]string{}, "lease_renew_age_seconds")
	w.lead()
	w.lease.RenewedAt = noon.Add(-7 * time.Second)
	w.want([]string{"lease_renew_age_seconds{} 7"}, "lease_renew_age_seconds")
	w.lease.Leading = false
	w.want([]string{}, "lease_renew_age_seconds")
}

// A pause of some triggers is seen, though the job is not paused.
func TestPausedTriggers(t *testing.T) {
	whole := []plan.Hold{{By: plan.HoldJob}}
	one := []plan.Hold{{By: plan.HoldTrigger, Trigger: "b"}}
	for name, tt := range map[string]struct {
		by     []plan.Hold
		paused bool
		want   string
	}{
		"nothing":       {nil, false, "0"},
		"one trigger":   {one, false, "1"},
		"the whole job": {whole, true, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			j := status("a")
			j.Job.Triggers = []config.Trigger{{Name: "a"}, {Name: "b"}}
			j.Paused, j.PausedBy = tt.paused, tt.by
			w.lead(j)
			w.want([]string{fmt.Sprint("job_paused{job_name=a} ", map[bool]int{true: 1}[tt.paused]), "job_paused_triggers{job_name=a} " + tt.want}, "job_paused", "job_paused_triggers")
		})
	}
}

// R185: when scheduling has stopped, time() - next grows.
func TestNextFire(t *testing.T) {
	tests := map[string]struct {
		change func(*engine.JobStatus)
		want   time.Time // zero: no series
	}{
		"the next instant": {func(*engine.JobStatus) {}, noon.Add(time.Minute)},
		"a due instant that nobody decides comes first":     {func(j *engine.JobStatus) { j.DueSince, j.Overdue = noon.Add(-time.Hour), noon.Add(-time.Hour) }, noon.Add(-time.Hour)},
		"a pause is no reason for an alarm":                 {func(j *engine.JobStatus) { j.DueSince, j.Paused = noon.Add(-time.Hour), true }, noon.Add(time.Minute)},
		"a job that will not be due again has no such time": {func(j *engine.JobStatus) { j.Next = time.Time{} }, time.Time{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			j := status("a")
			tt.change(&j)
			w.lead(j)
			want := []string{}
			if !tt.want.IsZero() {
				want = append(want, fmt.Sprint("job_next_fire_timestamp_seconds{job_name=a} ", tt.want.Unix()))
			}
			w.want(want, "job_next_fire_timestamp_seconds")
		})
	}
}

// R186, R187: the last success is told over changes of leadership, and never goes back.
func TestLastSuccessNeverGoesBack(t *testing.T) {
	w := newWorld(t)
	j := status("a")
	told := func(want time.Time) {
		t.Helper()
		w.want([]string{fmt.Sprint("job_last_success_timestamp_seconds{job_name=a} ", want.Unix())}, "job_last_success_timestamp_seconds")
	}
	j.LastSuccess = noon
	w.lead(j)
	told(noon)
	w.status.Jobs[0].LastSuccess = noon.Add(-time.Minute) // an older run ended late
	told(noon)
	w.status.Leading = false
	w.want([]string{}, "job_last_success_timestamp_seconds")
	w.status.Leading = true
	told(noon)
	w.status.Jobs[0].LastSuccess = noon.Add(time.Minute)
	told(noon.Add(time.Minute))

	// The job leaves and comes back with nothing known of it.
	w.lead()
	w.want([]string{}, "job_last_success_timestamp_seconds")
	w.lead(status("a"))
	w.want([]string{"job_last_success_timestamp_seconds{job_name=a} 0"}, "job_last_success_timestamp_seconds")
}

func TestGaugesOfTheEngine(t *testing.T) {
	w := newWorld(t)
	w.status.InFlight, w.status.LedgerBytes = 3, 4096
	w.want([]string{"ledger_bytes{} 4096", "runs_in_flight{} 3"}, "runs_in_flight", "ledger_bytes")
}

func TestSigningSecrets(t *testing.T) {
	w := newWorld(t)
	w.want([]string{}, "signing_secrets_last_reload_successful")
	var problem error
	w.SetSigning(func() error { return problem })
	w.want([]string{"signing_secrets_last_reload_successful{} 1"}, "signing_secrets_last_reload_successful")
	problem = errors.New("the file is gone")
	w.want([]string{"signing_secrets_last_reload_successful{} 0"}, "signing_secrets_last_reload_successful")
}

func TestMissingRights(t *testing.T) {
	w := newWorld(t)
	w.want([]string{}, "missing_rights")
	missing := 0
	w.SetRights(func() int { return missing })
	w.want([]string{"missing_rights{} 0"}, "missing_rights")
	missing = 2
	w.want([]string{"missing_rights{} 2"}, "missing_rights")
}

// A sidecar that does not lead tells why it would not, too.
func TestGaugesOfTheSurroundings(t *testing.T) {
	w := newWorld(t)
	w.around = telemetry.Surroundings{ClockAhead: -90 * time.Second, ClockLimit: time.Minute, AppReachable: true, LedgerLimit: 1 << 20}
	w.want([]string{"app_reachable{} 1", "clock_skew_limit_seconds{} 60", "clock_skew_seconds{} -90", "ledger_limit_bytes{} 1048576"},
		"app_reachable", "clock_skew_seconds", "clock_skew_limit_seconds", "ledger_limit_bytes")
}

func TestWhatSomebodyHasToLookAt(t *testing.T) {
	w := newWorld(t)
	a, b := status("a"), status("b")
	a.Job.Recovery, a.NeedsReview, a.InFlight = config.RecoveryReview, 2, 3
	b.Error, b.SuccessDue = "its zone is gone", noon
	w.lead(a, b)
	w.want([]string{
		"job_error{job_name=a} 0", "job_error{job_name=b} 1",
		"job_runs_in_review{job_name=a} 2",
		fmt.Sprint("job_success_due_timestamp_seconds{job_name=b} ", noon.Unix()),
		"job_unfinished_runs{job_name=a} 3", "job_unfinished_runs{job_name=b} 0",
	}, "job_error", "job_runs_in_review", "job_success_due_timestamp_seconds", "job_unfinished_runs")
}
