package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/controlplane"
)

// The example's app, and the objects that are named after it.
const (
	appName    = "shop"
	jobsObject = "shop-jobs"
)

// cluster is a namespace in which the example's objects were applied.
type cluster struct {
	t          *testing.T
	cp         *controlplane.ControlPlane
	namespace  string
	kubeconfig string // of the example's ServiceAccount
}

// newCluster applies examples/kubernetes/leasecron.yaml, which so is tested as well, and replaces
// the example's jobs.
func newCluster(t *testing.T, cp *controlplane.ControlPlane, jobs string) *cluster {
	t.Helper()
	c := &cluster{t: t, cp: cp, namespace: cp.Namespace(t)}
	example, err := os.ReadFile("../../examples/kubernetes/leasecron.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(example), "\n---\n") {
		c.create(document)
	}
	c.setJobs(jobs)
	c.kubeconfig = controlplane.WriteKubeconfig(t, cp.TokenFor(t, c.namespace, appName), c.namespace)
	c.awaitRights()
	return c
}

// create posts one object, as kubectl create does.
func (c *cluster) create(document string) {
	c.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		c.t.Fatal(err)
	}
	var object struct{ APIVersion, Kind string }
	if err := json.Unmarshal(body, &object); err != nil {
		c.t.Fatal(err)
	}
	path := "/api/v1"
	if object.APIVersion != "v1" {
		path = "/apis/" + object.APIVersion
	}
	path += "/namespaces/" + c.namespace + "/" + strings.ToLower(object.Kind) + "s"
	status, answer := c.request(c.cp.AdminConfig(), http.MethodPost, path, body)
	if status != http.StatusCreated {
		c.t.Fatalf("create %s: %d %s", object.Kind, status, answer)
	}
}

func (c *cluster) request(cfg *rest.Config, method, path string, body []byte) (int, string) {
	c.t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(answer)
}

// awaitRights waits until the API server's authorizer has seen the new Role.
func (c *cluster) awaitRights() {
	c.t.Helper()
	cfg := c.cp.TokenFor(c.t, c.namespace, appName)
	for _, object := range []string{
		"/api/v1/namespaces/" + c.namespace + "/configmaps/" + jobsObject,
		"/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases/shop-leasecron",
	} {
		eventually(c.t, 10*time.Second, "the Role is in force", func() bool {
			status, _ := c.request(cfg, http.MethodGet, object, nil)
			return status == http.StatusOK
		})
	}
}

// setJobs replaces the jobs document.
func (c *cluster) setJobs(document string) {
	c.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"jobs.yaml": document}})
	if err != nil {
		c.t.Fatal(err)
	}
	kubetest.PatchConfigMap(c.t, c.cp.AdminConfig(), c.namespace, jobsObject, string(patch))
}

// The times of the tests' election, short so that the tests are.
const (
	leaseDuration = 4 * time.Second
	nodeTimeout   = 5 * time.Second
)

// start starts a sidecar of the cluster, with an app of its own.
func (c *cluster) start(name string, change ...func(settings map[string]string)) *sidecar {
	c.t.Helper()
	return c.startFor(startApp(c.t), name, change...)
}

func (c *cluster) startFor(a *app.App, name string, change ...func(settings map[string]string)) *sidecar {
	c.t.Helper()
	settings := map[string]string{
		"APP": appName, "NAMESPACE": c.namespace, "ELECTION": "kubernetes", "NODE_ID": name, "!KUBECONFIG": c.kubeconfig,
		"LEASE_DURATION": leaseDuration.String(), "NODE_TIMEOUT": nodeTimeout.String(),
		"APP_HEALTH_URL": a.URL() + "/health", "SHUTDOWN_GRACE": "10s",
	}
	for _, f := range change {
		f(settings)
	}
	return startSidecar(c.t, a, settings)
}

// record is all that the cluster knows of one trigger's instants.
type record struct {
	runs  []run.Run
	skips []run.Skip
}

// recorded reads ledger and history.
func (c *cluster) recorded() map[run.Key]record {
	c.t.Helper()
	client, err := kube.New(c.cp.AdminConfig(), "e2e")
	if err != nil {
		c.t.Fatal(err)
	}
	store, err := ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: c.namespace, App: appName})
	if err != nil {
		c.t.Fatal(err)
	}
	hot, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	history, err := ledger.NewPort[state.History](store, ledger.NameHistory).Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	out := make(map[run.Key]record)
	add := func(runs []run.Run, skips []run.Skip) {
		for _, r := range runs {
			rec := out[r.Key]
			rec.runs = append(rec.runs, r)
			out[r.Key] = rec
		}
		for _, s := range skips {
			rec := out[s.Key]
			rec.skips = append(rec.skips, s)
			out[s.Key] = rec
		}
	}
	add(hot.Runs, nil)
	add(hot.Finished, hot.Skipped)
	for _, j := range history.Jobs {
		add(j.Runs, j.Skips)
	}
	return out
}

// covers reports whether an instant is part of what was decided.
func (r record) covers(instant time.Time) bool {
	within := func(from, until time.Time) bool {
		return instant.Equal(from) || (!instant.Before(from) && instant.Before(until))
	}
	for _, x := range r.runs {
		if within(x.ScheduledAt, x.CoveredUntil) && (x.Coalesced > 1 || instant.Equal(x.ScheduledAt)) {
			return true
		}
	}
	for _, s := range r.skips {
		if within(s.ScheduledAt, s.CoveredUntil) {
			return true
		}
	}
	return false
}

// describe prints runs for a failure message.
func describe(runs []run.Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%s %s attempt %d %s coalesced=%d node=%s term=%d %s\n",
			r.ScheduledAt.Format("15:04:05.000"), r.Key, r.Attempt, r.State, r.Coalesced, r.Node, r.Term, r.Message)
	}
	return b.String()
}
