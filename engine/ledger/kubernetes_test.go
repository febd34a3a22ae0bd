package ledger_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// cluster is a namespace of a real API server, and somebody who may do everything in it.
type cluster struct {
	cp        *controlplane.ControlPlane
	namespace string
	admin     *http.Client
}

func newCluster(tb testing.TB) cluster {
	tb.Helper()
	cp := controlplane.Shared(tb)
	admin, err := rest.HTTPClientFor(cp.AdminConfig())
	if err != nil {
		tb.Fatal(err)
	}
	return cluster{cp: cp, namespace: cp.Namespace(tb), admin: admin}
}

// sidecar is access with the rights that a sidecar of these apps has, and no others.
func (c cluster) sidecar(tb testing.TB, apps ...string) *rest.Config {
	tb.Helper()
	var names []string
	for _, app := range apps {
		for _, name := range ledger.Names() {
			names = append(names, ledger.ConfigMapName(app, name))
		}
	}
	return c.cp.ServiceAccount(tb, c.namespace, "sidecar", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names,
		Verbs: []string{"get", "list", "watch", "update"},
	})
}

// do sends one request as the administrator and reads the answer into out, unless that is nil.
func (c cluster) do(tb testing.TB, method, name string, in, out any) {
	tb.Helper()
	url := c.cp.URL() + "/api/v1/namespaces/" + c.namespace + "/configmaps"
	if name != "" {
		url += "/" + name
	}
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			tb.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(tb.Context(), method, url, &body)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.admin.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		tb.Fatalf("%s %s: %s, %v\n%s", method, url, resp.Status, err, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			tb.Fatal(err)
		}
	}
}

// create makes the empty objects of an app, as applying the pack does.
func (c cluster) create(tb testing.TB, app string, names ...ledger.Name) {
	tb.Helper()
	for _, name := range names {
		c.do(tb, http.MethodPost, "", configMap(ledger.ConfigMapName(app, name), nil), nil)
	}
}

func (c cluster) get(tb testing.TB, app string, name ledger.Name) corev1.ConfigMap {
	tb.Helper()
	var cm corev1.ConfigMap
	c.do(tb, http.MethodGet, ledger.ConfigMapName(app, name), nil, &cm)
	return cm
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       data,
	}
}

