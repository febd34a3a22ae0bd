package monitoring

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Dashboard is a Grafana dashboard of one app, in a ConfigMap that Grafana's dashboard sidecar picks up by the label
// grafana_dashboard. Its variables show any other app as well.
func Dashboard(o Options) (*corev1.ConfigMap, error) {
	text, err := DashboardJSON(o)
	if err != nil {
		return nil, err
	}
	meta := o.meta("-dashboard")
	if meta.Labels == nil {
		meta.Labels = make(map[string]string)
	}
	meta.Labels["grafana_dashboard"] = "1"
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta,
		// Files of all namespaces may end up in one folder.
		Data: map[string]string{fmt.Sprintf("leasecron-%s-%s.json", o.Namespace, o.App): string(text)},
	}, nil
}

// DashboardJSON is the dashboard by itself, to be imported by hand.
func DashboardJSON(o Options) ([]byte, error) {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.App))
	d := dashboard{
		UID: "leasecron-" + hex.EncodeToString(sum[:6]), Title: fmt.Sprintf("leasecron: %s (%s)", o.App, o.Namespace),
		Description:   "Scheduled jobs of an app: when they run, whether they succeed, who leads.",
		Tags:          []string{"leasecron", "scheduler"},
		SchemaVersion: 39, Editable: true, Refresh: "30s", Timezone: "browser",
		Time: timeRange{From: "now-6h", To: "now"}, GraphTooltip: 1,
		Templating:  templating{List: variables(o)},
		Annotations: map[string]any{"list": []any{}},
		Panels:      panels(),
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// selected is what is between the braces of a series in the dashboard.
const selected = `namespace="$namespace", app="$app"`

var prometheus = &datasource{Type: "prometheus", UID: "${datasource}"}

func variables(o Options) []variable {
	query := func(name, label, definition, current string) variable {
		return variable{
			Name: name, Label: label, Type: "query", Datasource: prometheus, Definition: definition, Refresh: 2, Sort: 1,
			Query:   map[string]any{"query": definition, "refId": name},
			Current: &choice{Selected: true, Text: current, Value: current},
		}
	}
	job := query("job_name", "Job", `label_values(leasecron_runs_total{`+selected+`}, job_name)`, "All")
	job.Multi, job.IncludeAll, job.AllValue, job.Current.Value = true, true, ".*", "$__all"
	return []variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1},
		query("namespace", "Namespace", "label_values(leasecron_build_info, namespace)", o.Namespace),
		query("app", "App", `label_values(leasecron_build_info{namespace="$namespace"}, app)`, o.App),
		job,
	}
}

// of is a series of the app that was chosen, ofJob one of the jobs that were.
func of(metric string, more ...string) string {
	return fmt.Sprintf("leasecron_%s{%s}", metric, strings.Join(append([]string{selected}, more...), ", "))
}

func ofJob(metric string, more ...string) string {
	return of(metric, append([]string{`job_name=~"$job_name"`}, more...)...)
}

func query(expr, legend string) target {
	return target{Datasource: prometheus, Expr: expr, LegendFormat: legend, Range: true}
}

// refer gives each query of a panel its letter.
func refer(targets []target) []target {
	for i := range targets {
		targets[i].RefID = string(rune('A' + i))
	}
	return targets
}
