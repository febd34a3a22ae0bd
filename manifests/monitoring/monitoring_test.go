package monitoring_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
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
