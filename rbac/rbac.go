package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Options say what is switched on. A name that is empty stands for a part that does not use the API server,
// and adds no rule.
type Options struct {
	// Lease is the name of the Lease that the replicas compete for; empty without an election.
	Lease string
	// Ledger and Catalog are the ConfigMaps that the leader reads, replaces and watches; History is read and
	// replaced. Empty with a ledger in a file or in memory.
	Ledger, Catalog, History string
	// Leases is the ConfigMap with the named leases of the app's own work; empty without Kubernetes.
	Leases string
	// Jobs is the ConfigMap with the job definitions; empty where they come from a file.
	Jobs string
	// Events allows to write Kubernetes Events, which have no names that could be known before.
	Events bool
	// LeaderLabel allows to label the leader's Pod. Pods of a workload have no names that could be known
	// before, so it allows to patch any Pod of the namespace.
	LeaderLabel bool
}

// The API groups of what the sidecar uses.
const (
	coreGroup         = ""
	coordinationGroup = "coordination.k8s.io"
)

// Rules returns the rules of the least Role, in an order that does not change. Each verb serves this:
//
//   - Lease: update takes, renews and releases it; list and watch follow it; get looks at it after a conflict or
//     an answer that was lost, and while there is no watch.
//   - ledger and catalog: get and update are the compare-and-swap; list and watch tell the leader what others
//     changed.
//   - history: get and update. Nobody waits for its changes.
//   - named leases: get and update, when the app asks for one.
//   - job definitions: list and watch. They are never written, and never read but by the watch.
func Rules(o Options) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	add := func(group, resource string, verbs []string, names ...string) {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		if len(names) > 0 {
			rules = append(rules, rbacv1.PolicyRule{
				APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs,
			})
		}
	}
	add(coordinationGroup, "leases", []string{"get", "list", "watch", "update"}, o.Lease)
	add(coreGroup, "configmaps", []string{"get", "list", "watch", "update"}, o.Ledger, o.Catalog)
	add(coreGroup, "configmaps", []string{"get", "update"}, o.History, o.Leases)
	add(coreGroup, "configmaps", []string{"list", "watch"}, o.Jobs)
	if o.Events {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{coreGroup}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		})
	}
	if o.LeaderLabel {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{coreGroup}, Resources: []string{"pods"}, Verbs: []string{"patch"},
		})
	}
	return rules
}

// Right is one verb on one object, or on all of its kind in the namespace where Name is empty.
type Right struct {
	Verb, Group, Resource, Name string
}

// String is what kubectl auth can-i takes: "update leases.coordination.k8s.io/shop-leasecron".
func (r Right) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Verb, r.Resource)
	if r.Group != "" {
		b.WriteString("." + r.Group)
	}
	if r.Name != "" {
		b.WriteString("/" + r.Name)
	}
	return b.String()
}

// Rights takes the rules of [Rules] apart, in their order: what can be asked for, or missing, one by one.
func Rights(rules []rbacv1.PolicyRule) []Right {
	var rights []Right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						rights = append(rights, Right{Verb: verb, Group: group, Resource: resource, Name: name})
					}
				}
			}
		}
	}
	return rights
}

// Without returns rules that grant the same but one right: what a Role looks like that lacks it.
func Without(rules []rbacv1.PolicyRule, lacking Right) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range Rights(rules) {
		if r == lacking {
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}}
		if r.Name != "" {
			rule.ResourceNames = []string{r.Name}
		}
		out = append(out, rule)
	}
	return out
}
