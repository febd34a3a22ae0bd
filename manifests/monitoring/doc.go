// Package monitoring makes what a team watches its jobs with: a PodMonitor, alert rules and a Grafana
// dashboard. The same options give the same objects.
//
// Rules and dashboard select the series of one app by the labels namespace and app, which the
// PodMonitor sets. Where Prometheus finds pods in another way, that has to set them too.
//
// Every metric that they name is one that a sidecar exports, every alert is documented in docs/alerts.md
// and has a test that it fires and one that it does not: tests of this package and of test/e2e hold that.
package monitoring

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options say whose jobs are watched.
type Options struct {
	App, Namespace string
	// Labels are for the objects. Operators select rules and monitors by them: release, prometheus, …
	Labels map[string]string
	// PodSelector finds the pods that have the sidecar.
	PodSelector map[string]string
	// Port is the name of the port that serves the metrics; empty: leasecron.
	Port string
	// RunbookURL is where docs/alerts.md can be read; empty: in the project's repository.
	RunbookURL string
}

const defaultRunbook = "https://github.com/leasecron/leasecron/blob/main/docs/alerts.md"

// scrapeJob is the label job of the sidecars' series, the same for every app.
const scrapeJob = "leasecron"

func (o Options) port() string { return cmp.Or(o.Port, "leasecron") }

func (o Options) meta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.App + "-leasecron" + suffix, Namespace: o.Namespace, Labels: maps.Clone(o.Labels)}
}

// selector is what is between the braces of a series of the app's.
func (o Options) selector(more ...string) string {
	parts := []string{fmt.Sprintf("namespace=%q", o.Namespace), fmt.Sprintf("app=%q", o.App)}
	return strings.Join(append(parts, more...), ", ")
}