func (c cluster) open(tb testing.TB, cfg *rest.Config, app string, timeout time.Duration) *ledger.Kubernetes {
	tb.Helper()
	client, err := kube.New(cfg, "ledger")
	if err != nil {
		tb.Fatal(err)
	}
	store, err := ledger.NewKubernetes(ledger.KubernetesOptions{
		Client: client, Namespace: c.namespace, App: app, Timeout: timeout,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

func TestKubernetesConforms(t *testing.T) {
	c := newCluster(t)
	apps := make([]string, 40)
	for i := range apps {
		apps[i] = fmt.Sprintf("app-%d", i)
	}
	cfg := c.sidecar(t, apps...)
	ledgertest.Run(t, func(t *testing.T) ledgertest.Backend {
		t.Helper()
		if len(apps) == 0 {
			t.Fatal("the suite has more tests than there are apps")
		}
		app := apps[0]
		apps = apps[1:]
		c.create(t, app, ledger.Names()...)
		return ledgertest.Backend{
			Open: func(t *testing.T) ledger.Store { t.Helper(); return c.open(t, cfg, app, 0) },
			Recreate: func(t *testing.T, name ledger.Name) {
				t.Helper()
				c.do(t, http.MethodDelete, ledger.ConfigMapName(app, name), nil, nil)
				c.create(t, app, name)
			},
		}
	})
}

func TestMissingObject(t *testing.T) {
	c := newCluster(t)
	store := c.open(t, c.sidecar(t, "app"), "app", 0)
	_, _, err := newTally(store).Swap(t.Context(), increment)
	if !errors.Is(err, ledger.ErrMissing) {
		t.Fatalf("Swap() = %v, want %v", err, ledger.ErrMissing)
	}
	for _, part := range []string{c.namespace + "/app-leasecron-ledger", "sidecar pack"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Swap() = %q, lacks %q", err, part)
		}
	}

	// An object that goes away under a writer that remembers it.
	c.create(t, "app", ledger.NameLedger)
	doc := newTally(store)
	if _, _, err := doc.Swap(t.Context(), increment); err != nil {
		t.Fatal(err)
	}
	c.do(t, http.MethodDelete, "app-leasecron-ledger", nil, nil)
	if _, _, err := doc.Swap(t.Context(), increment); !errors.Is(err, ledger.ErrMissing) {
		t.Errorf("Swap() after it was deleted = %v, want %v", err, ledger.ErrMissing)
	}
	c.create(t, "app", ledger.NameLedger)
	if got, _, err := doc.Swap(t.Context(), increment); err != nil || got.Count != 1 {
		t.Errorf("Swap() after it was made anew = %v, %v; want a count of 1", got, err)
	}
}

// What others keep in the objects stays, and the documents are laid out as people expect them.
func TestObjectsKeepWhatOthersPutThere(t *testing.T) {
	c := newCluster(t)
	for _, name := range ledger.Names() {
		cm := configMap(ledger.ConfigMapName("app", name), map[string]string{"note": "do not delete"})
		cm.Labels = map[string]string{"app.kubernetes.io/name": "app"}
		cm.Annotations = map[string]string{"example.com/owner": "payments"}
		cm.BinaryData = map[string][]byte{"blob": {0, 1, 2}}
		c.do(t, http.MethodPost, "", cm, nil)
	}
	store := c.open(t, c.sidecar(t, "app"), "app", 0)
	for _, name := range ledger.Names() {
		t.Run(string(name), func(t *testing.T) {
			before := c.get(t, "app", name)
			doc := ledger.NewDocument[tally](store, name)
			for range 2 { // once after a read, once from memory
				if _, _, err := doc.Swap(t.Context(), increment); err != nil {
					t.Fatal(err)
				}
			}
			// An edit between two swaps of a writer that remembers what it wrote.
			edited := c.get(t, "app", name)
			edited.Labels["edited"] = "yes"
			c.do(t, http.MethodPut, edited.Name, &edited, nil)
			if _, _, err := doc.Swap(t.Context(), increment); err != nil {
				t.Fatal(err)
			}
			after := c.get(t, "app", name)

			document := []byte(after.Data[string(name)+".json"])
			if name == ledger.NameCatalog || name == ledger.NameHistory {
				document = gunzip(t, after.BinaryData[string(name)+".json.gz"])
			}
			var got tally
			if err := json.Unmarshal(document, &got); err != nil || got.Count != 3 {
				t.Errorf("%s holds %q (%v), want a count of 3", name, document, err)
			}
			maps.DeleteFunc(after.Data, func(k, _ string) bool { return k != "note" })
			maps.DeleteFunc(after.BinaryData, func(k string, _ []byte) bool { return k != "blob" })
			before.Labels["edited"] = "yes"
			if diff := cmp.Diff(before.Labels, after.Labels); diff != "" {
				t.Errorf("labels (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before.Annotations, after.Annotations); diff != "" {
				t.Errorf("annotations (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before.Data, after.Data); diff != "" {
				t.Errorf("other data (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before.BinaryData, after.BinaryData); diff != "" {
				t.Errorf("other binary data (-before +after):\n%s", diff)
			}
			if len(after.ManagedFields) < 2 {
				t.Errorf("%d field managers, want the one that made the object and the one that wrote it", len(after.ManagedFields))
			}
		})
	}
}

func gunzip(t *testing.T, small []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestObjectsThatCannotBeReadOrWritten(t *testing.T) {
	c := newCluster(t)
	store := c.open(t, c.sidecar(t, "app"), "app", 0)
	bomb := new(bytes.Buffer)
	w := gzip.NewWriter(bomb)
	if _, err := w.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		name  ledger.Name
		alter func(*corev1.ConfigMap)
		want  error
		says  string
	}{
		"a ledger that is not JSON": {
			name:  ledger.NameLedger,
			alter: func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"ledger.json": "jobs: []"} },
			want:  ledger.ErrCorrupt,
		},
		"a catalog that is not compressed": {
			name: ledger.NameCatalog,
			alter: func(cm *corev1.ConfigMap) {
				cm.BinaryData = map[string][]byte{"catalog.json.gz": []byte(`{"format":1}`)}
			},
			want: ledger.ErrCorrupt,
			says: "app-leasecron-catalog",
		},
		"a history that unpacks to more than can be": {
			name:  ledger.NameHistory,
			alter: func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"history.json.gz": bomb.Bytes()} },
			want:  ledger.ErrCorrupt,
			says:  "when it is unpacked",
		},
		"an object that others have filled": {
			name: ledger.NameLeases,
			alter: func(cm *corev1.ConfigMap) {
				cm.Data = map[string]string{"other": strings.Repeat("x", ledger.MaxObjectBytes)}
			},
			want: ledger.ErrTooLarge,
			says: "leases",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cm := configMap(ledger.ConfigMapName("app", tt.name), nil)
			tt.alter(cm)
			c.do(t, http.MethodPost, "", cm, nil)
			_, _, err := ledger.NewDocument[tally](store, tt.name).Swap(t.Context(), increment)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Swap() = %v, want %v and %q", err, tt.want, tt.says)
			}
			after := c.get(t, "app", tt.name)
			if diff := cmp.Diff(cm.Data, after.Data); diff != "" {
				t.Errorf("data (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(cm.BinaryData, after.BinaryData); diff != "" {
				t.Errorf("binary data (-before +after):\n%s", diff)
			}
		})
	}
}

