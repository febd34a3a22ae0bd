package rights_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leasecron/leasecron/internal/rights"
	"github.com/leasecron/leasecron/rbac"
)

var all = rbac.Rights(rbac.Rules(rbac.Options{
	Lease: "shop-leasecron", Ledger: "shop-leasecron-ledger", Catalog: "shop-leasecron-catalog", History: "shop-leasecron-history",
	Jobs: "shop-jobs", Events: true, LeaderLabel: true,
}))

// fakeReviewer answers for an account that lacks some rights.
type fakeReviewer struct {
	mu         sync.Mutex
	lacks      map[string]bool // by String of the right
	incomplete bool            // the rules leave everything out
	err        error
	asked      []string
	meanwhile  func() // happens once, while it is asked
}

func (f *fakeReviewer) Review(_ context.Context, path string, question, answer any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if happens := f.meanwhile; happens != nil {
		f.meanwhile = nil
		happens()
	}
	kind := path[strings.LastIndexByte(path, '/')+1:]
	f.asked = append(f.asked, kind)
	if f.err != nil {
		return f.err
	}
	var reply any
	switch kind {
	case "selfsubjectrulesreviews":
		var rules []authorizationv1.ResourceRule
		for _, r := range all {
			if !f.lacks[r.String()] && !f.incomplete {
				rule := authorizationv1.ResourceRule{Verbs: []string{r.Verb}, APIGroups: []string{r.Group}, Resources: []string{r.Resource}}
				if r.Name != "" {
					rule.ResourceNames = []string{r.Name}
				}
				rules = append(rules, rule)
			}
		}
		reply = authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{ResourceRules: rules, Incomplete: f.incomplete}}
	case "selfsubjectaccessreviews":
		a := question.(authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
		r := rbac.Right{Verb: a.Verb, Group: a.Group, Resource: a.Resource, Name: a.Name}
		reply = authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: !f.lacks[r.String()]}}
	default:
		reply = map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "system:serviceaccount:shop:shop"}}}
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (f *fakeReviewer) set(change func(f *fakeReviewer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeReviewer) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

type world struct {
	*rights.Check
	reviewer *fakeReviewer
	log      *strings.Builder
}

// lines are what was logged, each with these keys only.
func (w *world) lines(t *testing.T, keys ...string) []string {
	t.Helper()
	synctest.Wait() // the end of a sleep alone orders nothing
	var out []string
	for line := range strings.Lines(w.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(fields["level"], " ", fields["msg"])
		for _, k := range keys {
			text += fmt.Sprint(" ", fields[k])
		}
		out = append(out, text)
	}
	return out
}

func bubble(t *testing.T, prepare func(*fakeReviewer), play func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{reviewer: &fakeReviewer{lacks: make(map[string]bool)}, log: &strings.Builder{}}
		prepare(w.reviewer)
		var err error
		w.Check, err = rights.New(rights.Options{
			Reviewer: w.reviewer, App: "shop", Namespace: "shop", Rights: all, Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		play(w)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run() = %v", err)
		}
	})
}

func TestAllGrantedCostsOneRequest(t *testing.T) {
	bubble(t, func(*fakeReviewer) {}, func(w *world) {
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := w.reviewer.requests(); n != 1 {
			t.Errorf("%d requests in a day, want one", n)
		}
		if detail, err := w.Probe(); err != nil || !strings.Contains(detail, fmt.Sprintf("%d rights granted", len(all))) {
			t.Errorf("Probe() = %q, %v", detail, err)
		}
		if w.Missing() != 0 || w.log.Len() != 0 {
			t.Errorf("%d missing\n%s", w.Missing(), w.log)
		}
	})
}

// Each right that is used is missed, by its name.
func TestEachMissingRightIsNamed(t *testing.T) {
	for _, r := range all {
		t.Run(r.String(), func(t *testing.T) {
			bubble(t, func(f *fakeReviewer) { f.lacks[r.String()] = true }, func(w *world) {
				resource := r.Resource
				if r.Group != "" {
					resource += "." + r.Group
				}
				want := []string{fmt.Sprintf("ERROR a right is missing %s %s %s shop kubectl auth can-i %s -n shop --as=system:serviceaccount:shop:shop "+
					"to grant it: sidecar pack --app shop -n shop | kubectl apply --server-side --force-conflicts -f -", r.Verb, resource, r.Name, r)}
				if diff := cmp.Diff(want, w.lines(t, "verb", "resource", "name", "namespace", "check", "fix")); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
				if _, err := w.Probe(); err == nil || !strings.Contains(err.Error(), "missing in namespace shop: "+r.String()) {
					t.Errorf("Probe() = %v", err)
				}
				if w.Missing() != 1 {
					t.Errorf("Missing() = %d", w.Missing())
				}
			})
		})
	}
}

func TestAMissingRightIsLookedForAgain(t *testing.T) {
	const right = "update leases.coordination.k8s.io/shop-leasecron"
	bubble(t, func(f *fakeReviewer) { f.lacks[right] = true }, func(w *world) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := w.reviewer.requests(); n < 3*6 || n > 3*20 {
			t.Errorf("%d requests in an hour, three for each look, want growing pauses of at most ten minutes", n)
		}
		if lines := w.lines(t); len(lines) != 1 {
			t.Errorf("%d lines, want one: %v", len(lines), lines)
		}
		w.reviewer.set(func(f *fakeReviewer) { delete(f.lacks, right) })
		time.Sleep(10 * time.Minute)
		want := []string{"ERROR a right is missing", "INFO a right that was missing is granted"}
		if diff := cmp.Diff(want, w.lines(t)); diff != "" || w.Missing() != 0 {
			t.Errorf("%d missing (-want +got):\n%s", w.Missing(), diff)
		}
	})
}

