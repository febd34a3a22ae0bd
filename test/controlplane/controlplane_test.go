package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/test/controlplane"
)

// childEnv turns the test binary into a program that owns a control plane until it is killed.
const childEnv = "CONTROLPLANE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		controlplane.Main(m)
	}
	cp, err := controlplane.New(context.Background(), os.Stderr)
	if err != nil {
		panic(err)
	}
	fmt.Println(cp.Etcd.PID(), cp.APIServer.PID(), cp.Dir())
	select {}
}

func TestRBACAllowsWhatTheRoleSaysAndNothingElse(t *testing.T) {
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	client := clientFor(t, cp.ServiceAccount(t, ns, "sidecar", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"},
	}))

	if _, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get the named ConfigMap: got %v, want not found: it is allowed and does not exist", err)
	}
	if _, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get another ConfigMap: got %v, want forbidden", err)
	}
	if _, err := client.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list Secrets: got %v, want forbidden", err)
	}
}

func TestUserWithoutARoleIsDenied(t *testing.T) {
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	client := clientFor(t, cp.User(t, "somebody"))

	_, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"somebody"`) {
		t.Errorf(`list ConfigMaps as "somebody": got %v, want forbidden, naming the user`, err)
	}
}

func TestPodSecurityIsEnforced(t *testing.T) {
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	client := clientFor(t, cp.AdminConfig())
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if _, err := client.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	_, err = client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "root"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("create an unrestricted Pod: got %v, want forbidden by PodSecurity", err)
	}
}

func TestCreateReadsManifests(t *testing.T) {
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	cp.Create(t, ns, []byte(`# A comment alone is no object.
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {k: v}
`))
	client := clientFor(t, cp.AdminConfig())
	if _, err := client.CoordinationV1().Leases(ns).Get(t.Context(), "l", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	got, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), "c", metav1.GetOptions{})
	if err != nil || got.Data["k"] != "v" {
		t.Errorf("ConfigMap = %v, %v, want k: v", got.Data, err)
	}
}

func TestKubeconfigGivesTheSameAccess(t *testing.T) {
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	path := controlplane.WriteKubeconfig(t, cp.ServiceAccount(t, ns, "reader"), ns)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{cp.URL(), "namespace: " + ns, "token: ", "certificate-authority-data: "} {
		if !strings.Contains(string(got), want) {
			t.Errorf("kubeconfig lacks %q", want)
		}
	}
}

func TestDataAndAddressSurviveEveryFault(t *testing.T) {
	cp := controlplane.Start(t)
	ns := cp.Namespace(t)
	client := clientFor(t, cp.AdminConfig())
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kept := func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(ns).Get(ctx, "kept", metav1.GetOptions{})
		return err
	}

	faults := []struct {
		name           string
		strike, repair func(testing.TB)
	}{
		{"API server restarted", cp.APIServer.Stop, cp.APIServer.Start},
		{"API server killed", cp.APIServer.Kill, cp.APIServer.Start},
		{"API server frozen", cp.APIServer.Pause, cp.APIServer.Resume},
		{"etcd killed", cp.Etcd.Kill, cp.Etcd.Start},
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			fault.strike(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := kept(ctx); err == nil {
				t.Error("the API server answered during the fault")
			}
			fault.repair(t)
			waitFor(t, kept)
		})
	}
}

func TestCloseLeavesNoProcessAndNoFile(t *testing.T) {
	cp, err := controlplane.New(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{cp.Etcd.PID(), cp.APIServer.PID()}
	if err := cp.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil || pid == 0 {
			t.Errorf("process %d is still there", pid)
		}
	}
	if _, err := os.Stat(cp.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", cp.Dir(), err)
	}
	if _, err := http.Get(cp.URL()); err == nil {
		t.Errorf("%s still answers", cp.URL())
	}
}

func TestKilledOwnerLeavesNoProcessAndTheNextStartRemovesItsFolder(t *testing.T) {
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), childEnv+"=1")
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var etcd, apiServer int
	var dir string
	if _, err := fmt.Fscan(stdout, &etcd, &apiServer, &dir); err != nil {
		t.Fatal(err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed

	waitFor(t, func(context.Context) error {
		return errors.Join(gone(etcd), gone(apiServer))
	})
	controlplane.Start(t)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
}

func gone(pid int) error {
	if err := syscall.Kill(pid, 0); err == nil {
		return fmt.Errorf("process %d is still there", pid)
	}
	return nil
}

func clientFor(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waitFor tries until it works.
func waitFor(t *testing.T, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still failing after 30 s: %v", err)
		case <-tick.C:
		}
	}
}
