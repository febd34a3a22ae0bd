package kube_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/controlplane"
)

// An Event is created and brought up to date with these two rights and no other.
func TestEvents(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	c := newClient(t, cp.ServiceAccount(t, ns, "teller", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
	}))
	ctx := timeout(t, patience)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	event := &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: ns, Name: "e1"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: "shop-0"},
		Type:           "Warning", Reason: "RunFailed", Message: "once", Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "leasecron"}, ReportingController: "leasecron", ReportingInstance: "shop-0",
	}
	if err := c.CreateEvent(ctx, event); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateEvent(ctx, event); !apierrors.IsAlreadyExists(err) {
		t.Errorf("CreateEvent of the same name = %v, want that it exists", err)
	}
	if err := c.PatchEvent(ctx, ns, "e1", []byte(`{"count":7,"message":"again"}`)); err != nil {
		t.Errorf("PatchEvent = %v", err)
	}
	if err := c.PatchEvent(ctx, ns, "e2", []byte(`{"count":7}`)); !apierrors.IsNotFound(err) {
		t.Errorf("PatchEvent of none = %v, want that there is none", err)
	}
	var stored corev1.Event
	if err := json.Unmarshal(kubetest.Get(t, cp.AdminConfig(), "/api/v1/namespaces/"+ns+"/events/e1"), &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Count != 7 || stored.Message != "again" || stored.Reason != "RunFailed" {
		t.Errorf("stored: %+v", stored)
	}
	if _, err := c.GetConfigMap(ctx, ns, "x"); !apierrors.IsForbidden(err) {
		t.Errorf("another right was given: %v", err)
	}
}

// A Pod is labelled by patch alone, and another one of the same name is left alone.
func TestPatchPod(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	kubetest.Send(t, cp.AdminConfig(), http.MethodPost, "/api/v1/namespaces/"+ns+"/pods",
		`{"metadata":{"name":"shop-0"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"a","image":"a"}]}}`)
	c := newClient(t, cp.ServiceAccount(t, ns, "labeller", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"},
	}))
	ctx := timeout(t, patience)
	read := func() (pod corev1.Pod) {
		if err := json.Unmarshal(kubetest.Get(t, cp.AdminConfig(), "/api/v1/namespaces/"+ns+"/pods/shop-0"), &pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	if err := c.PatchPod(ctx, ns, "shop-0", []byte(`{"metadata":{"uid":"`+string(read().UID)+`","labels":{"leasecron.io/leader":"true"}}}`)); err != nil {
		t.Fatal(err)
	}
	if got := read().Labels["leasecron.io/leader"]; got != "true" {
		t.Errorf("the label is %q", got)
	}
	version := read().ResourceVersion
	if err := c.PatchPod(ctx, ns, "shop-0", []byte(`{"metadata":{"uid":"another","labels":{"leasecron.io/leader":null}}}`)); !apierrors.IsInvalid(err) {
		t.Errorf("PatchPod of another Pod = %v, want it refused", err)
	}
	if err := c.PatchPod(ctx, ns, "shop-0", []byte(`{"metadata":{"labels":{"leasecron.io/leader":"true"}}}`)); err != nil || read().ResourceVersion != version {
		t.Errorf("a patch that changes nothing: %v, resourceVersion %s after %s", err, read().ResourceVersion, version)
	}
	if err := c.PatchPod(ctx, ns, "shop-0", []byte(`{"metadata":{"labels":{"leasecron.io/leader":null}}}`)); err != nil {
		t.Error(err)
	}
	if _, ok := read().Labels["leasecron.io/leader"]; ok {
		t.Error("the label is still there")
	}
}

func TestReview(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	ns := cp.Namespace(t)
	c := newClient(t, cp.ServiceAccount(t, ns, "asker", nameOnly()))
	for verb, want := range map[string]bool{"watch": true, "update": false} {
		question := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: "configmaps", Name: "doc"},
		}}
		var answer authorizationv1.SelfSubjectAccessReview
		if err := c.Review(timeout(t, patience), "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", question, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed != want {
			t.Errorf("%s: allowed = %v, want %v", verb, answer.Status.Allowed, want)
		}
	}
	if err := newClient(t, &rest.Config{Host: "http://127.0.0.1:1"}).Review(timeout(t, patience), "/apis", 1, new(int)); err == nil || kube.Unknown(err) {
		t.Errorf("Review of nobody = %v, want an error", err)
	}
}
