package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// These writes carry no resourceVersion: they are one program's own remarks, in which no other has
// a say. Nothing that safety rests on is written this way.

// mediaJSON is what is sent without being a kind of the scheme, which would link its methods.
const mediaJSON = "application/json"

// CreateEvent stores a new Event. 409 says that there is one of that name.
func (c *Client) CreateEvent(ctx context.Context, event *corev1.Event) error {
	body, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	return c.core.Post().Namespace(event.Namespace).Resource("events").MaxRetries(0).
		SetHeader("Content-Type", mediaJSON).Body(body).Do(ctx).Error()
}

// PatchEvent applies a JSON merge patch to an Event.
func (c *Client) PatchEvent(ctx context.Context, namespace, name string, patch []byte) error {
	return merge(ctx, c.core, "events", namespace, name, patch)
}

// PatchPod applies a JSON merge patch to a Pod. A patch that names another uid than the Pod's is
// refused as invalid.
func (c *Client) PatchPod(ctx context.Context, namespace, name string, patch []byte) error {
	return merge(ctx, c.core, "pods", namespace, name, patch)
}

func merge(ctx context.Context, client rest.Interface, resource, namespace, name string, patch []byte) error {
	return client.Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).
		MaxRetries(0).Body(patch).Do(ctx).Error()
}

// Review asks the API server about this client itself: path is that of a review, such as
// /apis/authorization.k8s.io/v1/selfsubjectaccessreviews, which only answers and stores nothing.
func (c *Client) Review(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("write the review: %w", err)
	}
	raw, err := c.core.Post().AbsPath(path).MaxRetries(0).
		SetHeader("Content-Type", mediaJSON).SetHeader("Accept", mediaJSON).Body(body).Do(ctx).Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("read the review: %w", err)
	}
	return nil
}
