package pack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/manifests"
	"github.com/leasecron/leasecron/rbac"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// everything is what switches on all that needs a right.
var everything = cluster.Settings{"LEADER_LABEL": "true"}

// busyJobs end so many runs that the history is written within seconds, and fail so often that an Event has to be brought up to date.
func busyJobs() string {
	var b strings.Builder
	b.WriteString("jobs:\n- {name: failing, path: /failing, schedule: rate 1s}\n")
	for i := range 60 {
		fmt.Fprintf(&b, "- {name: job-%d, path: /job, schedule: rate 1s}\n", i)
	}
	return b.String()
}

// packedRules reads the rules of the packed Role.
func packedRules(t *testing.T, role manifests.Object) []rbacv1.PolicyRule {
	t.Helper()
	text, err := json.Marshal(role["rules"])
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	if err := json.Unmarshal(text, &rules); err != nil || len(rules) == 0 {
		t.Fatalf("rules of the packed Role: %v, %v", rules, err)
	}
	return rules
}

func setRules(t *testing.T, role manifests.Object, rules []rbacv1.PolicyRule) {
	t.Helper()
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	role["rules"] = tree
}

// behind puts a proxy that counts between the cluster's sidecars and the API server. The first renewal of the Lease loses its
// answer, so that the sidecar has to look whether it was stored.
func behind(t *testing.T, c *cluster.Cluster) *faultproxy.Proxy {
	t.Helper()
	p := faultproxy.Start(t, c.Access)
	p.Inject(faultproxy.DropAnswer().Times(1), faultproxy.Verb("update"), faultproxy.Resource("leases"))
	c.Kubeconfig = controlplane.WriteKubeconfig(t, p.ConfigFor(c.Access), c.Namespace)
	return p
}

// used is what a request needs, or false if it needs no right of its own.
func used(r faultproxy.Request) (rbac.Right, bool) {
	if r.Resource == "" || r.Group == "authorization.k8s.io" {
		return rbac.Right{}, false
	}
	name := r.Name + r.Selected
	if r.Verb == "create" || r.Resource == "events" || r.Resource == "pods" {
		name = ""
	}
	return rbac.Right{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: name}, true
}

// refused are the rights that the API server said were lacking.
func refused(p *faultproxy.Proxy) map[rbac.Right]bool {
	out := make(map[rbac.Right]bool)
	for _, r := range p.Requests() {
		if right, ok := used(r); ok && r.Status == http.StatusForbidden {
			out[right] = true
		}
	}
	return out
}

