package monitoring

import "fmt"

func panels() []panel {
	var l layout
	overview(&l)
	jobs(&l)
	runs(&l)
	sidecars(&l)
	return l.panels
}

func overview(l *layout) {
	l.row("Overview")
	l.add(4, 4, stat("Leader", "The replica that leads.", "string", []step{{Color: "green"}},
		target{Datasource: prometheus, Expr: of("leader") + " == 1", LegendFormat: "{{pod}}", Instant: true}).named())
	l.add(4, 4, stat("Leaders", "One, but for the moment of a change.", "none", []step{{Color: "red"}, {Color: "green", Value: new(1.0)}, {Color: "red", Value: new(2.0)}},
		instant("sum("+of("leader")+")")))
	l.add(4, 4, stat("Jobs that fail", "Jobs whose newest run failed or was lost.", "none", redFrom(1),
		instant(fmt.Sprintf("count(max by (job_name) (%s > %s)) or vector(0)", of("job_last_failure_timestamp_seconds"), of("job_last_success_timestamp_seconds")))))
	l.add(4, 4, stat("Jobs overdue", "Jobs that are due for two minutes and do not start.", "none", redFrom(1),
		instant(fmt.Sprintf("count(max by (job_name) (time() - %s > 120 and %s == 0)) or vector(0)", of("job_next_fire_timestamp_seconds"), of("job_unfinished_runs")))))
	l.add(4, 4, stat("Paused", "Jobs that are paused.", "none", []step{{Color: "green"}, {Color: "yellow", Value: new(1.0)}},
		instant(fmt.Sprintf("sum(max by (job_name) (%s)) or vector(0)", of("job_paused")))))
	l.add(4, 4, stat("Definitions", "Replicas whose newest job definitions are not in force.", "none", redFrom(1),
		instant(fmt.Sprintf("count(%s == 0) or vector(0)", of("config_last_reload_successful")))))
}

func jobs(l *layout) {
	l.row("Jobs")
	columns := []struct{ title, unit, expr string }{
		{"Last start", "dateTimeFromNow", millis("job_last_start_timestamp_seconds")},
		{"Last success", "dateTimeFromNow", millis("job_last_success_timestamp_seconds")},
		{"Last failure", "dateTimeFromNow", millis("job_last_failure_timestamp_seconds")},
		{"Next", "dateTimeFromNow", millis("job_next_fire_timestamp_seconds")},
		{"Success due", "dateTimeFromNow", millis("job_success_due_timestamp_seconds")},
		{"Unfinished", "none", byName("max", ofJob("job_unfinished_runs"))},
		{"In review", "none", byName("max", ofJob("job_runs_in_review"))},
		{"Paused", "bool_yes_no", byName("max", ofJob("job_paused"))},
		{"Broken", "bool_yes_no", byName("max", ofJob("job_error"))},
		{"Succeeded", "none", increase("runs_total", `outcome="succeeded"`)},
		{"Failed", "none", increase("runs_total", `outcome="failed"`)},
		{"Lost", "none", increase("runs_total", `outcome="lost"`)},
		{"Missed", "none", increase("missed_triggers_total")},
	}
	table := panel{
		Type: "table", Title: "Jobs", Datasource: prometheus,
		Description: "One line for each job; the counts are of the time range. A run counts once for each attempt.",
		FieldConfig: &fieldConfig{Defaults: fieldDefaults{Custom: map[string]any{"filterable": true}}},
		Options:     map[string]any{"showHeader": true, "sortBy": []any{map[string]any{"displayName": "Job", "desc": false}}},
	}
	names := map[string]string{"job_name": "Job"}
	for i, c := range columns {
		table.Targets = append(table.Targets, target{Datasource: prometheus, Expr: c.expr, Instant: true, Format: "table"})
		value := "Value #" + string(rune('A'+i))
		names[value] = c.title
		properties := []map[string]any{{"id": "unit", "value": c.unit}, {"id": "decimals", "value": 0}}
		if c.unit == "dateTimeFromNow" {
			properties = append(properties, map[string]any{"id": "mappings", "value": []any{
				map[string]any{"type": "value", "options": map[string]any{"0": map[string]any{"text": "never"}}},
			}})
		}
		table.FieldConfig.Overrides = append(table.FieldConfig.Overrides, override{
			Matcher: map[string]any{"id": "byName", "options": c.title}, Properties: properties,
		})
	}
	table.Targets = refer(table.Targets)
	table.Transformations = []map[string]any{
		{"id": "merge", "options": map[string]any{}},
		{"id": "organize", "options": map[string]any{"excludeByName": map[string]any{"Time": true}, "renameByName": names}},
	}
	l.add(24, 12, table)
}

