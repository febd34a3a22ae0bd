package faultproxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// upstream counts what reaches it. Its /stream sends a line and waits.
type upstream struct {
	*httptest.Server
	hits atomic.Int64
}

func startUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.hits.Add(1)
		fmt.Fprintf(w, "%s %s\n", r.Method, r.URL.Path)
		if r.URL.Path == "/stream" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(u.Close)
	return u
}

// rig is a client that has reached an upstream by way of a proxy.
type rig struct {
	t      *testing.T
	u      *upstream
	p      *faultproxy.Proxy
	client *http.Client
}

// protocols run a test with HTTP/1.1 and with HTTP/2: what breaks a connection differs.
func protocols(t *testing.T, test func(rig)) {
	t.Helper()
	for name, nextProtos := range map[string][]string{"HTTP/1.1": {"http/1.1"}, "HTTP/2.0": nil} {
		t.Run(name, func(t *testing.T) {
			u := startUpstream(t)
			p := faultproxy.Start(t, &rest.Config{Host: u.URL})
			cfg := p.Config()
			cfg.NextProtos = nextProtos
			client, err := rest.HTTPClientFor(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.CloseIdleConnections)
			res, err := post(t.Context(), client, p.URL()+"/warm-up")
			if err != nil {
				t.Fatal(err)
			}
			if res.proto != name {
				t.Fatalf("protocol = %s, want %s", res.proto, name)
			}
			u.hits.Store(0)
			p.ResetRequests()
			test(rig{t, u, p, client})
		})
	}
}

func TestFaults(t *testing.T) {
	// A POST, which no transport repeats by itself.
	const patience = 300 * time.Millisecond
	tests := map[string]struct {
		fault       faultproxy.Fault
		wantErr     error // nil: an answer
		wantStatus  int
		wantForward int64
		wantAtLeast time.Duration
	}{
		"a delayed request is forwarded late":        {faultproxy.Delay(50 * time.Millisecond), nil, 200, 1, 50 * time.Millisecond},
		"a delayed answer was forwarded at once":     {faultproxy.DelayAnswer(50 * time.Millisecond), nil, 200, 1, 50 * time.Millisecond},
		"a hanging request is never forwarded":       {faultproxy.Hang(), context.DeadlineExceeded, 0, 0, patience},
		"a hanging answer was forwarded":             {faultproxy.HangAnswer(), context.DeadlineExceeded, 0, 1, patience},
		"a reset request is never forwarded":         {faultproxy.Reset(), errBroken, 0, 0, 0},
		"a dropped answer was forwarded":             {faultproxy.DropAnswer(), errBroken, 0, 1, 0},
		"a status answers instead of the API server": {faultproxy.Status(503, 0), nil, 503, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			protocols(t, func(r rig) {
				t, u, p, client := r.t, r.u, r.p, r.client

				p.Inject(tt.fault, faultproxy.Method(http.MethodPost))
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				res, err := post(ctx, client, p.URL()+"/x")
				switch {
				case errors.Is(tt.wantErr, errBroken):
					if err == nil || errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %+v, %v, want a broken connection", res, err)
					}
				case !errors.Is(err, tt.wantErr):
					t.Errorf("error = %v, want %v", err, tt.wantErr)
				case res.status != tt.wantStatus:
					t.Errorf("status = %d, want %d", res.status, tt.wantStatus)
				}
				if took := time.Since(start); took < tt.wantAtLeast {
					t.Errorf("took %s, want at least %s", took, tt.wantAtLeast)
				}
				if got := u.hits.Load(); got != tt.wantForward {
					t.Errorf("forwarded %d requests, want %d", got, tt.wantForward)
				}

				p.Heal()
				if res, err := post(t.Context(), client, p.URL()+"/x"); err != nil || res.status != 200 {
					t.Errorf("after Heal: got %+v, %v, want 200", res, err)
				}
				if got := p.Count(); got != 2 {
					t.Errorf("counted %d requests, want 2", got)
				}
			})
		})
	}
}

// errBroken stands for whatever a protocol calls a connection that broke.
var errBroken = errors.New("broken")