// TestJustTheRights: three processes with nothing but a token of the packed service account elect, load the ConfigMap,
// fire, fail over and record; each right of the packed Role is used, and nothing beyond them is asked for.
func TestJustTheRights(t *testing.T) {
	t.Parallel()
	var rights []rbac.Right
	c := cluster.Prepare(t, controlplane.Shared(t), cluster.Options{Jobs: busyJobs(), Set: everything, Change: func(o manifests.Object) {
		if o.Kind() == "Role" {
			rights = rbac.Rights(packedRules(t, o))
		}
	}})
	awaitRights(t, c, rights)
	p := behind(t, c)
	var all []*cluster.Sidecar
	for _, name := range []string{"shop-0", "shop-1", "shop-2"} {
		a, settings := inPod(t, c, name)
		all = append(all, cluster.Start(t, a, settings))
	}
	first := cluster.Leader(t, 20*time.Second, all)
	if _, err := first.App.WaitFor(150, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	first.Kill()
	var alive []*cluster.Sidecar
	for _, s := range all {
		if s != first {
			alive = append(alive, s)
		}
	}
	second := cluster.Leader(t, cluster.LeaseDuration+15*time.Second, alive)
	if _, err := second.App.WaitFor(60, 30*time.Second); err != nil {
		t.Fatal(err)
	}

	acquireLease(t, second)

	seen := func() map[rbac.Right]bool {
		out := make(map[rbac.Right]bool)
		for _, r := range p.Requests() {
			if right, ok := used(r); ok && r.Status >= 200 && r.Status < 300 {
				out[right] = true
			}
		}
		return out
	}
	for _, right := range rights {
		t.Run(strings.ReplaceAll(right.String(), "/", " "), func(t *testing.T) {
			cluster.Eventually(t, 30*time.Second, "the right is used: "+right.String(), func() bool { return seen()[right] })
		})
	}
	for right := range refused(p) {
		t.Errorf("a sidecar was refused: %s", right)
	}
	granted := make(map[rbac.Right]bool)
	for _, right := range rights {
		granted[right] = true
	}
	for right := range seen() {
		if !granted[right] {
			t.Errorf("a sidecar used a right that the Role does not give: %s", right)
		}
	}
	recorded := 0
	for _, rec := range c.Recorded(t) {
		for _, r := range rec.Runs {
			if r.State == run.StateSucceeded {
				recorded++
			}
		}
	}
	if recorded < 100 {
		t.Errorf("%d runs are recorded as succeeded, want 100 or more", recorded)
	}
}

// TestEachRightIsNeeded takes the rights of the packed Role away one by one: the sidecar misses just that one.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	var rights []rbac.Right
	cluster.Prepare(t, cp, cluster.Options{Jobs: "jobs: []\n", Set: everything, Change: func(o manifests.Object) {
		if o.Kind() == "Role" {
			rights = rbac.Rights(packedRules(t, o))
		}
	}})
	// All are started before any is looked at, so that together they take as long as the slowest.
	proxies, sidecars := make(map[rbac.Right]*faultproxy.Proxy), make(map[rbac.Right]*cluster.Sidecar)
	for _, lacking := range rights {
		var rest []rbac.Right
		c := cluster.Prepare(t, cp, cluster.Options{Jobs: busyJobs(), Set: everything, Change: func(o manifests.Object) {
			if o.Kind() == "Role" {
				rules := rbac.Without(packedRules(t, o), lacking)
				rest = rbac.Rights(rules)
				setRules(t, o, rules)
			}
		}})
		awaitRights(t, c, rest)
		proxies[lacking] = behind(t, c)
		a, settings := inPod(t, c, "shop-0")
		s, err := cluster.Launch(a, settings)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		sidecars[lacking] = s
	}
	for _, lacking := range rights {
		t.Run(strings.ReplaceAll(lacking.String(), "/", " "), func(t *testing.T) {
			p := proxies[lacking]
			if lacking.Name == "shop-leasecron-leases" {
				acquireLease(t, sidecars[lacking])
			}
			cluster.Eventually(t, 40*time.Second, "a sidecar misses "+lacking.String(), func() bool { return refused(p)[lacking] })
			for right := range refused(p) {
				if right != lacking {
					t.Errorf("it was refused %s too", right)
				}
			}
		})
	}
}

// inPod makes a Pod that nothing runs, and an app that fails one of its jobs, for a sidecar that takes itself to be in it.
func inPod(t *testing.T, c *cluster.Cluster, name string) (*app.App, cluster.Settings) {
	t.Helper()
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
	}
	if err := post(t, c.ControlPlane.AdminConfig(), "/api/v1/namespaces/"+c.Namespace+"/pods", pod); err != nil {
		t.Fatal(err)
	}
	a := cluster.StartApp(t)
	a.Script("/failing", slices.Repeat([]app.Behavior{app.Status(http.StatusInternalServerError)}, 100)...)
	settings := c.Settings(a, name)
	settings["!POD_NAME"], settings["!POD_UID"], settings["!POD_NAMESPACE"] = name, string(pod.UID), c.Namespace
	return a, settings
}

// acquireLease asks a sidecar for a named lease, as the app does; the answer is not looked at.
func acquireLease(t *testing.T, s *cluster.Sidecar) {
	t.Helper()
	cluster.Eventually(t, 20*time.Second, "the sidecar serves", func() bool { return s.APIAddress() != "" })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.APIAddress()+"/v1/leases/index/acquire",
		strings.NewReader(`{"holder": "worker", "ttlSeconds": 30}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}

// awaitRights waits until the API server's authorizer has seen the Role.
func awaitRights(t *testing.T, c *cluster.Cluster, rights []rbac.Right) {
	t.Helper()
	for _, right := range rights {
		cluster.Eventually(t, 20*time.Second, right.String()+" is in force", func() bool {
			allowed, err := allowed(t, c, right)
			if err != nil {
				t.Fatal(err)
			}
			return allowed
		})
	}
}