func runs(l *layout) {
	l.row("Runs")
	l.add(12, 8, graph("Runs by outcome", "Attempts that ended, per minute.", "none",
		query("sum by (outcome) (rate("+ofJob("runs_total")+"[$__rate_interval])) * 60", "{{outcome}}")).stacked())
	l.add(12, 8, graph("Missed instants", "Instants that got no run of their own, by reason.", "none",
		query("sum by (reason) (increase("+ofJob("missed_triggers_total")+"[$__rate_interval]))", "{{reason}}")).stacked())
	l.add(12, 8, graph("Failures and losses by job", "Attempts of the last hour.", "none",
		query("sum by (job_name, outcome) (increase("+ofJob("runs_total", `outcome=~"failed|lost"`)+"[1h])) > 0", "{{job_name}} {{outcome}}")))
	l.add(12, 8, graph("In flight, retries, by hand", "Requests that have not ended; retries and manual runs per minute.", "none",
		query("sum("+of("runs_in_flight")+")", "in flight"),
		query("sum(rate("+of("retries_total")+"[$__rate_interval])) * 60", "retries"),
		query("sum(rate("+of("manual_triggers_total")+"[$__rate_interval])) * 60", "by hand")))
	l.add(12, 8, graph("Lateness", "From the moment at which a run was due to the start of its request.", "s", quantiles("fire_lateness_seconds")...))
	l.add(12, 8, graph("Duration", "From the start of a request to its end.", "s", quantiles("run_duration_seconds")...))
}

func sidecars(l *layout) {
	l.row("Sidecars")
	l.add(12, 8, timeline("Leadership", "Who led when.", query(of("leader"), "{{pod}}")))
	l.add(12, 8, timeline("App reachable", "A sidecar whose app does not answer does not lead.", query(of("app_reachable"), "{{pod}}")))
	l.add(8, 8, graph("Changes of leadership", "Within the last hour.", "none",
		query("sum(increase("+of("leader_transitions_total")+"[1h]))", "changes"),
		query("sum(increase("+of("leadership_lost_total")+"[1h]))", "lost")))
	l.add(8, 8, graph("Lease", "How long renewals take, and how long ago the last one was.", "s",
		append(quantiles("lease_renew_seconds"), query("max("+of("lease_renew_age_seconds")+")", "age"))...))
	l.add(8, 8, graph("Errors", "Renewals of the Lease and swaps of the ledger that failed, per minute.", "none",
		query("sum(rate("+of("lease_renew_failures_total")+"[$__rate_interval])) * 60", "renewals"),
		query("sum(rate("+of("ledger_commit_failures_total")+"[$__rate_interval])) * 60", "swaps")))
	l.add(8, 8, graph("Ledger", "Its size, and how large it may become.", "bytes",
		query("max("+of("ledger_bytes")+")", "size"), query("max("+of("ledger_limit_bytes")+")", "limit")))
	l.add(8, 8, graph("Swaps of the ledger", "How long they take.", "s", quantiles("ledger_commit_seconds")...))
	l.add(8, 8, graph("Clock", "How far each clock is ahead of the API server's.", "s",
		query(of("clock_skew_seconds"), "{{pod}}"), query("max("+of("clock_skew_limit_seconds")+")", "limit")))
	l.add(8, 8, graph("Missing rights", "What the Role does not allow and the sidecar does.", "none", query(of("missing_rights"), "{{pod}}")))
	l.add(8, 8, graph("Memory", "Resident memory of each sidecar.", "bytes",
		query(`process_resident_memory_bytes{`+selected+`, job="leasecron"}`, "{{pod}}")))
	l.add(8, 8, graph("CPU", "Cores that each sidecar uses.", "none",
		query(`rate(process_cpu_seconds_total{`+selected+`, job="leasecron"}[$__rate_interval])`, "{{pod}}")))
	version := panel{
		Type: "table", Title: "Versions", Datasource: prometheus,
		Targets: refer([]target{{Datasource: prometheus, Expr: "count by (version, commit) (" + of("build_info") + ")", Instant: true, Format: "table"}}),
		Transformations: []map[string]any{{"id": "organize", "options": map[string]any{
			"excludeByName": map[string]any{"Time": true}, "renameByName": map[string]string{"Value": "Replicas", "version": "Version", "commit": "Commit"},
		}}},
	}
	l.add(8, 8, version)
}

