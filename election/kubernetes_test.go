package election_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

func TestMain(m *testing.M) {
	if namespace := os.Getenv(frozenEnv); namespace != "" {
		fmt.Fprintln(os.Stderr, leadAndReport(namespace))
		os.Exit(1)
	}
	flag.Parse()
	// The tests wait, most of the time, and there are many of them.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("12")
	}
	controlplane.Main(m)
}

// The times of the tests: short, because they are waited for, and long enough for a busy machine.
const (
	duration = 4 * time.Second
	deadline = 3 * time.Second
	interval = duration / 3
)

// soon is how late something may be that happens at once, on a busy machine. What must not happen
// early has no such margin.
const soon = 2 * time.Second

const leaseName = "app-leasecron"

// arena is a namespace with a Lease for candidates to compete for, and the least rights to do so.
type arena struct {
	*electiontest.Field
	admin *rest.Config
	cfg   *rest.Config
	ns    string
}

// leastRole is all that an elector needs.
func leastRole() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{leaseName},
		Verbs: []string{"get", "update", "list", "watch"},
	}
}

func open(t *testing.T) *arena {
	t.Helper()
	a := openWithoutLease(t, leastRole())
	kubetest.Lease(t, a.admin, a.ns, leaseName, map[string]string{"app.kubernetes.io/name": "app"})
	return a
}

func openWithoutLease(t *testing.T, role rbacv1.PolicyRule) *arena {
	t.Helper()
	cp := controlplane.Shared(t)
	a := &arena{Field: electiontest.NewField(), admin: cp.AdminConfig(), ns: cp.Namespace(t)}
	a.cfg = cp.ServiceAccount(t, a.ns, "app", role)
	return a
}

func (a *arena) options(tb testing.TB, pod string, cfg *rest.Config) election.KubernetesOptions {
	tb.Helper()
	client, err := kube.New(cfg, "lease")
	if err != nil {
		tb.Fatal(err)
	}
	return election.KubernetesOptions{
		Options: electiontest.Options(tb, pod),
		Client:  client, Namespace: a.ns, Name: leaseName, App: "app",
		Duration: duration, RenewDeadline: deadline,
	}
}

func elector(tb testing.TB, opts election.KubernetesOptions) *election.Kubernetes {
	tb.Helper()
	e, err := election.NewKubernetes(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// candidate starts one that reaches the API server directly.
func (a *arena) candidate(tb testing.TB, pod string) *electiontest.Candidate {
	tb.Helper()
	return a.Start(tb, elector(tb, a.options(tb, pod, a.cfg)))
}

// behindProxy starts one whose way to the API server a test can disturb.
func (a *arena) behindProxy(tb testing.TB, pod string) (*electiontest.Candidate, *faultproxy.Proxy) {
	tb.Helper()
	p := faultproxy.Start(tb, a.cfg)
	return a.Start(tb, elector(tb, a.options(tb, pod, p.Config()))), p
}

// lease reads the Lease as an onlooker.
func (a *arena) lease(tb testing.TB) *coordinationv1.Lease {
	tb.Helper()
	client, err := kube.New(a.admin, "onlooker")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 20*time.Second)
	defer cancel()
	lease, err := client.GetLease(ctx, a.ns, leaseName)
	if err != nil {
		tb.Fatal(err)
	}
	return lease
}

func (a *arena) patch(tb testing.TB, patch string) {
	tb.Helper()
	kubetest.PatchLease(tb, a.admin, a.ns, leaseName, patch)
}

// writes are the requests that change the Lease.
var writes = faultproxy.Verb("update")

// renewed waits until the leader c knows of a further renewal and returns when it was sent.
func renewed(t *testing.T, c *electiontest.Candidate) time.Time {
	t.Helper()
	before := c.Elector.Status().RenewedAt
	electiontest.Until(t, "the next renewal", func() bool { return !c.Elector.Status().RenewedAt.Equal(before) })
	return c.Elector.Status().RenewedAt
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	electiontest.Run(t, func(t *testing.T) electiontest.Harness {
		t.Helper()
		a := open(t)
		proxies := make(map[election.Elector]*faultproxy.Proxy)
		return electiontest.Harness{
			Rivals: true, Remembers: true,
			Usurp: func(tb testing.TB) string {
				tb.Helper()
				a.patch(tb, `{"spec":{"holderIdentity":"usurper_1","leaseDurationSeconds":2}}`)
				return "usurper_1"
			},
			Isolate: func(_ testing.TB, e election.Elector) func() {
				proxies[e].Blackhole()
				return proxies[e].Heal
			},
			New: func(tb testing.TB, common election.Options) election.Elector {
				tb.Helper()
				p := faultproxy.Start(tb, a.cfg)
				opts := a.options(tb, "", p.Config())
				opts.Options = common
				e := elector(tb, opts)
				proxies[e] = p
				return e
			},
		}
	})
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	client, err := kube.New(&rest.Config{Host: "http://127.0.0.1:1"}, "lease")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*election.KubernetesOptions)
		want   string // part of the error; empty: accepted
	}{
		"the defaults": {func(*election.KubernetesOptions) {}, ""},
		"the shortest": {func(o *election.KubernetesOptions) { o.Duration = time.Second }, ""},
		"no identity":  {func(o *election.KubernetesOptions) { o.Identity = "" }, "Identity"},
		"no client":    {func(o *election.KubernetesOptions) { o.Client = nil }, "Client"},
		"a duration that the Lease cannot hold": {
			func(o *election.KubernetesOptions) { o.Duration = 1500 * time.Millisecond }, "whole seconds",
		},
		"a negative duration": {func(o *election.KubernetesOptions) { o.Duration = -time.Second }, "lease duration is -1s"},
		"a day":               {func(o *election.KubernetesOptions) { o.Duration = 24 * time.Hour }, "lease duration is 24h"},
		"a renew deadline as long as the duration": {
			func(o *election.KubernetesOptions) { o.RenewDeadline = 15 * time.Second }, "less than 15s",
		},
		"a renew deadline before the first renewal": {
			func(o *election.KubernetesOptions) { o.RenewDeadline = 5 * time.Second }, "more than 5s",
		},
		"calls so long that only one fits": {
			func(o *election.KubernetesOptions) { o.CallTimeout = 3 * time.Second }, "at most 2.5s",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := election.KubernetesOptions{
				Options: election.Options{Identity: "me"}, Client: client, Namespace: "ns", Name: "lease",
			}
			tt.change(&opts)
			_, err := election.NewKubernetes(opts)
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewKubernetes = %v, want an error that says %q", err, tt.want)
			}
		})
	}
}
