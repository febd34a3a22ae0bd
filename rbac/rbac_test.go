package rbac_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/rbac"
)

// base is what the smallest installation uses.
var base = rbac.Options{
	Lease: "shop-leasecron", Ledger: "shop-leasecron-ledger", Catalog: "shop-leasecron-catalog",
	History: "shop-leasecron-history", Leases: "shop-leasecron-leases", Jobs: "shop-jobs",
}

func rights(o rbac.Options) []string {
	var out []string
	for _, r := range rbac.Rights(rbac.Rules(o)) {
		out = append(out, r.String())
	}
	return out
}

func TestBase(t *testing.T) {
	want := []string{
		"get leases.coordination.k8s.io/shop-leasecron",
		"list leases.coordination.k8s.io/shop-leasecron",
		"watch leases.coordination.k8s.io/shop-leasecron",
		"update leases.coordination.k8s.io/shop-leasecron",
		"get configmaps/shop-leasecron-ledger",
		"list configmaps/shop-leasecron-ledger",
		"watch configmaps/shop-leasecron-ledger",
		"update configmaps/shop-leasecron-ledger",
		"get configmaps/shop-leasecron-catalog",
		"list configmaps/shop-leasecron-catalog",
		"watch configmaps/shop-leasecron-catalog",
		"update configmaps/shop-leasecron-catalog",
		"get configmaps/shop-leasecron-history",
		"update configmaps/shop-leasecron-history",
		"get configmaps/shop-leasecron-leases",
		"update configmaps/shop-leasecron-leases",
		"list configmaps/shop-jobs",
		"watch configmaps/shop-jobs",
	}
	if diff := cmp.Diff(want, rights(base)); diff != "" {
		t.Errorf("rights of the base (-want +got):\n%s", diff)
	}
}

func TestEachSwitchAddsOnlyItsOwn(t *testing.T) {
	tests := map[string]struct {
		change    func(*rbac.Options)
		more      []string
		fewerThat string // contain this
	}{
		"events":                 {change: func(o *rbac.Options) { o.Events = true }, more: []string{"create events", "patch events"}},
		"leader label":           {change: func(o *rbac.Options) { o.LeaderLabel = true }, more: []string{"patch pods"}},
		"definitions in a file":  {change: func(o *rbac.Options) { o.Jobs = "" }, fewerThat: "shop-jobs"},
		"no election":            {change: func(o *rbac.Options) { o.Lease = "" }, fewerThat: "leases."},
		"no ledger in ConfigMap": {change: func(o *rbac.Options) { o.Ledger, o.Catalog, o.History, o.Leases = "", "", "", "" }, fewerThat: "shop-leasecron-"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := base
			tt.change(&o)
			want := rights(base)
			if tt.fewerThat != "" {
				want = slices.DeleteFunc(want, func(r string) bool {
					return strings.Contains(r, tt.fewerThat) && (tt.fewerThat == "leases." || strings.Contains(r, "configmaps/"))
				})
			}
			want = append(want, tt.more...)
			if diff := cmp.Diff(want, rights(o)); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever is switched on: no wildcard, nothing but Events is created, and only what has no name beforehand
// goes without one.
func TestNeverMore(t *testing.T) {
	for bits := range 1 << 7 {
		o := base
		for i, off := range []*string{&o.Lease, &o.Ledger, &o.History, &o.Jobs, &o.Leases} {
			if bits&(1<<i) != 0 {
				*off = ""
			}
		}
		o.Events, o.LeaderLabel = bits&32 != 0, bits&64 != 0
		for _, r := range rbac.Rights(rbac.Rules(o)) {
			if strings.Contains(r.String(), "*") || r.Verb == "" || r.Resource == "" {
				t.Errorf("%+v grants %q", o, r)
			}
			if r.Name == "" && r.Resource != "events" && r.Resource != "pods" {
				t.Errorf("%+v grants %q on every object", o, r)
			}
			if r.Verb == "create" && r.Resource != "events" || r.Verb == "delete" {
				t.Errorf("%+v grants %q", o, r)
			}
		}
	}
}

func TestWithoutTakesOneRightAway(t *testing.T) {
	rules := rbac.Rules(base)
	all := rbac.Rights(rules)
	for _, lacking := range all {
		want := slices.DeleteFunc(slices.Clone(all), func(r rbac.Right) bool { return r == lacking })
		if diff := cmp.Diff(want, rbac.Rights(rbac.Without(rules, lacking))); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", lacking, diff)
		}
	}
}