func byName(aggregate, series string) string {
	return fmt.Sprintf("%s by (job_name) (%s)", aggregate, series)
}

// millis is a time as Grafana shows one.
func millis(metric string) string { return byName("max", ofJob(metric)) + " * 1000" }

func increase(metric string, more ...string) string {
	return byName("sum", "increase("+ofJob(metric, more...)+"[$__range])")
}

// quantiles shows a histogram, scraped in its classic form or, where that is left out, in its native one.
func quantiles(metric string) []target {
	var out []target
	for _, q := range []struct{ of, legend string }{{"0.5", "median"}, {"0.99", "99 %"}} {
		out = append(out, query(fmt.Sprintf(
			"histogram_quantile(%s, sum by (le) (rate(%s[$__rate_interval]))) or histogram_quantile(%s, sum(rate(%s[$__rate_interval])))",
			q.of, of(metric+"_bucket"), q.of, of(metric)), q.legend))
	}
	return out
}

func instant(expr string) target { return target{Datasource: prometheus, Expr: expr, Instant: true} }

func redFrom(n float64) []step { return []step{{Color: "green"}, {Color: "red", Value: &n}} }

func stat(title, about, unit string, steps []step, t target) panel {
	return panel{
		Type: "stat", Title: title, Description: about, Datasource: prometheus, Targets: refer([]target{t}),
		FieldConfig: &fieldConfig{
			Defaults:  fieldDefaults{Unit: unit, NoValue: "none", Thresholds: &thresholds{Mode: "absolute", Steps: steps}, Color: map[string]any{"mode": "thresholds"}},
			Overrides: []override{},
		},
		Options: map[string]any{
			"colorMode": "value", "graphMode": "none", "textMode": "auto",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		},
	}
}

// named shows whose value it is instead of the value.
func (p panel) named() panel {
	p.Options["textMode"] = "name"
	return p
}

func graph(title, about, unit string, targets ...target) panel {
	return panel{
		Type: "timeseries", Title: title, Description: about, Datasource: prometheus, Targets: refer(targets),
		FieldConfig: &fieldConfig{
			Defaults:  fieldDefaults{Unit: unit, Custom: map[string]any{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}},
			Overrides: []override{},
		},
		Options: map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
}

func (p panel) stacked() panel {
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	return p
}

func timeline(title, about string, t target) panel {
	return panel{
		Type: "state-timeline", Title: title, Description: about, Datasource: prometheus, Targets: refer([]target{t}),
		FieldConfig: &fieldConfig{
			Defaults: fieldDefaults{
				Color: map[string]any{"mode": "thresholds"},
				Mappings: []map[string]any{{"type": "value", "options": map[string]any{
					"0": map[string]any{"text": "no", "color": "transparent"}, "1": map[string]any{"text": "yes", "color": "green"},
				}}},
				Custom: map[string]any{"fillOpacity": 70, "lineWidth": 0},
			},
			Overrides: []override{},
		},
		Options: map[string]any{"showValue": "never", "mergeValues": true, "rowHeight": 0.8},
	}
}