// R176: what counts is what the object takes, and a write that would fill it is refused before it
// is sent.
func TestHistoryIsBoundedByItsObject(t *testing.T) {
	c := newCluster(t)
	c.create(t, "app", ledger.NameHistory)
	proxy := faultproxy.Start(t, c.sidecar(t, "app"))
	doc := ledger.NewDocument[map[string]string](c.open(t, proxy.Config(), "app", 0), ledger.NameHistory)
	write := func(text string) error {
		_, _, err := doc.Swap(t.Context(), func(m *map[string]string) error {
			*m = map[string]string{"text": text}
			return nil
		})
		return err
	}
	if err := write(strings.Repeat("run ", 1<<20)); err != nil {
		t.Errorf("4 MiB that compress well: %v", err)
	}
	stored := c.get(t, "app", ledger.NameHistory)
	sent := proxy.Count(faultproxy.Verb("update"))
	if err := write(incompressible(2 * ledger.MaxObjectBytes)); !errors.Is(err, ledger.ErrTooLarge) {
		t.Errorf("1.8 MB that do not: %v, want %v", err, ledger.ErrTooLarge)
	}
	if again := proxy.Count(faultproxy.Verb("update")); again != sent {
		t.Errorf("%d writes were sent, want none", again-sent)
	}
	if after := c.get(t, "app", ledger.NameHistory); after.ResourceVersion != stored.ResourceVersion {
		t.Error("the object was changed")
	}
	if err := write("small again"); err != nil {
		t.Errorf("a small document afterwards: %v", err)
	}
}

// incompressible returns text that no compression makes much smaller, always the same.
func incompressible(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	out := make([]byte, n)
	state := uint64(1)
	for i := range out { // 6 bits of 8 are random, so about 3/4 stay
		state = state*6364136223846793005 + 1442695040888963407
		out[i] = letters[state>>58]
	}
	return string(out)
}

