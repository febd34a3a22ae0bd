package monitoring

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The part of the Prometheus operator's API (monitoring.coreos.com/v1) that is written here. Its own types would add
// the better part of a megabyte to every sidecar; the tests read what is written with them.

const operatorAPI = "monitoring.coreos.com/v1"

// Monitor is a PodMonitor.
type Monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              MonitorSpec `json:"spec"`
}

// MonitorSpec says which pods are scraped, and how.
type MonitorSpec struct {
	Selector  metav1.LabelSelector `json:"selector"`
	Endpoints []Endpoint           `json:"podMetricsEndpoints"`
}

// Endpoint is a port of the pods. Relabelings set labels of its series.
type Endpoint struct {
	Port        string       `json:"port"`
	Path        string       `json:"path"`
	Relabelings []Relabeling `json:"relabelings"`
}

// Relabeling sets a label.
type Relabeling struct {
	TargetLabel string `json:"targetLabel"`
	Replacement string `json:"replacement"`
}

// RuleSet is a PrometheusRule.
type RuleSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RuleSetSpec `json:"spec"`
}

// RuleSetSpec has what is in a rule file of Prometheus.
type RuleSetSpec struct {
	Groups []RuleGroup `json:"groups"`
}

// RuleGroup are rules that are evaluated together.
type RuleGroup struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Rule is an alert rule as Prometheus reads it.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}
