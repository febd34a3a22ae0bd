package monitoring

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PodMonitor has the metrics of every replica scraped, not only of those behind a Service: who follows has
// something to tell too. Prometheus finds the ports of native sidecars as well.
func PodMonitor(o Options) *Monitor {
	return &Monitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorAPI, Kind: "PodMonitor"},
		ObjectMeta: o.meta(""),
		Spec: MonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: o.PodSelector},
			Endpoints: []Endpoint{{
				Port: o.port(), Path: "/metrics",
				Relabelings: []Relabeling{
					{TargetLabel: "job", Replacement: scrapeJob},
					{TargetLabel: "app", Replacement: o.App},
				},
			}},
		},
	}
}