// Equal documents make equal objects, so that a comparison of two shows what differs.
func TestCompressionIsDeterministic(t *testing.T) {
	c := newCluster(t)
	cfg := c.sidecar(t, "a", "b")
	text := `{"format":1,"writeId":"w","text":"` + strings.Repeat("abc", 1000) + `"}`
	var packed []string
	for _, app := range []string{"a", "b"} {
		c.create(t, app, ledger.NameHistory)
		store := c.open(t, cfg, app, 0)
		_, from, err := store.Load(t.Context(), ledger.NameHistory)
		if err == nil {
			_, err = store.Replace(t.Context(), ledger.NameHistory, from, []byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		cm := c.get(t, app, ledger.NameHistory)
		packed = append(packed, base64.StdEncoding.EncodeToString(cm.BinaryData["history.json.gz"]))
	}
	if packed[0] != packed[1] || len(packed[0]) > 200 {
		t.Errorf("3 KB of text became %d and %d bytes, equal: %v", len(packed[0]), len(packed[1]), packed[0] == packed[1])
	}
}

// R106, R107: each way in which a call can go wrong on its way, once, in the middle of swaps. Every
// change is stored once, the error is the right one, and the next swap works.
func TestSwapsThroughABadNetwork(t *testing.T) {
	c := newCluster(t)
	tests := map[string]struct {
		fault  faultproxy.Fault
		stored bool  // by the faulty call alone
		want   error // of a single Replace
	}{
		"the answer to a write is lost":     {fault: faultproxy.DropAnswer(), stored: true, want: ledger.ErrUnknown},
		"a write is lost":                   {fault: faultproxy.Reset(), want: ledger.ErrUnknown},
		"a write hangs":                     {fault: faultproxy.Hang(), want: ledger.ErrUnknown},
		"the answer to a write hangs":       {fault: faultproxy.HangAnswer(), stored: true, want: ledger.ErrUnknown},
		"a gateway answers in its place":    {fault: faultproxy.Status(http.StatusBadGateway, 0), want: ledger.ErrUnknown},
		"the API server is unavailable":     {fault: faultproxy.Status(http.StatusServiceUnavailable, time.Second), want: ledger.ErrUnknown},
		"the API server has enough to do":   {fault: faultproxy.Status(http.StatusTooManyRequests, time.Second)},
		"a right was taken away":            {fault: faultproxy.Status(http.StatusForbidden, 0)},
		"the answer is slower than allowed": {fault: faultproxy.DelayAnswer(3 * time.Second), stored: true, want: ledger.ErrUnknown},
	}
	var apps []string
	appOf := make(map[string]string)
	for name := range tests {
		appOf[name] = fmt.Sprintf("app-%d", len(apps))
		apps = append(apps, appOf[name])
	}
	cfg := c.sidecar(t, apps...)
	proxy := faultproxy.Start(t, cfg)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			app := appOf[name]
			object := faultproxy.Name(ledger.ConfigMapName(app, ledger.NameLedger))
			c.create(t, app, ledger.NameLedger)
			store := c.open(t, proxy.Config(), app, 500*time.Millisecond)
			direct := newTally(c.open(t, cfg, app, 0))

			// A single write says what it knows.
			_, from, err := store.Load(t.Context(), ledger.NameLedger)
			if err != nil {
				t.Fatal(err)
			}
			remove := proxy.Inject(tt.fault.Times(1), faultproxy.Verb("update"), object)
			_, err = store.Replace(t.Context(), ledger.NameLedger, from, []byte(`{"format":1,"writeId":"w","count":1}`))
			switch {
			case err == nil:
				t.Error("Replace() succeeded")
			case tt.want != nil && !errors.Is(err, tt.want):
				t.Errorf("Replace() = %v, want %v", err, tt.want)
			case tt.want == nil && (errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrConflict)):
				t.Errorf("Replace() = %v, want a refusal that leaves nothing open", err)
			}
			remove()
			value, _, err := direct.Swap(t.Context(), func(v *tally) error { *v = tally{Count: v.Count}; return nil })
			if err != nil || (value.Count == 1) != tt.stored {
				t.Errorf("stored afterwards: %+v, %v; want it stored: %v", value, err, tt.stored)
			}

			// A swap finds out, and the change is stored once.
			before := value.Count
			doc := newTally(store)
			for i := range 3 {
				if i == 1 {
					remove = proxy.Inject(tt.fault.Times(1), faultproxy.Verb("update"), object)
				}
				if _, _, err := doc.Swap(t.Context(), increment); err != nil {
					t.Fatalf("Swap() number %d = %v", i, err)
				}
			}
			remove()
			if value, _, err = direct.Read(t.Context()); err != nil || value.Count != before+3 {
				t.Errorf("count = %+v, %v; want %d", value, err, before+3)
			}
		})
	}
}

