package monitoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/leasecron/leasecron/manifests/monitoring"
)

// promtool runs the pinned promtool, which scripts/tool.sh builds the first time.
func promtool(t *testing.T, dir string, args ...string) (output string, ok bool) {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "../../scripts/tool.sh", "promtool").Output()
	if err != nil {
		t.Fatalf("no promtool: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// write stores a value as YAML in a new file.
func write(t *testing.T, dir, name string, value any) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), render(t, value), 0o600); err != nil {
		t.Fatal(err)
	}
}

type object = map[string]any

// groups are the rules of a PrometheusRule as a rule file has them. Only those of names are kept, if there are
// any, and then of the annotations only the summary.
func groups(t *testing.T, names ...string) object {
	t.Helper()
	var rule struct{ Spec object }
	if err := yaml.Unmarshal(render(t, monitoring.Rules(shop)), &rule); err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		return rule.Spec
	}
	for _, g := range rule.Spec["groups"].([]any) {
		group := g.(object)
		group["rules"] = slices.DeleteFunc(group["rules"].([]any), func(r any) bool {
			annotations := r.(object)["annotations"].(object)
			maps.DeleteFunc(annotations, func(name string, _ any) bool { return name != "summary" })
			return !slices.Contains(names, r.(object)["alert"].(string))
		})
	}
	return rule.Spec
}

func TestPrometheusAcceptsTheRules(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", groups(t))
	if out, ok := promtool(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"); !ok {
		t.Error(out)
	}
}

// TestAlerts has promtool play each case, and holds that each alert has one in which it fires and one
// in which it does not. The cases of one alert are played with its rule alone, which is quick.
func TestAlerts(t *testing.T) {
	severity := make(map[string]string)
	for _, a := range monitoring.Alerts(shop) {
		severity[a.Name] = a.Severity
	}
	all := slices.Sorted(maps.Keys(severity))
	tests := make(map[string][]any) // by alert, or "" for those of all
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, c := range alertCases() {
		looked := []string{c.alert}
		switch {
		case c.alert == "":
			looked = all
		case severity[c.alert] == "":
			t.Fatalf("%s: there is no alert %s", c.name, c.alert)
		case len(c.want) > 0:
			fires[c.alert] = true
		default:
			quiet[c.alert] = true
		}
		var checks []any
		for _, name := range looked {
			for _, at := range c.at {
				checks = append(checks, object{"alertname": name, "eval_time": at, "exp_alerts": c.expected(severity[name])})
			}
		}
		tests[c.alert] = append(tests[c.alert], object{
			"name": c.alert + ": " + c.name, "interval": "1m", "input_series": c.input(t), "alert_rule_test": checks,
		})
	}
	for _, name := range all {
		if !fires[name] {
			t.Errorf("no case shows that %s fires", name)
		}
		if !quiet[name] {
			t.Errorf("no case of its own shows that %s does not fire", name)
		}
	}
	dir := t.TempDir()
	args := []string{"test", "rules"}
	for alert, cases := range tests {
		rules, file := "rules"+alert+".yaml", "tests"+alert+".yaml"
		names := []string{alert}
		if alert == "" {
			names = all
		}
		write(t, dir, rules, groups(t, names...))
		write(t, dir, file, object{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": cases})
		args = append(args, file)
	}
	if out, ok := promtool(t, dir, args...); !ok {
		t.Error(out)
	}
}

// alertCase is something that happens, and which alerts there are then.
type alertCase struct {
	name   string
	alert  string // that is looked at; empty: all
	series []string
	at     []string // when it is looked at
	want   []firing // none: it does not fire
}

// input are the case's series as promtool reads them.
func (c alertCase) input(t *testing.T) []any {
	t.Helper()
	series := []any{}
	for _, s := range c.series {
		name, values, ok := strings.Cut(s, "} ")
		if !ok {
			t.Fatalf("%s: series %q has no values", c.name, s)
		}
		series = append(series, object{"series": name + "}", "values": values})
	}
	return series
}

func (c alertCase) expected(severity string) []any {
	want := []any{}
	for _, f := range c.want {
		labels := object{"severity": severity, "namespace": "web", "app": "shop"}
		for k, v := range f.labels {
			labels[k] = v
		}
		want = append(want, object{"exp_labels": labels, "exp_annotations": object{"summary": f.summary}})
	}
	return want
}

type firing struct {
	labels  map[string]string
	summary string
}

// s writes a series of one replica, with a value for each minute.
func s(pod int, metric, values string, labels ...string) string {
	all := append([]string{
		`namespace="web"`, `app="shop"`, `job="leasecron"`, fmt.Sprintf(`pod="shop-%d"`, pod), fmt.Sprintf(`instance="10.0.0.%d:9470"`, pod),
	}, labels...)
	if metric != "up" && !strings.HasPrefix(metric, "process_") {
		metric = "leasecron_" + metric
	}
	return metric + "{" + strings.Join(all, ",") + "} " + values
}

// pod are the labels of an alert about one replica.
func pod(n int) map[string]string {
	return map[string]string{"job": "leasecron", "pod": fmt.Sprintf("shop-%d", n), "instance": fmt.Sprintf("10.0.0.%d:9470", n)}
}

func of(job string) map[string]string { return map[string]string{"job_name": job} }

// TestDashboardQueriesParse has promtool read each query, with Grafana's variables replaced.
func TestDashboardQueriesParse(t *testing.T) {
	var rules []any
	for i, q := range queries(t) {
		q = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(q)
		rules = append(rules, object{"record": fmt.Sprintf("panel:query:%d", i), "expr": q})
	}
	if len(rules) < 40 {
		t.Fatalf("the dashboard has %d queries: are they read right?", len(rules))
	}
	dir := t.TempDir()
	write(t, dir, "rules.yaml", object{"groups": []any{object{"name": "dashboard", "rules": rules}}})
	if out, ok := promtool(t, dir, "check", "rules", "rules.yaml"); !ok {
		t.Error(out)
	}
}

// queries are those of the dashboard's panels.
func queries(t *testing.T) []string {
	t.Helper()
	text, err := monitoring.DashboardJSON(shop)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			out = append(out, q.Expr)
		}
	}
	return out
}