func TestFaultsApplyToWhatMatchesAsOftenAsTheySay(t *testing.T) {
	u := startUpstream(t)
	p := faultproxy.Start(t, &rest.Config{Host: u.URL})
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	remove := p.Inject(faultproxy.Status(429, 3*time.Second).Times(1), faultproxy.Path("^/a$"))
	var got []int
	for _, path := range []string{"/b", "/a", "/a"} {
		res, err := post(t.Context(), client, p.URL()+path)
		if err != nil {
			t.Fatal(err)
		}
		if res.status == 429 && res.header.Get("Retry-After") != "3" {
			t.Errorf("Retry-After = %q, want 3", res.header.Get("Retry-After"))
		}
		got = append(got, res.status)
	}
	if diff := cmp.Diff([]int{200, 429, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	remove()
	remove() // harmless
}

func TestShiftDate(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	p := faultproxy.Start(t, &rest.Config{Host: u.URL})
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	remove := p.Inject(faultproxy.ShiftDate(-10 * time.Minute))
	for _, want := range []time.Duration{-10 * time.Minute, 0} {
		resp, err := client.Get(p.URL() + "/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		at, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil || resp.StatusCode != http.StatusOK || (time.Until(at)-want).Abs() > time.Minute {
			t.Errorf("status %d, Date %s (%v), want it %s from now", resp.StatusCode, resp.Header.Get("Date"), err, want)
		}
		remove()
	}
}

func TestCutEndsStreamsAndRefusesUntilHealed(t *testing.T) {
	protocols(t, func(r rig) {
		t, p, client := r.t, r.p, r.client

		stream := openStream(t, client, p)
		p.Cut()
		if line, err := stream.ReadString('\n'); err == nil {
			t.Errorf("the stream went on with %q", line)
		}
		if _, err := post(t.Context(), client, p.URL()+"/x"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("during Cut: got %v, want connection refused", err)
		}
		p.Heal()
		if _, err := post(t.Context(), client, p.URL()+"/x"); err != nil {
			t.Errorf("after Heal: %v", err)
		}
	})
}

func TestBlackholeStallsOldAndNewConnectionsAndDeliversAfterwards(t *testing.T) {
	protocols(t, func(r rig) {
		t, u, p, client := r.t, r.u, r.p, r.client

		p.Blackhole()
		done := make(chan error, 1)
		go func() {
			_, err := post(t.Context(), client, p.URL()+"/x")
			done <- err
		}()
		select {
		case err := <-done:
			t.Fatalf("a request ended during the partition: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		if got := u.hits.Load(); got != 0 {
			t.Errorf("%d requests came through the partition", got)
		}
		p.Heal()
		if err := <-done; err != nil {
			t.Errorf("after Heal: %v", err)
		}
	})
}

// TestEffects: each fault knows what it has befallen, and its end is that of no other.
func TestEffects(t *testing.T) {
	protocols(t, func(r rig) {
		t, p, client := r.t, r.p, r.client
		reaches := func() bool {
			_, err := post(t.Context(), client, p.URL()+"/x")
			return err == nil
		}
		hits := func(what string, e *faultproxy.Effect, want int) {
			t.Helper()
			if got := e.Hits(); got != want {
				t.Errorf("%s has %d hits, want %d", what, got, want)
			}
		}

		unmet := p.Befall(faultproxy.Reset(), faultproxy.Path("^/nobody$"))
		met := p.Befall(faultproxy.Status(503, 0).Times(2), faultproxy.Path("^/x$"))
		for range 3 {
			reaches()
		}
		hits("a fault that no request meets", unmet, 0)
		hits("one that is over after two", met, 2)

		first := p.Cut()
		second := p.Cut()
		hits("the Cut that broke the connection", first, 1)
		hits("one that found none", second, 0)
		first.End()
		if reaches() {
			t.Error("the end of one Cut ended the other")
		}
		second.End()
		if !reaches() {
			t.Error("refused after the last Cut has ended")
		}

		hole, other := p.Blackhole(), p.Blackhole()
		hits("a partition without traffic", hole, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := post(ctx, client, p.URL()+"/x"); err == nil {
			t.Error("a request came through a partition")
		}
		if hole.Hits() == 0 {
			t.Error("a partition that held a request up has no hits")
		}
		hole.End()
		ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := post(ctx, client, p.URL()+"/x"); err == nil {
			t.Error("the end of one partition ended the other")
		}
		late := p.Befall(faultproxy.Status(503, 0), faultproxy.Path("^/late$"))
		other.End()
		other.End() // harmless
		if !reaches() {
			t.Error("nothing comes through after the last partition has ended")
		}
		if res, err := post(t.Context(), client, p.URL()+"/late"); err != nil || res.status != 503 {
			t.Errorf("the end of a partition removed another fault: %+v, %v", res, err)
		}
		hits("the other fault", late, 1)
	})
}

func TestRequestsAreDescribedAsKubernetesSeesThem(t *testing.T) {
	u := startUpstream(t)
	p := faultproxy.Start(t, &rest.Config{Host: u.URL})
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	const leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
	tests := []struct {
		method, path string
		want         faultproxy.Request
	}{
		{"GET", "/readyz", faultproxy.Request{Verb: "get"}},
		{"GET", "/api/v1/namespaces/ns", faultproxy.Request{Verb: "get", Resource: "namespaces", Name: "ns"}},
		{"GET", "/api/v1/namespaces/ns/configmaps", faultproxy.Request{Verb: "list", Namespace: "ns", Resource: "configmaps"}},
		{"GET", "/api/v1/namespaces/ns/configmaps?watch=true", faultproxy.Request{Verb: "watch", Namespace: "ns", Resource: "configmaps"}},
		{"GET", "/api/v1/namespaces/ns/configmaps?fieldSelector=metadata.name%3Da", faultproxy.Request{Verb: "list", Namespace: "ns", Resource: "configmaps", Selected: "a"}},
		{"POST", "/api/v1/namespaces/ns/serviceaccounts/a/token", faultproxy.Request{Verb: "create", Namespace: "ns", Resource: "serviceaccounts", Name: "a", Subresource: "token"}},
		{"PUT", leases + "/a", faultproxy.Request{Verb: "update", Group: "coordination.k8s.io", Namespace: "ns", Resource: "leases", Name: "a"}},
		{"PATCH", leases + "/a", faultproxy.Request{Verb: "patch", Group: "coordination.k8s.io", Namespace: "ns", Resource: "leases", Name: "a"}},
		{"DELETE", leases + "/a", faultproxy.Request{Verb: "delete", Group: "coordination.k8s.io", Namespace: "ns", Resource: "leases", Name: "a"}},
		{"DELETE", leases, faultproxy.Request{Verb: "deletecollection", Group: "coordination.k8s.io", Namespace: "ns", Resource: "leases"}},
	}
	for _, tt := range tests {
		p.ResetRequests()
		if _, err := send(t.Context(), client, tt.method, p.URL()+tt.path); err != nil {
			t.Fatal(err)
		}
		tt.want.Method, tt.want.Status = tt.method, http.StatusOK
		tt.want.Path, _, _ = strings.Cut(tt.path, "?")
		if diff := cmp.Diff([]faultproxy.Request{tt.want}, p.Requests(), cmpopts.IgnoreFields(faultproxy.Request{}, "At")); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.method, tt.path, diff)
		}
	}
}

func TestBeforeTheRealAPIServer(t *testing.T) {
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	cfg := cp.ServiceAccount(t, ns, "elector", rbacv1.PolicyRule{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "watch"},
	})
	p := faultproxy.Start(t, cfg)
	client := kubernetes.NewForConfigOrDie(p.Config()).CoordinationV1().Leases(ns)

	watch, err := client.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	lease, err := client.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-watch.ResultChan():
		if got := event.Object.(*coordinationv1.Lease).Name; got != "l" {
			t.Errorf("watch saw %q, want l", got)
		}
	case <-time.After(5 * time.Second):
		t.Error("the watch is silent: the proxy does not stream")
	}

	// The write whose answer is lost was done, and the rights are the ServiceAccount's.
	p.Inject(faultproxy.DropAnswer().Times(1), faultproxy.Verb("update"), faultproxy.Resource("leases"))
	lease.Spec.HolderIdentity = new("me")
	if _, err := client.Update(t.Context(), lease, metav1.UpdateOptions{}); err == nil {
		t.Error("the update whose answer was dropped returned no error")
	}
	got, err := client.Get(t.Context(), "l", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.HolderIdentity == nil || *got.Spec.HolderIdentity != "me" {
		t.Errorf("holder = %v, want me: the update was forwarded", got.Spec.HolderIdentity)
	}
	if _, err := client.Update(t.Context(), lease, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("second update of the same version: got %v, want conflict", err)
	}
	if err := client.Delete(t.Context(), "l", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete: got %v, want forbidden", err)
	}
	if got := p.Count(faultproxy.Verb("update"), faultproxy.Resource("leases"), faultproxy.Name("l")); got != 2 {
		t.Errorf("counted %d updates, want 2", got)
	}
}

func TestClientCertificateOfTheTargetIsUsed(t *testing.T) {
	cp := controlplane.Shared(t)
	p := faultproxy.Start(t, cp.AdminConfig())
	if _, err := kubernetes.NewForConfigOrDie(p.Config()).CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list Secrets as the administrator: %v", err)
	}
}

type response struct {
	status int
	proto  string
	header http.Header
}

func post(ctx context.Context, client *http.Client, url string) (response, error) {
	return send(ctx, client, http.MethodPost, url)
}

func send(ctx context.Context, client *http.Client, method, url string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
	if err != nil {
		return response{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return response{res.StatusCode, res.Proto, res.Header}, err
}

// openStream returns a stream that has sent its first line.
func openStream(t *testing.T, client *http.Client, p *faultproxy.Proxy) *bufio.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	stream := bufio.NewReader(res.Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return stream
}
