package kube

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

const (
	configMaps = "configmaps"
	leases     = "leases"
)

// GetConfigMap reads a ConfigMap as it is stored now.
func (c *Client) GetConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	out := new(corev1.ConfigMap)
	if err := get(ctx, c.core, configMaps, namespace, name, out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateConfigMap replaces a ConfigMap and returns what is stored now. obj must carry the
// resourceVersion and uid that were read: without them the API server overwrites blindly.
// See Unknown for what an error leaves behind.
func (c *Client) UpdateConfigMap(ctx context.Context, obj *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	out := new(corev1.ConfigMap)
	if err := update(ctx, c.core, configMaps, obj, out); err != nil {
		return nil, err
	}
	return out, nil
}

// GetLease reads a Lease as it is stored now.
func (c *Client) GetLease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	out := new(coordinationv1.Lease)
	if err := get(ctx, c.coordination, leases, namespace, name, out); err != nil {
		return nil, err
	}
	return out, nil
}

// UpdateLease replaces a Lease and returns what is stored now. obj must carry the resourceVersion
// and uid that were read. See Unknown for what an error leaves behind.
func (c *Client) UpdateLease(ctx context.Context, obj *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := new(coordinationv1.Lease)
	if err := update(ctx, c.coordination, leases, obj, out); err != nil {
		return nil, err
	}
	return out, nil
}

func get(ctx context.Context, client rest.Interface, resource, namespace, name string, into runtime.Object) error {
	return client.Get().Namespace(namespace).Resource(resource).Name(name).MaxRetries(0).Do(ctx).Into(into)
}

type object interface {
	runtime.Object
	metav1.Object
}

func update(ctx context.Context, client rest.Interface, resource string, obj object, into runtime.Object) error {
	if obj.GetResourceVersion() == "" || obj.GetUID() == "" {
		return errBlind
	}
	return client.Put().Namespace(obj.GetNamespace()).Resource(resource).Name(obj.GetName()).
		MaxRetries(0).Body(obj).Do(ctx).Into(into)
}
