package manifests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Extra makes what is packed on request.
type Extra struct {
	// File is the name of its file, Help one line for people.
	File, Help string
	Make       func(Installation) ([]Object, error)
}

// Extras are all that can be asked for, by name.
var Extras = map[string]Extra{
	"dashboard":      {"dashboard.yaml", "Grafana dashboard, in a ConfigMap with the label grafana_dashboard", grafanaDashboard},
	"networkpolicy":  {"networkpolicy.yaml", "NetworkPolicy: the app's ports from everywhere, the sidecar's from its namespace and from monitoring", networkPolicy},
	"podmonitor":     {"podmonitor.yaml", "PodMonitor: Prometheus scrapes every replica's sidecar", podMonitor},
	"prometheusrule": {"prometheusrule.yaml", "PrometheusRule: alerts on leadership, jobs and sidecars", prometheusRule},
	"pdb":            {"pdb.yaml", "PodDisruptionBudget: a drained node takes one replica at a time", disruptionBudget},
}

func (p *Package) extras(with []string, inst Installation) error {
	with = slices.Compact(slices.Sorted(slices.Values(with)))
	var problems []error
	for _, name := range with {
		extra, ok := Extras[name]
		if !ok {
			known := slices.Sorted(maps.Keys(Extras))
			problems = append(problems, fmt.Errorf("--with %s: want any of %s", name, strings.Join(known, ", ")))
			continue
		}
		objects, err := extra.Make(inst)
		if err != nil {
			problems = append(problems, fmt.Errorf("--with %s: %w", name, err))
			continue
		}
		p.add(extra.File, objects...)
	}
	return errors.Join(problems...)
}

// networkPolicy lets in what the app takes, because a policy that selects pods shuts out all that it does not
// name. What leaves the pods is left alone: where the API server is, nobody can know here.
func networkPolicy(inst Installation) ([]Object, error) {
	if len(inst.AppPorts) == 0 {
		return nil, errors.New("would shut the app off, because its ports are not known: show a workload that declares them, with --deployment")
	}
	number, reachable := port(inst.Settings.Listen)
	if !reachable {
		return nil, unreachable(inst)
	}
	var app []networkingv1.NetworkPolicyPort
	for _, p := range inst.AppPorts {
		app = append(app, networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(p.Number)), Protocol: new(corev1.Protocol(p.Protocol))})
	}
	return []Object{objectOf(&networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Name: roleName(inst.App), Namespace: inst.Namespace, Labels: maps.Clone(inst.Labels),
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: inst.PodSelector},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{Ports: app},
				{
					Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(number))}},
					From: []networkingv1.NetworkPolicyPeer{
						{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: inst.Namespace}}},
						{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "monitoring"}}},
					},
				},
			},
		},
	})}, nil
}

func unreachable(inst Installation) error {
	return fmt.Errorf("cannot reach the sidecar, which listens on %s only", inst.Settings.Listen)
}

func disruptionBudget(inst Installation) ([]Object, error) {
	return []Object{objectOf(&policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{
			Name: roleName(inst.App), Namespace: inst.Namespace, Labels: maps.Clone(inst.Labels),
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: inst.PodSelector},
		},
	})}, nil
}
