package source_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/config/source"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// readJobs is all that the source may do, and all that it needs.
var readJobs = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"web-jobs"},
	Verbs: []string{"list", "watch"},
}

func newConfigMap(t *testing.T, cfg *rest.Config, namespace string) *source.ConfigMap {
	t.Helper()
	client, err := kube.New(cfg, "definitions")
	if err != nil {
		t.Fatal(err)
	}
	s, err := source.NewConfigMap(source.ConfigMapOptions{Client: client, Namespace: namespace, Name: "web-jobs", Key: "jobs.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// patch sets keys of the ConfigMap, or removes those that are nil.
func patch(t *testing.T, cfg *rest.Config, namespace string, data map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	kubetest.PatchConfigMap(t, cfg, namespace, "web-jobs", string(text))
}

func TestConfigMapChanges(t *testing.T) {
	cp := controlplane.Shared(t)
	ns, admin := cp.Namespace(t), cp.AdminConfig()
	w := follow(t, newConfigMap(t, cp.ServiceAccount(t, ns, "sidecar", readJobs), ns))

	absent := w.next(t, 1)
	wantNames(t, absent, "error: ConfigMap "+ns+"/web-jobs does not exist")
	if want := "ConfigMap " + ns + "/web-jobs key jobs.yaml"; absent.Origin != want {
		t.Errorf("origin %q, want %q", absent.Origin, want)
	}

	kubetest.ConfigMap(t, admin, ns, "web-jobs", map[string]string{"jobs.yaml": document("one")})
	wantNames(t, w.next(t, 2), "one")

	began := time.Now()
	patch(t, admin, ns, map[string]any{"jobs.yaml": document("two")})
	wantNames(t, w.next(t, 3), "two")
	if took := time.Since(began); took > time.Second {
		t.Errorf("a change took %v, want less than a second", took)
	}

	patch(t, admin, ns, map[string]any{"jobs.yaml": "jobs: [{name: three}]\n"})
	wantNames(t, w.next(t, 4), "error: web-jobs/jobs.yaml:1:8: jobs[0] (job three): path is missing (want one such as /jobs/report)")

	patch(t, admin, ns, map[string]any{"jobs.yaml": nil, "jobs.yml": document("three")})
	wantNames(t, w.next(t, 5), "error: ConfigMap "+ns+`/web-jobs has no key "jobs.yaml" (it has jobs.yml)`)

	kubetest.DeleteConfigMap(t, admin, ns, "web-jobs")
	wantNames(t, w.next(t, 6), "error: ConfigMap "+ns+"/web-jobs does not exist")

	kubetest.ConfigMap(t, admin, ns, "web-jobs", map[string]string{"jobs.yaml": document("two")})
	wantNames(t, w.next(t, 7), "two")
}

func TestConfigMapIsPublishedOncePerContent(t *testing.T) {
	cp := controlplane.Shared(t)
	ns, admin := cp.Namespace(t), cp.AdminConfig()
	kubetest.ConfigMap(t, admin, ns, "web-jobs", map[string]string{"jobs.yaml": document("one")})
	w := follow(t, newConfigMap(t, cp.ServiceAccount(t, ns, "sidecar", readJobs), ns))
	wantNames(t, w.next(t, 1), "one")
	kubetest.PatchConfigMap(t, admin, ns, "web-jobs", `{"metadata":{"annotations":{"touched":"yes"}}}`)
	patch(t, admin, ns, map[string]any{"another-key": "of somebody else's"})
	patch(t, admin, ns, map[string]any{"jobs.yaml": document("two")})
	wantNames(t, w.next(t, 2), "two")
}

func TestConfigMapThatMayNotBeRead(t *testing.T) {
	cp := controlplane.Shared(t)
	ns, admin := cp.Namespace(t), cp.AdminConfig()
	kubetest.ConfigMap(t, admin, ns, "web-jobs", map[string]string{"jobs.yaml": document("one")})
	w := follow(t, newConfigMap(t, cp.ServiceAccount(t, ns, "sidecar"), ns))
	if u := w.next(t, 1); u.Err == nil || !strings.Contains(u.Err.Error(), "forbidden") {
		t.Fatalf("published %v, want that it is forbidden", u)
	}
	cp.Grant(t, ns, "sidecar", readJobs)
	for n := 2; ; n++ {
		if u := w.next(t, n); u.Err == nil {
			wantNames(t, u, "one")
			return
		}
	}
}

func TestConfigMapRefersToItsOtherKeys(t *testing.T) {
	cp := controlplane.Shared(t)
	ns, admin := cp.Namespace(t), cp.AdminConfig()
	kubetest.Create(t, admin, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-jobs"},
		Data:       map[string]string{"jobs.yaml": fmt.Sprintf(calendarOf, "a")},
		BinaryData: map[string][]byte{"feast.ics": fmt.Appendf(nil, icsOf, "20261224")},
	})
	w := follow(t, newConfigMap(t, cp.ServiceAccount(t, ns, "sidecar", readJobs), ns))
	wantCalendar := func(u source.Update, day string) {
		t.Helper()
		wantNames(t, u, "a")
		if ics := u.Document.Jobs[0].Calendars["feast"].ICS; !strings.Contains(ics, day) {
			t.Errorf("the calendar lacks %s:\n%s", day, ics)
		}
	}
	wantCalendar(w.next(t, 1), "20261224")

	kubetest.PatchConfigMap(t, admin, ns, "web-jobs", `{"binaryData":{"feast.ics":null}}`)
	wantNames(t, w.next(t, 2), "error: web-jobs/jobs.yaml:1:26: calendars.feast.ics: \"feast.ics\" cannot be read: ConfigMap "+ns+`/web-jobs has no key "feast.ics"`)

	patch(t, admin, ns, map[string]any{"feast.ics": fmt.Sprintf(icsOf, "20261225")})
	wantCalendar(w.next(t, 3), "20261225")
}
