package monitoring

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The severities of alerts.
const (
	critical = "critical" // jobs do not run, or nothing would tell: somebody has to look now
	warning  = "warning"  // somebody has to look during the day
)

// Alert is an alert rule.
type Alert struct {
	Name     string
	Expr     string // PromQL
	For      string // how long it has to be true; empty: once is enough
	Severity string
	Summary  string // one line; may name labels as {{ $labels.job_name }}
	Detail   string // what it means and the first thing to do
}

// Rules are the alerts of an app.
func Rules(o Options) *RuleSet {
	group := RuleGroup{Name: o.App + "-leasecron"}
	for _, a := range Alerts(o) {
		group.Rules = append(group.Rules, Rule{
			Alert:  a.Name,
			Expr:   a.Expr,
			For:    a.For,
			Labels: map[string]string{"severity": a.Severity, "namespace": o.Namespace, "app": o.App},
			Annotations: map[string]string{
				"summary": a.Summary, "description": a.Detail, "runbook_url": o.runbook(a.Name),
			},
		})
	}
	return &RuleSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorAPI, Kind: "PrometheusRule"},
		ObjectMeta: o.meta(""),
		Spec:       RuleSetSpec{Groups: []RuleGroup{group}},
	}
}

// runbook is the address of an alert's section: the headings of docs/alerts.md are the alerts' names.
func (o Options) runbook(alert string) string {
	base := o.RunbookURL
	if base == "" {
		base = defaultRunbook
	}
	return base + "#" + strings.ToLower(alert)
}

// Alerts are the alerts of an app, as they are rendered into [Rules].
func Alerts(o Options) []Alert {
	q := queries{o}
	alerts := append(q.cluster(), q.jobs()...)
	return append(alerts, q.replicas()...)
}

// queries writes PromQL about one app.
type queries struct{ Options }

// series is a metric of the app, with further matchers.
func (q queries) series(metric string, more ...string) string {
	return fmt.Sprintf("leasecron_%s{%s}", metric, q.selector(more...))
}

const (
	byApp = "by (namespace, app)"
	byJob = "by (namespace, app, job_name)"
)

// app is what is true of the app, told by the sidecar that knows.
func (q queries) app(metric string) string {
	return fmt.Sprintf("max %s (%s)", byApp, q.series(metric))
}

// recent is how much a counter grew within a window, for each replica. increase() does not see what a
// young process counted before it was first scraped, such as what it missed while nobody led: of
// such a process everything is recent.
func (q queries) recent(window, metric string, more ...string) string {
	s := q.series(metric, more...)
	young := fmt.Sprintf("time() - process_start_time_seconds{%s} < %d", q.selector(fmt.Sprintf("job=%q", scrapeJob)), seconds(window))
	return fmt.Sprintf("((%s and on (instance, pod) (%s)) or increase(%s[%s]))", s, young, s, window)
}

// quantile is that of a histogram, scraped in its classic form or, where that is left out, in its native one.
func (q queries) quantile(of, metric, window string) string {
	return fmt.Sprintf("(histogram_quantile(%s, sum by (namespace, app, le) (rate(%s[%s]))) or histogram_quantile(%s, sum %s (rate(%s[%s]))))",
		of, q.series(metric+"_bucket"), window, of, byApp, q.series(metric), window)
}