// R107: the API server is away for a while, in the middle of writes; nothing is stuck afterwards.
func TestSwapsThroughAPartition(t *testing.T) {
	c := newCluster(t)
	cfg := c.sidecar(t, "app")
	c.create(t, "app", ledger.NameLedger)
	proxy := faultproxy.Start(t, cfg)
	for name, breakIt := range map[string]func() *faultproxy.Effect{"packets vanish": proxy.Blackhole, "connections are refused": proxy.Cut} {
		t.Run(name, func(t *testing.T) {
			doc := newTally(c.open(t, proxy.Config(), "app", 300*time.Millisecond))
			before, _, err := doc.Swap(t.Context(), increment)
			if err != nil {
				t.Fatal(err)
			}
			breakIt()
			var told atomic.Int64 // swaps that were said to be stored
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					retry := time.NewTicker(20 * time.Millisecond)
					defer retry.Stop()
					for deadline := time.Now().Add(20 * time.Second); ; <-retry.C {
						_, _, err := doc.Swap(t.Context(), increment)
						switch {
						case err == nil:
							told.Add(1)
							return
						case errors.Is(err, ledger.ErrUnknown):
							t.Errorf("Swap() = %v; it ended before it knew", err)
							return
						case time.Now().After(deadline):
							t.Errorf("Swap() = %v, long after the API server is back", err)
							return
						}
					}
				})
			}
			time.AfterFunc(time.Second, proxy.Heal)
			group.Wait()
			after, _, err := doc.Read(t.Context())
			if err != nil || after.Count != before.Count+int(told.Load()) {
				t.Errorf("count = %+v, %v; want %d more than %d", after, err, told.Load(), before.Count)
			}
		})
	}
}

// The swaps of a leader that nobody disturbs cost the API server one request each.
func TestLoneWriterSendsOneRequestPerSwap(t *testing.T) {
	c := newCluster(t)
	c.create(t, "app", ledger.NameLedger)
	proxy := faultproxy.Start(t, c.sidecar(t, "app"))
	doc := newTally(c.open(t, proxy.Config(), "app", 0))
	for range 10 {
		if _, _, err := doc.Swap(t.Context(), increment); err != nil {
			t.Fatal(err)
		}
	}
	if gets, puts := proxy.Count(faultproxy.Verb("get")), proxy.Count(faultproxy.Verb("update")); gets != 1 || puts != 10 {
		t.Errorf("10 swaps took %d reads and %d writes, want 1 and 10", gets, puts)
	}
}

func TestNewKubernetesRefuses(t *testing.T) {
	client, err := kube.New(&rest.Config{Host: "http://127.0.0.1:1"}, "ledger")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]ledger.KubernetesOptions{
		"no client":                         {Namespace: "ns", App: "app"},
		"no namespace":                      {Client: client, App: "app"},
		"an app that cannot name objects":   {Client: client, Namespace: "ns", App: "My App"},
		"an app whose names are too long":   {Client: client, Namespace: "ns", App: strings.Repeat("a", 250)},
		"an app that ends with a full stop": {Client: client, Namespace: "ns", App: "app."},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := ledger.NewKubernetes(options); err == nil {
				t.Error("NewKubernetes() succeeded")
			}
		})
	}
}
