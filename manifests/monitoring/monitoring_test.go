package monitoring_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"

	"github.com/leasecron/leasecron/manifests/monitoring"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var shop = monitoring.Options{
	App: "shop", Namespace: "web",
	Labels:      map[string]string{"app.kubernetes.io/name": "shop"},
	PodSelector: map[string]string{"leasecron.io/app": "shop"},
}

// golden compares with a file below testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test ./manifests/monitoring -update rewrites it):\n%s", path, diff)
	}
}

func render(t *testing.T, object any) []byte {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGolden(t *testing.T) {
	dashboard, err := monitoring.Dashboard(shop)
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string]any{
		"podmonitor.yaml": monitoring.PodMonitor(shop), "prometheusrule.yaml": monitoring.Rules(shop), "dashboard.yaml": dashboard,
	} {
		text := render(t, object)
		golden(t, name, text)
		if again := render(t, object); !bytes.Equal(text, again) {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
}

// The Prometheus operator's own types know every field that is written, and lose none of it.
func TestTheOperatorReadsWhatIsWritten(t *testing.T) {
	for written, into := range map[any]any{
		monitoring.PodMonitor(shop): &monitoringv1.PodMonitor{}, monitoring.Rules(shop): &monitoringv1.PrometheusRule{},
	} {
		text := render(t, written)
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatal(err)
		}
		read := strings.Replace(string(render(t, into)), "  namespaceSelector: {}\n", "", 1) // means what its absence means
		if diff := cmp.Diff(string(text), read); diff != "" {
			t.Errorf("-written +as the operator's types have it:\n%s", diff)
		}
	}
}

// The address in each alert leads to its section, and no section is about an alert that is gone.
func TestEachAlertIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, alerts []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			documented = append(documented, name)
		}
		if severity, ok := strings.CutPrefix(line, "*Severity: "); ok && len(documented) > 0 {
			documented[len(documented)-1] += " " + strings.TrimSuffix(severity, ".*")
		}
	}
	for _, a := range monitoring.Alerts(shop) {
		alerts = append(alerts, a.Name+" "+a.Severity)
	}
	if diff := cmp.Diff(alerts, documented); diff != "" {
		t.Errorf("alerts and the sections of docs/alerts.md (-program +document):\n%s", diff)
	}
	for _, r := range monitoring.Rules(shop).Spec.Groups[0].Rules {
		if want := "/docs/alerts.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
			t.Errorf("the runbook of %s is %s, want …%s", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
}
