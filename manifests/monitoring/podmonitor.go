package monitoring

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodMonitor has the metrics of every replica scraped, not only of those behind a Service: who follows has
// something to tell too. Prometheus finds the ports of native sidecars as well.
func PodMonitor(o Options) *monitoringv1.PodMonitor {
	return &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: o.meta(""),
		Spec: monitoringv1.PodMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: o.PodSelector},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{{
				Port: new(o.port()),
				Path: "/metrics",
				RelabelConfigs: []monitoringv1.RelabelConfig{
					{TargetLabel: "job", Replacement: new(scrapeJob)},
					{TargetLabel: "app", Replacement: new(o.App)},
				},
			}},
		},
	}
}
