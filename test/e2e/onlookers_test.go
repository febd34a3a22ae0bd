package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// addPod creates a Pod that nothing runs, and returns its UID.
func addPod(t *testing.T, c *cluster.Cluster, name string, labels map[string]string) (uid string) {
	t.Helper()
	pod := corev1.Pod{}
	pod.Name, pod.Labels = name, labels
	pod.Spec.Containers = []corev1.Container{{Name: "shop", Image: "shop"}}
	pod.Spec.AutomountServiceAccountToken = new(false)
	body, err := json.Marshal(&pod)
	if err != nil {
		t.Fatal(err)
	}
	answer := kubetest.Send(t, c.ControlPlane.AdminConfig(), http.MethodPost, "/api/v1/namespaces/"+c.Namespace+"/pods", string(body))
	if err := json.Unmarshal(answer, &pod); err != nil {
		t.Fatal(err)
	}
	return string(pod.UID)
}

// labelled are the Pods that a Service of the leader would select.
func labelled(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	var pods corev1.PodList
	path := "/api/v1/namespaces/" + c.Namespace + "/pods?labelSelector=leasecron.io/leader%3Dtrue"
	if err := json.Unmarshal(kubetest.Get(t, c.ControlPlane.AdminConfig(), path), &pods); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

// allowPods applies the example of a Service for the leader, with the right that the label needs.
func allowPods(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	example, err := os.ReadFile(filepath.Join("..", "..", "examples", "kubernetes", "leader-service.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.ControlPlane.Create(t, c.Namespace, example)
}

// The leader's Pod has the label, and no other: one that an earlier process left is taken off at the
// start, a drain takes it off, and the successor has it.
func TestLeaderLabel(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs: []\n")
	allowPods(t, c)
	start := func(name string, labels map[string]string) *cluster.Sidecar {
		uid := addPod(t, c, name, labels)
		a := cluster.StartApp(t)
		settings := c.Settings(a, name)
		settings["LEADER_LABEL"], settings["!POD_NAME"], settings["!POD_UID"], settings["!POD_NAMESPACE"] = "true", name, uid, c.Namespace
		return cluster.Start(t, a, settings)
	}
	wantOnly := func(name, when string) {
		t.Helper()
		cluster.Eventually(t, 15*time.Second, when, func() bool { return slices.Equal(labelled(t, c), []string{name}) })
	}
	first := start("shop-0", nil)
	wantOnly("shop-0", "the first leader is labelled")
	start("shop-1", map[string]string{"leasecron.io/leader": "true", "app": "shop"})
	wantOnly("shop-0", "the stale label is gone")
	if code, out := runDrain(t, first); code != 0 {
		t.Fatalf("sidecar drain = %d\n%s", code, out)
	}
	wantOnly("shop-1", "the successor is labelled, the drained leader is not")
	first.Stop(t, 10*time.Second)
	wantOnly("shop-1", "after the end of the drained one")
}

// eventsOf lists what was told, as "Kind Reason".
func eventsOf(t *testing.T, c *cluster.Cluster) (list []string, all []corev1.Event) {
	t.Helper()
	var events corev1.EventList
	if err := json.Unmarshal(kubetest.Get(t, c.ControlPlane.AdminConfig(), "/api/v1/namespaces/"+c.Namespace+"/events"), &events); err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.Source.Component == "leasecron" {
			list = append(list, e.InvolvedObject.Kind+" "+e.Reason)
			all = append(all, *e)
		}
	}
	slices.Sort(list)
	return list, all
}

// What somebody has to look at becomes an Event on the object that it is about; good runs do not.
func TestKubernetesEvents(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), drainJobs)
	uid := addPod(t, c, "shop-0", nil)
	a := cluster.StartApp(t)
	settings := c.Settings(a, "shop-0")
	settings["!POD_NAME"], settings["!POD_UID"], settings["!POD_NAMESPACE"] = "shop-0", uid, c.Namespace
	s := cluster.Start(t, a, settings)
	cluster.Eventually(t, 15*time.Second, "good runs", func() bool { return len(cluster.Arrivals("tick", a)) > 2 })
	has := func(want string) func() bool {
		return func() bool { list, _ := eventsOf(t, c); return slices.Contains(list, want) }
	}
	cluster.Eventually(t, 10*time.Second, "the new leader is told", has("Lease LeaderElected"))
	if list, _ := eventsOf(t, c); len(list) != 1 {
		t.Errorf("Events after good runs: %v, want the leader's alone", list)
	}
	a.Script("/slow", app.Reply(500, "disk full"))
	if _, err := s.Enqueue("slow"); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, 10*time.Second, "the failure is told", has("Pod RunFailed"))
	c.SetJobs(t, "jobs:\n- {name: tick, path: /tick, schedul: rate 1s}\n")
	cluster.Eventually(t, 10*time.Second, "the refusal is told", has("ConfigMap JobsRefused"))
	follower := c.Start(t, "shop-1")
	follower.WaitLog(t, "job definitions refused, the last good ones stay in force", 10*time.Second)
	if list, _ := eventsOf(t, c); len(list) != 3 {
		t.Errorf("Events: %v, want the refusal told by the leader alone", list)
	}
	if code, out := runDrain(t, s); code != 0 {
		t.Fatalf("sidecar drain = %d\n%s", code, out)
	}
	want := []string{ // by the first leader, and by its successor
		"ConfigMap JobsRefused", "ConfigMap JobsRefused", "Lease LeaderElected", "Lease LeaderElected", "Lease LeadershipHandedOver", "Pod RunFailed",
	}
	var all []corev1.Event
	cluster.Eventually(t, 10*time.Second, fmt.Sprint("the hand-over is told, and by the successor what still holds: ", want), func() bool {
		var list []string
		list, all = eventsOf(t, c)
		return slices.Equal(list, want)
	})
	for _, e := range all {
		path := fmt.Sprintf("%s/%s", map[string]string{
			"Pod": "/api/v1/namespaces/" + c.Namespace + "/pods", "ConfigMap": "/api/v1/namespaces/" + c.Namespace + "/configmaps",
			"Lease": "/apis/coordination.k8s.io/v1/namespaces/" + c.Namespace + "/leases",
		}[e.InvolvedObject.Kind], e.InvolvedObject.Name)
		var object struct{ Metadata struct{ UID string } }
		if err := json.Unmarshal(kubetest.Get(t, c.ControlPlane.AdminConfig(), path), &object); err != nil {
			t.Fatal(err)
		}
		if string(e.InvolvedObject.UID) != object.Metadata.UID {
			t.Errorf("%s names the UID %q of its %s, which has %q: kubectl describe would not show it", e.Reason, e.InvolvedObject.UID, e.InvolvedObject.Kind, object.Metadata.UID)
		}
		if e.Reason == "RunFailed" && !strings.Contains(e.Message, "disk full") {
			t.Errorf("the failure does not say why: %s", e.Message)
		}
	}
	for line := range strings.SplitSeq(s.Log(), "\n") {
		if strings.Contains(line, `"component":"events"`) {
			t.Errorf("the recorder complains: %s", line)
		}
	}
}