// cluster are the alerts about the app's sidecars together.
func (q queries) cluster() []Alert {
	return []Alert{
		{
			Name: "LeasecronAbsent", Severity: critical, For: "10m",
			Expr:    fmt.Sprintf("absent(%s)", q.series("build_info")),
			Summary: "No sidecar of the app is scraped.",
			Detail:  "No metrics of the app's sidecars arrive, so that no other alert can fire. Either no replica runs, or Prometheus does not find them.",
		}, {
			Name: "LeasecronNoLeader", Severity: critical, For: "5m",
			Expr:    q.app("leader") + " < 1",
			Summary: "No sidecar leads: no job runs.",
			Detail:  "No replica leads, so no cluster-unique job is started. /readyz?verbose of any replica says why it does not lead.",
		}, {
			Name: "LeasecronSeveralLeaders", Severity: critical, For: "3m",
			Expr:    fmt.Sprintf("sum %s (%s) > 1", byApp, q.series("leader")),
			Summary: "{{ $value }} sidecars lead at once.",
			Detail:  "Several replicas say that they lead. With one ledger nothing runs twice; with a ledger each, as without an election, every one of them runs every job.",
		}, {
			Name: "LeasecronLeadershipFlapping", Severity: warning,
			Expr: fmt.Sprintf("sum %s (%s) > 2 or sum %s (%s) > 10",
				byApp, q.recent("1h", "leadership_lost_total"), byApp, q.recent("1h", "leader_transitions_total")),
			Summary: "The leadership changes all the time.",
			Detail:  "Within an hour the leadership was lost three times, or changed more than ten times. Each change can delay what is due, and a lost one costs up to the lease's duration.",
		}, {
			Name: "LeasecronLeaseRenewalFailing", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("sum %s (%s) > 5", byApp, q.recent("10m", "lease_renew_failures_total")),
			Summary: "The Lease can hardly be renewed.",
			Detail:  "More than five renewals of the Lease failed within ten minutes. When none succeeds for the renew deadline, the leader stops.",
		}, {
			Name: "LeasecronLedgerFailing", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("sum %s (%s) > 5", byApp, q.recent("10m", "ledger_commit_failures_total")),
			Summary: "The ledger can hardly be written.",
			Detail:  "More than five swaps of the ledger failed within ten minutes. What cannot be recorded does not start.",
		}, {
			Name: "LeasecronLedgerNearLimit", Severity: warning, For: "15m",
			Expr:    fmt.Sprintf("max %s (%s / %s) > 0.7", byApp, q.series("ledger_bytes"), q.series("ledger_limit_bytes")),
			Summary: "The ledger is {{ $value | humanizePercentage }} full.",
			Detail:  "The ledger nears the size beyond which nothing more is decided until something has ended. It holds what is in flight and what waits, with the data of manual runs.",
		}, {
			Name: "LeasecronDefinitionsNotStored", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("min %s (%s) < 1", byApp, q.series("catalog_writable")),
			Summary: "The newest job definitions are not in force: the catalog does not take them.",
			Detail:  "The definitions before stay in force and jobs go on. The catalog has no room for the newest ones, or cannot be written: /readyz?verbose of the leader says which.",
		}, {
			Name: "LeasecronHistoryNotWritten", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("min %s (%s) < 1", byApp, q.series("history_writable")),
			Summary: "What ended is not written to the history.",
			Detail:  "Jobs go on. What ended waits in the ledger, and the oldest of it is dropped when the ledger needs the room. /readyz?verbose of the leader has the reason.",
		}, {
			Name: "LeasecronRecordsUnreadable", Severity: warning, For: "5m",
			Expr:    fmt.Sprintf("max by (namespace, app, document) (%s) > 0", q.series("unreadable_records")),
			Summary: "Records of the {{ $labels.document }} make no sense to the leader.",
			Detail:  "The leader keeps what it cannot read as it is, and the job or trigger that such a record is of may stand still. Its log and an Event name the records.",
		}, {
			Name: "LeasecronFiringLate", Severity: warning, For: "15m",
			Expr:    q.quantile("0.99", "fire_lateness_seconds", "15m") + " > 5",
			Summary: "Runs start {{ $value | humanizeDuration }} late.",
			Detail:  "One run in a hundred starts more than five seconds after it was due: there are too few slots, or the API server or this sidecar is too slow.",
		},
	}
}

// seconds is a PromQL duration of minutes or hours as seconds.
func seconds(window string) int {
	d, err := time.ParseDuration(window)
	if err != nil {
		panic(err) // the windows are constants of this package
	}
	return int(d.Seconds())
}
