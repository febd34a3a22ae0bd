package kube_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// seen keeps what a watch told, for a test to wait for.
type seen struct {
	mu      sync.Mutex
	known   bool
	present bool
	data    map[string]string
	version string
	up      bool
	downs   int
	changed chan struct{}
}

func (s *seen) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *seen) state(err error) {
	s.update(func() {
		s.up = err == nil
		if err != nil {
			s.downs++
		}
	})
}

func (s *seen) until(t *testing.T, what string, ok func(*seen) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		done, changed := ok(s), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the watch did not tell within %v: %s", patience, what)
		}
	}
}

func watchDoc(t *testing.T, c *kube.Client, ns string) *seen {
	t.Helper()
	s := &seen{changed: make(chan struct{})}
	background(t, func(ctx context.Context) {
		c.WatchConfigMap(ctx, ns, "doc", kube.Handler[corev1.ConfigMap]{
			Object: func(doc *corev1.ConfigMap) {
				s.update(func() {
					s.known, s.present, s.data = true, doc != nil, nil
					if doc != nil {
						s.data, s.version = doc.Data, doc.ResourceVersion
					}
				})
			},
			State: s.state,
		})
	})
	return s
}

// background runs f until the test ends and waits for its return.
func background(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the watch did not end with its context")
		}
	})
}

func has(value string) func(*seen) bool {
	return func(s *seen) bool { return maps.Equal(s.data, map[string]string{"k": value}) }
}

func isUp(s *seen) bool { return s.up }

// The rights are on the one name.
func nameOnly() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"doc"}, Verbs: []string{"list", "watch"},
	}
}

func TestWatchTellsEveryChange(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns, admin := cp.Namespace(t), cp.AdminConfig()
	p := faultproxy.Start(t, cp.ServiceAccount(t, ns, "watcher", nameOnly()))
	s := watchDoc(t, newClient(t, p.Config()), ns)

	s.until(t, "there is none", func(s *seen) bool { return s.known && !s.present && s.up })
	kubetest.ConfigMap(t, admin, ns, "other", map[string]string{"k": "other"})
	kubetest.ConfigMap(t, admin, ns, "doc", map[string]string{"k": "v1"})
	s.until(t, "created", has("v1"))
	kubetest.PatchConfigMap(t, admin, ns, "doc", `{"data":{"k":"v2"}}`)
	s.until(t, "changed", has("v2"))
	kubetest.DeleteConfigMap(t, admin, ns, "doc")
	s.until(t, "deleted", func(s *seen) bool { return !s.present })
	kubetest.ConfigMap(t, admin, ns, "doc", map[string]string{"k": "v3"})
	s.until(t, "created again", has("v3"))

	if lists, watches := p.Count(faultproxy.Verb("list")), p.Count(faultproxy.Verb("watch")); lists != 1 || watches != 1 {
		t.Errorf("%d lists and %d watches, want one of each", lists, watches)
	}
}

func TestWatchOfMetadataDoesNotBringTheContent(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns, admin := cp.Namespace(t), cp.AdminConfig()
	kubetest.ConfigMap(t, admin, ns, "doc", map[string]string{"k": "v1"})
	c := newClient(t, cp.ServiceAccount(t, ns, "watcher", nameOnly()))
	versions := make(chan string, 16)
	background(t, func(ctx context.Context) {
		c.WatchConfigMapMetadata(ctx, ns, "doc", kube.Handler[metav1.PartialObjectMetadata]{
			Object: func(doc *metav1.PartialObjectMetadata) {
				if doc == nil {
					versions <- "none"
					return
				}
				versions <- doc.ResourceVersion
			},
		})
	})
	receive := func() string {
		t.Helper()
		select {
		case v := <-versions:
			return v
		case <-time.After(patience):
			t.Fatalf("nothing told within %v", patience)
			return ""
		}
	}
	first := receive()
	kubetest.PatchConfigMap(t, admin, ns, "doc", `{"data":{"k":"v2"}}`)
	if second := receive(); second == first || second == "none" {
		t.Errorf("resourceVersion after a change = %q, before %q; want another one", second, first)
	}
	kubetest.DeleteConfigMap(t, admin, ns, "doc")
	if last := receive(); last != "none" {
		t.Errorf("after the deletion: %q, want none", last)
	}
}

func TestWatchComesBack(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	tests := map[string]struct {
		disturb func(p *faultproxy.Proxy)
		relist  bool
	}{
		"after the server was away": {func(p *faultproxy.Proxy) { p.Cut() }, false},
		"after its version was gone": {func(p *faultproxy.Proxy) {
			p.Inject(faultproxy.Status(410, 0), faultproxy.Verb("watch"))
			p.Cut()
		}, true},
		"after a partition, by its silence": {func(p *faultproxy.Proxy) { p.Blackhole() }, false},
		"after internal errors": {func(p *faultproxy.Proxy) {
			p.Inject(faultproxy.Status(500, 0))
			p.Cut()
		}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, admin := cp.Namespace(t), cp.AdminConfig()
			kubetest.ConfigMap(t, admin, ns, "doc", map[string]string{"k": "v1"})
			p := faultproxy.Start(t, admin)
			c := newClient(t, p.Config())
			c.SetWatchSilence(time.Second)
			s := watchDoc(t, c, ns)
			s.until(t, "the beginning", has("v1"))
			s.until(t, "up", isUp)

			tt.disturb(p)
			kubetest.PatchConfigMap(t, admin, ns, "doc", `{"data":{"k":"v2"}}`)
			s.until(t, "down", func(s *seen) bool { return s.downs > 0 })
			p.Heal()
			s.until(t, "the change during the break", has("v2"))
			s.until(t, "up again", isUp)
			kubetest.PatchConfigMap(t, admin, ns, "doc", `{"data":{"k":"v3"}}`)
			s.until(t, "a change after the break", has("v3"))
		})
	}
}

func TestWatchThatIsRefusedIsTriedWithPauses(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	p := faultproxy.Start(t, cp.ServiceAccount(t, ns, "nobody"))
	s := watchDoc(t, newClient(t, p.Config()), ns)
	s.until(t, "down three times", func(s *seen) bool { return s.downs >= 3 })
	if got := p.Count(); got > 4 {
		t.Errorf("%d requests for three failures, want no more than that", got)
	}
}
