package pack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/rbac"
	"github.com/leasecron/leasecron/test/cluster"
)

// allowed asks whether the cluster's sidecars have a right now.
func allowed(t *testing.T, c *cluster.Cluster, right rbac.Right) (bool, error) {
	t.Helper()
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.Namespace, Verb: right.Verb, Group: right.Group, Resource: right.Resource, Name: right.Name,
		}},
	}
	err := post(t, c.Access, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review)
	return review.Status.Allowed, err
}

// post creates an object and reads the answer into it.
func post(t *testing.T, cfg *rest.Config, path string, object any) error {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cfg.Host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s %s", path, res.Status, answer)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, object)
}
