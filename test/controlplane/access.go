package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// accessTimeout bounds each helper; they take milliseconds.
const accessTimeout = 30 * time.Second

// Namespace creates a namespace with a unique name and a ServiceAccount "default". It is
// not deleted: nothing would empty it, and the whole control plane is thrown away.
func (cp *ControlPlane) Namespace(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), accessTimeout)
	defer cancel()
	ns := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}
	if err := cp.post(ctx, "/api/v1/namespaces", ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	if err := cp.createServiceAccount(ctx, ns.Name, "default"); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// ServiceAccount creates a ServiceAccount with a Role of just these rules and returns access
// with a token of it, good for a day. It returns when the rules are in force.
func (cp *ControlPlane) ServiceAccount(t testing.TB, namespace, name string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), accessTimeout)
	defer cancel()
	if err := cp.createServiceAccount(ctx, namespace, name); err != nil {
		t.Fatal(err)
	}
	cp.Grant(t, namespace, name, rules...)
	return cp.TokenFor(t, namespace, name)
}

// Grant gives a ServiceAccount a Role, named like it, with these rules, and returns when
// they are in force. Without rules it does nothing.
func (cp *ControlPlane) Grant(t testing.TB, namespace, serviceAccount string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), accessTimeout)
	defer cancel()
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	meta := metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}
	if err := cp.post(ctx, path+"/roles", &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: meta,
		Rules:      rules,
	}); err != nil {
		t.Fatalf("create a Role: %v", err)
	}
	if err := cp.post(ctx, path+"/rolebindings", &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: serviceAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: serviceAccount}},
	}); err != nil {
		t.Fatalf("create a RoleBinding: %v", err)
	}
	// The authorizer reads Roles from a cache of its own, a moment behind.
	if err := cp.waitAllowed(ctx, namespace, serviceAccount, rules[0]); err != nil {
		t.Fatalf("wait for a Role to be in force: %v", err)
	}
}

// TokenFor is access as an existing ServiceAccount, with a token that is good for a day.
func (cp *ControlPlane) TokenFor(t testing.TB, namespace, serviceAccount string) *rest.Config {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), accessTimeout)
	defer cancel()
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * time.Hour / time.Second))},
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s/token", namespace, serviceAccount)
	if err := cp.post(ctx, path, request); err != nil {
		t.Fatalf("request a token: %v", err)
	}
	return &rest.Config{
		Host:            cp.admin.Host,
		BearerToken:     request.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.ca.CertPEM()},
		QPS:             -1,
	}
}

// User is access by a client certificate, as a user that no Role knows yet.
func (cp *ControlPlane) User(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	cfg, err := cp.clientConfig(cp.admin.Host, name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	return cfg
}

// Create creates the objects of a manifest (YAML documents) in a namespace, as the
// administrator. It knows kinds whose resource is the kind and an s.
func (cp *ControlPlane) Create(t testing.TB, namespace string, manifest []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), accessTimeout)
	defer cancel()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("read a manifest: %v", err)
		}
		object := map[string]any{}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("read a manifest: %v\n%s", err, document)
		}
		if len(object) == 0 {
			continue // nothing but comments
		}
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		root := "/apis/"
		if !strings.Contains(version, "/") {
			root = "/api/"
		}
		path := root + version + "/namespaces/" + namespace + "/" + strings.ToLower(kind) + "s"
		if err := cp.post(ctx, path, &object); err != nil {
			t.Fatalf("create a %s: %v", kind, err)
		}
	}
}

// WriteKubeconfig writes access to a file that ends with the test, for the KUBECONFIG of
// another process; namespace is the context's default and may be empty.
func WriteKubeconfig(t testing.TB, cfg *rest.Config, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := saveKubeconfig(path, cfg, namespace); err != nil {
		t.Fatal(err)
	}
	return path
}

func saveKubeconfig(path string, cfg *rest.Config, namespace string) error {
	const name = "test"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   cfg.Host,
		CertificateAuthorityData: cfg.CAData,
	}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
	}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	out.CurrentContext = name
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func (cp *ControlPlane) createServiceAccount(ctx context.Context, namespace, name string) error {
	err := cp.post(ctx, "/api/v1/namespaces/"+namespace+"/serviceaccounts", &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	})
	if err != nil {
		return fmt.Errorf("create ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}

func (cp *ControlPlane) waitAllowed(ctx context.Context, namespace, serviceAccount string, rule rbacv1.PolicyRule) error {
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: namespace,
		Verb:      rule.Verbs[0],
		Group:     rule.APIGroups[0],
		Resource:  rule.Resources[0],
	}
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		review := &authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + namespace + ":" + serviceAccount,
				Groups:             []string{"system:serviceaccounts", "system:authenticated"},
				ResourceAttributes: attributes,
			},
		}
		if err := cp.post(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review); err != nil {
			return err
		}
		if review.Status.Allowed {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), fmt.Errorf("denied: %s", review.Status.Reason))
		case <-tick.C:
		}
	}
}

// post creates an object as the administrator and reads the answer into it.
func (cp *ControlPlane) post(ctx context.Context, path string, object any) error {
	cfg := rest.CopyConfig(cp.admin)
	cfg.NegotiatedSerializer = statusCodec
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	answer, err := client.Post().AbsPath(path).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).
		Body(body).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, object)
}

// statusCodec decodes what the API server says when it refuses, and nothing else: objects
// travel as plain JSON here.
var statusCodec = func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}()
