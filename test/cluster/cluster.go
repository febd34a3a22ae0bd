package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/manifests"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/controlplane"
)

// The example's app, and the objects that are named after it.
const (
	AppName    = "shop"
	JobsObject = "shop-jobs"
)

// The times of the tests' election, short so that the tests are.
const (
	LeaseDuration = 4 * time.Second
	NodeTimeout   = 5 * time.Second
)

// Cluster is a namespace in which the example's objects were applied.
type Cluster struct {
	ControlPlane *controlplane.ControlPlane
	Namespace    string
	// Access is that of the example's ServiceAccount, Kubeconfig a file with it.
	Access     *rest.Config
	Kubeconfig string

	set Settings // of each sidecar
}

// New applies what sidecar pack makes for the example's Deployment, which so is tested as well, with
// these jobs.
func New(t testing.TB, cp *controlplane.ControlPlane, jobs string) *Cluster {
	t.Helper()
	c := Prepare(t, cp, Options{Jobs: jobs})
	c.awaitRights(t)
	return c
}

// Options say what is applied.
type Options struct {
	Jobs string
	// Set are settings of each sidecar, which the Role follows.
	Set Settings
	// Change, if set, changes the objects before they are applied.
	Change func(manifests.Object)
}

// Prepare is New without waiting until the Role is in force.
func Prepare(t testing.TB, cp *controlplane.ControlPlane, o Options) *Cluster {
	t.Helper()
	c := &Cluster{ControlPlane: cp, Namespace: cp.Namespace(t), set: o.Set}
	objects, err := pack(c.Namespace, o.Set)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if o.Change != nil {
			o.Change(object)
		}
	}
	cp.Create(t, c.Namespace, manifests.YAML(objects...))
	c.SetJobs(t, o.Jobs)
	c.Access = cp.TokenFor(t, c.Namespace, AppName)
	c.Kubeconfig = controlplane.WriteKubeconfig(t, c.Access, c.Namespace)
	return c
}

// pack makes the objects of the example's app.
func pack(namespace string, set Settings) ([]manifests.Object, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	deployment, err := os.ReadFile(filepath.Join(root, "examples", "kubernetes", "deployment.yaml"))
	if err != nil {
		return nil, err
	}
	const none = "jobs: []\n"
	settings, err := manifests.SettingNames(set)
	if err != nil {
		return nil, err
	}
	p, err := manifests.Pack(manifests.PackOptions{
		Sidecar: manifests.Sidecar{Image: "leasecron:test", Settings: settings}, Namespace: namespace, Workload: deployment,
		Jobs: &manifests.Jobs{Keys: map[string][]byte{"jobs.yaml": []byte(none)}},
	})
	if err != nil {
		return nil, err
	}
	objects, err := manifests.ParseStream(p.Stream())
	return slices.DeleteFunc(objects, func(o manifests.Object) bool { return o.Kind() == "Deployment" }), err
}

func request(ctx context.Context, cfg *rest.Config, method, path, contentType string, body []byte) (status int, answer string, err error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text), err
}

// awaitRights waits until the API server's authorizer has seen the new Role.
func (c *Cluster) awaitRights(t testing.TB) {
	t.Helper()
	for _, object := range []string{
		"/api/v1/namespaces/" + c.Namespace + "/configmaps?fieldSelector=metadata.name%3D" + JobsObject,
		"/apis/coordination.k8s.io/v1/namespaces/" + c.Namespace + "/leases/shop-leasecron",
	} {
		Eventually(t, 10*time.Second, "the Role is in force", func() bool {
			status, _, err := request(t.Context(), c.Access, http.MethodGet, object, "application/json", nil)
			return err == nil && status == http.StatusOK
		})
	}
}

// SetJobs replaces the jobs document.
func (c *Cluster) SetJobs(t testing.TB, document string) {
	t.Helper()
	if err := c.EditJobs(t.Context(), document); err != nil {
		t.Fatal(err)
	}
}

// EditJobs is SetJobs for those who have taken the API server away.
func (c *Cluster) EditJobs(ctx context.Context, document string) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"jobs.yaml": document}})
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + c.Namespace + "/configmaps/" + JobsObject
	status, answer, err := request(ctx, c.ControlPlane.AdminConfig(), http.MethodPatch, path, "application/merge-patch+json", patch)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, answer)
	}
	if err != nil {
		return fmt.Errorf("replace the jobs document: %w", err)
	}
	return nil
}

// LeaseObject is the Lease that the example's sidecars compete for.
const LeaseObject = AppName + "-leasecron"

func (c *Cluster) leases() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + c.Namespace + "/leases"
}

// EditLease applies a merge patch to the Lease, as another hand would. It tells errors to those who
// have taken the API server away.
func (c *Cluster) EditLease(ctx context.Context, patch string) error {
	status, answer, err := request(ctx, c.ControlPlane.AdminConfig(), http.MethodPatch, c.leases()+"/"+LeaseObject,
		"application/merge-patch+json", []byte(patch))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, answer)
	}
	if err != nil {
		return fmt.Errorf("edit the Lease: %w", err)
	}
	return nil
}

// ReplaceLease deletes the Lease and makes a new one. What it did before an error is not undone: call
// it again.
func (c *Cluster) ReplaceLease(ctx context.Context) error {
	lease := `{"metadata":{"name":"` + LeaseObject + `","labels":{"app.kubernetes.io/name":"` + AppName + `"}}}`
	for _, step := range []struct {
		method, path, body string
		well               []int
	}{
		{http.MethodDelete, c.leases() + "/" + LeaseObject, "", []int{http.StatusOK, http.StatusNotFound}},
		{http.MethodPost, c.leases(), lease, []int{http.StatusCreated, http.StatusConflict}},
	} {
		status, answer, err := request(ctx, c.ControlPlane.AdminConfig(), step.method, step.path, "application/json", []byte(step.body))
		if err == nil && !slices.Contains(step.well, status) {
			err = fmt.Errorf("%d %s", status, answer)
		}
		if err != nil {
			return fmt.Errorf("replace the Lease: %w", err)
		}
	}
	return nil
}

// Settings are those of one sidecar of the cluster, beside an app.
func (c *Cluster) Settings(a *app.App, name string) Settings {
	settings := Settings{
		"APP": AppName, "NAMESPACE": c.Namespace, "ELECTION": "kubernetes", "NODE_ID": name, "!KUBECONFIG": c.Kubeconfig,
		"LEASE_DURATION": LeaseDuration.String(), "NODE_TIMEOUT": NodeTimeout.String(),
		"TARGET": a.URL(), "APP_HEALTH_URL": a.URL() + "/health", "SHUTDOWN_GRACE": "10s",
	}
	maps.Copy(settings, c.set)
	return settings
}

// Start starts a sidecar of the cluster, beside an app of its own.
func (c *Cluster) Start(t testing.TB, name string) *Sidecar {
	t.Helper()
	return c.StartBeside(t, StartApp(t), name)
}

// StartBeside starts a sidecar of the cluster beside an app.
func (c *Cluster) StartBeside(t testing.TB, a *app.App, name string) *Sidecar {
	t.Helper()
	return Start(t, a, c.Settings(a, name))
}
