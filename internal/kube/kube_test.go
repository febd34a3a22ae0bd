package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// patience is how long what must happen may take on a busy machine.
const patience = 20 * time.Second

func newClient(t *testing.T, cfg *rest.Config) *kube.Client {
	t.Helper()
	c, err := kube.New(cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func timeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestReadAndReplace(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	c := newClient(t, cp.AdminConfig())
	ctx := timeout(t, patience)

	kubetest.ConfigMap(t, cp.AdminConfig(), ns, "doc", map[string]string{"k": "v1"})
	doc, err := c.GetConfigMap(ctx, ns, "doc")
	if err != nil || doc.Data["k"] != "v1" {
		t.Fatalf("GetConfigMap = %v, %v; want k=v1", doc, err)
	}
	stale := doc.DeepCopy()
	doc.Data["k"] = "v2"
	stored, err := c.UpdateConfigMap(ctx, doc)
	if err != nil || stored.Data["k"] != "v2" || stored.ResourceVersion == stale.ResourceVersion {
		t.Fatalf("UpdateConfigMap = %v, %v; want v2 under a new resourceVersion", stored, err)
	}
	if _, err := c.UpdateConfigMap(ctx, stale); !apierrors.IsConflict(err) || kube.Unknown(err) {
		t.Errorf("UpdateConfigMap of what is outdated = %v, want a conflict", err)
	}
	if _, err := c.UpdateConfigMap(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "doc"}}); err == nil || kube.Unknown(err) {
		t.Errorf("UpdateConfigMap without resourceVersion = %v, want it refused: it would overwrite blindly", err)
	}

	kubetest.Lease(t, cp.AdminConfig(), ns, "lead", nil)
	lease, err := c.GetLease(ctx, ns, "lead")
	if err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity = new("me")
	if lease, err = c.UpdateLease(ctx, lease); err != nil || *lease.Spec.HolderIdentity != "me" {
		t.Errorf("UpdateLease = %v, %v; want holder me", lease, err)
	}
}

func TestUnknownTellsWhatAFailedWriteLeavesBehind(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	tests := map[string]struct {
		prepare func(t *testing.T, p *faultproxy.Proxy, doc *corev1.ConfigMap)
		unknown bool
	}{
		"the answer was lost": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.DropAnswer(), faultproxy.Verb("update"))
		}, true},
		"the connection broke before the server had it": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Reset(), faultproxy.Verb("update"))
		}, true},
		"the call hung until its context ended": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Hang(), faultproxy.Verb("update"))
		}, true},
		"500": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Status(500, 0), faultproxy.Verb("update"))
		}, true},
		"502 of a proxy": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Status(502, 0), faultproxy.Verb("update"))
		}, true},
		"503 that asks to come back": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Status(503, time.Second), faultproxy.Verb("update"))
		}, true},
		"504": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Status(504, 0), faultproxy.Verb("update"))
		}, true},
		"429": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Inject(faultproxy.Status(429, time.Second), faultproxy.Verb("update"))
		}, false},
		"the server is down": {func(_ *testing.T, p *faultproxy.Proxy, _ *corev1.ConfigMap) {
			p.Cut()
		}, false},
		"the object is too large": {func(_ *testing.T, _ *faultproxy.Proxy, doc *corev1.ConfigMap) {
			doc.Data = map[string]string{"k": strings.Repeat("x", 2<<20)}
		}, false},
		"the object is invalid": {func(_ *testing.T, _ *faultproxy.Proxy, doc *corev1.ConfigMap) {
			doc.Data = map[string]string{"no such key!": ""}
		}, false},
		"the object is gone": {func(t *testing.T, _ *faultproxy.Proxy, doc *corev1.ConfigMap) {
			t.Helper()
			kubetest.DeleteConfigMap(t, cp.AdminConfig(), doc.Namespace, doc.Name)
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := cp.Namespace(t)
			p := faultproxy.Start(t, cp.AdminConfig())
			c := newClient(t, p.Config())
			kubetest.ConfigMap(t, cp.AdminConfig(), ns, "doc", map[string]string{"k": "v1"})
			doc, err := c.GetConfigMap(timeout(t, patience), ns, "doc")
			if err != nil {
				t.Fatal(err)
			}
			doc.Data["k"] = "v2"
			tt.prepare(t, p, doc)
			_, err = c.UpdateConfigMap(timeout(t, 3*time.Second), doc)
			if err == nil || kube.Unknown(err) != tt.unknown {
				t.Errorf("UpdateConfigMap = %v, Unknown = %v; want an error with Unknown = %v", err, kube.Unknown(err), tt.unknown)
			}
			if n := p.Count(faultproxy.Verb("update")); n > 1 {
				t.Errorf("the write was sent %d times, want at most once", n)
			}
		})
	}
}

func TestForbiddenIsNotUnknown(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	kubetest.ConfigMap(t, cp.AdminConfig(), ns, "doc", nil)
	c := newClient(t, cp.ServiceAccount(t, ns, "reader", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"doc"}, Verbs: []string{"get"},
	}))
	doc, err := c.GetConfigMap(timeout(t, patience), ns, "doc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateConfigMap(timeout(t, patience), doc); !apierrors.IsForbidden(err) || kube.Unknown(err) {
		t.Errorf("UpdateConfigMap = %v, want it forbidden and not unknown", err)
	}
}

func TestACallThatHangsCostsOnlyItself(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	kubetest.Lease(t, cp.AdminConfig(), ns, "lead", nil)
	p := faultproxy.Start(t, cp.AdminConfig())
	c := newClient(t, p.Config())
	if _, err := c.GetLease(timeout(t, patience), ns, "lead"); err != nil {
		t.Fatal(err)
	}
	p.Inject(faultproxy.HangAnswer().Times(1), faultproxy.Verb("get"))
	if _, err := c.GetLease(timeout(t, 100*time.Millisecond), ns, "lead"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the call that hangs = %v, want the context's end", err)
	}
	if _, err := c.GetLease(timeout(t, patience), ns, "lead"); err != nil {
		t.Errorf("the call after it = %v, want it answered", err)
	}
}

// R094
func TestConnectionsClosedByTheServerAreNoTrouble(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	kubetest.Lease(t, cp.AdminConfig(), ns, "lead", nil)
	p := faultproxy.Start(t, cp.AdminConfig())
	c := newClient(t, p.Config())
	for i := range 20 {
		lease, err := c.GetLease(timeout(t, patience), ns, "lead")
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		p.Cut()
		p.Heal()
		for attempt := 1; ; attempt++ { // one write may meet the connection while it closes
			_, err := c.UpdateLease(timeout(t, patience), lease)
			if err == nil {
				break
			}
			if attempt == 2 {
				t.Fatalf("round %d: second write after the connections were closed: %v", i, err)
			}
		}
	}
}

func TestClockOffsetFollowsTheServersDate(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	c := newClient(t, cp.AdminConfig())
	if _, _, ok := c.ClockOffset(); ok {
		t.Error("ClockOffset is known before there was an answer")
	}
	if _, err := c.GetConfigMap(timeout(t, patience), cp.Namespace(t), "none"); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	offset, uncertainty, ok := c.ClockOffset()
	if !ok || uncertainty < time.Second/2 || uncertainty > time.Second || offset.Abs() > uncertainty {
		t.Errorf("ClockOffset on one machine = %v ± %v, %v; want 0 within the uncertainty of a second's half", offset, uncertainty, ok)
	}
}