// What is refused while the rights are asked for does not put off the look that follows.
func TestARefusalDelaysNoLook(t *testing.T) {
	const right = "update leases.coordination.k8s.io/shop-leasecron"
	bubble(t, func(f *fakeReviewer) { f.err = errors.New("away") }, func(w *world) {
		w.reviewer.set(func(f *fakeReviewer) {
			f.err, f.lacks[right] = nil, true
			f.meanwhile = func() { w.send(t, "PUT", theLease+"/shop-leasecron", 403) }
		})
		time.Sleep(time.Second) // the first retry
		synctest.Wait()
		if w.Missing() != 1 {
			t.Fatalf("%d missing, want the one", w.Missing())
		}
		w.reviewer.set(func(f *fakeReviewer) { delete(f.lacks, right) })
		time.Sleep(10 * time.Second) // the first pause
		synctest.Wait()
		if w.Missing() != 0 {
			t.Errorf("%d missing ten seconds later, want it seen that the right is granted", w.Missing())
		}
	})
}

// An authorizer that does not list its rules is asked right by right.
func TestRulesThatLeaveThingsOut(t *testing.T) {
	bubble(t, func(f *fakeReviewer) { f.incomplete, f.lacks["patch pods"] = true, true }, func(w *world) {
		if w.Missing() != 1 || w.reviewer.requests() != len(all)+2 {
			t.Errorf("%d missing after %d requests, want 1 after %d", w.Missing(), w.reviewer.requests(), len(all)+2)
		}
	})
}

func TestAnAPIServerThatIsAwayIsAskedLater(t *testing.T) {
	bubble(t, func(f *fakeReviewer) { f.err = errors.New("connection refused") }, func(w *world) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := w.reviewer.requests(); n < 50 || n > 150 {
			t.Errorf("%d requests in an hour, want about one a minute", n)
		}
		if w.log.Len() != 0 || w.Missing() != 0 {
			t.Errorf("an API server that is away is no missing right:\n%s", w.log)
		}
		if _, err := w.Probe(); err == nil || !strings.Contains(err.Error(), "not known yet") {
			t.Errorf("Probe() = %v", err)
		}
		w.reviewer.set(func(f *fakeReviewer) { f.err = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		if detail, err := w.Probe(); err != nil {
			t.Errorf("Probe() = %q, %v", detail, err)
		}
	})
}

// send lets an answer of the API server pass by.
func (w *world) send(t *testing.T, method, url string, status int) {
	t.Helper()
	pass := w.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}))
	req, err := http.NewRequestWithContext(t.Context(), method, "https://10.0.0.1"+url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := pass.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

const theLease = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"

// Where reviews are not allowed, what is refused tells.
func TestWithoutReviewsRefusalsTell(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectrulesreviews"}, "", errors.New("no"))
	bubble(t, func(f *fakeReviewer) { f.err = forbidden }, func(w *world) {
		if _, err := w.Probe(); err == nil || !strings.Contains(err.Error(), "refused nothing so far") {
			t.Errorf("Probe() = %v", err)
		}
		w.send(t, "GET", theLease+"?fieldSelector=metadata.name%3Dshop-leasecron&watch=true", 403)
		w.send(t, "PUT", theLease+"/shop-leasecron", 403)
		w.send(t, "PUT", theLease+"/another", 403)
		w.send(t, "POST", "/api/v1/namespaces/shop/events", 403)
		w.send(t, "PATCH", "/api/v1/namespaces/shop/events/e1", 403)
		w.send(t, "GET", "/api/v1/namespaces/shop/configmaps/shop-leasecron-ledger", 200)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []string{
			"ERROR a right is missing watch leases.coordination.k8s.io shop-leasecron", "ERROR a right is missing update leases.coordination.k8s.io shop-leasecron",
			"ERROR a right is missing create events ", "ERROR a right is missing patch events ",
		}
		if diff := cmp.Diff(want, w.lines(t, "verb", "resource", "name")); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		w.send(t, "PUT", theLease+"/shop-leasecron", 200)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if w.Missing() != 3 {
			t.Errorf("%d missing after one was granted, want 3", w.Missing())
		}
	})
}

// A right that is taken away later is noticed when it is missed, and a refusal for another reason is
// not taken for one.
func TestARefusalIsLookedInto(t *testing.T) {
	bubble(t, func(*fakeReviewer) {}, func(w *world) {
		time.Sleep(time.Hour)
		synctest.Wait()
		for range 100 {
			w.send(t, "PUT", theLease+"/shop-leasecron", 403)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if w.Missing() != 0 || w.reviewer.requests() > 4 {
			t.Errorf("%d missing after %d requests, want none and few", w.Missing(), w.reviewer.requests())
		}
		w.reviewer.set(func(f *fakeReviewer) { f.lacks["update leases.coordination.k8s.io/shop-leasecron"] = true })
		w.send(t, "PUT", theLease+"/shop-leasecron", 403)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if w.Missing() != 1 {
			t.Errorf("%d missing, want 1", w.Missing())
		}
	})
}

func TestManyMissingRightsStayReadable(t *testing.T) {
	bubble(t, func(f *fakeReviewer) {
		for _, r := range all {
			f.lacks[r.String()] = true
		}
	}, func(w *world) {
		if _, err := w.Probe(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("and %d more", len(all)-10)) {
			t.Errorf("Probe() = %v", err)
		}
		if got := len(w.lines(t)); got != len(all) {
			t.Errorf("%d lines, want one for each of %d", got, len(all))
		}
	})
}
