// Package kubetest makes, changes and deletes objects for tests, as a human with kubectl would. The
// product itself never creates or deletes what it works on.
package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const timeout = 30 * time.Second

// ConfigMap creates a ConfigMap.
func ConfigMap(tb testing.TB, cfg *rest.Config, namespace, name string, data map[string]string) {
	tb.Helper()
	Create(tb, cfg, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       data,
	})
}

// Lease creates a Lease that nobody holds.
func Lease(tb testing.TB, cfg *rest.Config, namespace, name string, labels map[string]string) {
	tb.Helper()
	Create(tb, cfg, &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
	})
}

// Create creates a ConfigMap or a Lease with TypeMeta set.
func Create(tb testing.TB, cfg *rest.Config, obj metav1.Object) {
	tb.Helper()
	body, err := json.Marshal(obj)
	if err != nil {
		tb.Fatalf("create: %v", err)
	}
	switch obj.(type) {
	case *corev1.ConfigMap:
		send(tb, cfg, http.MethodPost, configMaps(obj.GetNamespace()), "application/json", body)
	case *coordinationv1.Lease:
		send(tb, cfg, http.MethodPost, leases(obj.GetNamespace()), "application/json", body)
	default:
		tb.Fatalf("create: cannot create a %T", obj)
	}
}

// PatchConfigMap applies a JSON merge patch to a ConfigMap.
func PatchConfigMap(tb testing.TB, cfg *rest.Config, namespace, name, patch string) {
	tb.Helper()
	send(tb, cfg, http.MethodPatch, configMaps(namespace)+"/"+name, "application/merge-patch+json", []byte(patch))
}

// PatchLease applies a JSON merge patch to a Lease.
func PatchLease(tb testing.TB, cfg *rest.Config, namespace, name, patch string) {
	tb.Helper()
	send(tb, cfg, http.MethodPatch, leases(namespace)+"/"+name, "application/merge-patch+json", []byte(patch))
}

// DeleteConfigMap deletes a ConfigMap.
func DeleteConfigMap(tb testing.TB, cfg *rest.Config, namespace, name string) {
	tb.Helper()
	send(tb, cfg, http.MethodDelete, configMaps(namespace)+"/"+name, "", nil)
}

// DeleteLease deletes a Lease.
func DeleteLease(tb testing.TB, cfg *rest.Config, namespace, name string) {
	tb.Helper()
	send(tb, cfg, http.MethodDelete, leases(namespace)+"/"+name, "", nil)
}

// Get reads an object of any kind by its path.
func Get(tb testing.TB, cfg *rest.Config, path string) []byte {
	tb.Helper()
	return send(tb, cfg, http.MethodGet, path, "", nil)
}

// Send sends JSON to a path and returns the answer.
func Send(tb testing.TB, cfg *rest.Config, method, path, body string) []byte {
	tb.Helper()
	return send(tb, cfg, method, path, "application/json", []byte(body))
}

// Status sends JSON to a path and returns the status of the answer, whatever that is.
func Status(tb testing.TB, cfg *rest.Config, method, path, body string) int {
	tb.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		tb.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func configMaps(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

func leases(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
}

func send(tb testing.TB, cfg *rest.Config, method, path, contentType string, body []byte) []byte {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), timeout)
	defer cancel()
	answer, err := request(ctx, cfg, method, path, contentType, body)
	if err != nil {
		tb.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

func request(ctx context.Context, cfg *rest.Config, method, path, contentType string, body []byte) ([]byte, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return answer, nil
}
