package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Reader reads objects of any kind as trees: for commands that people run, not for the sidecar.
type Reader struct{ client rest.Interface }

// NewReader returns a reader. It sends nothing.
func NewReader(cfg *rest.Config) (*Reader, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 30 * time.Second
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the API server: %w", err)
	}
	return &Reader{client}, nil
}

// Get reads an object; nil if there is none, or no such kind. An empty namespace is for what lives outside of
// namespaces. Numbers are json.Number.
func (r *Reader) Get(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	root := "/apis/"
	if !strings.Contains(apiVersion, "/") {
		root = "/api/"
	}
	path := root + apiVersion
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	text, err := r.client.Get().AbsPath(path+"/"+plural(kind)+"/"+name).
		SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(1).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	return out, nil
}

// plural is the resource of a kind, as far as this program meets any.
func plural(kind string) string {
	kind = strings.ToLower(kind)
	switch rest, y := strings.CutSuffix(kind, "y"); {
	case kind == "endpoints":
		return kind
	case y && !strings.HasSuffix(rest, "a") && !strings.HasSuffix(rest, "e") && !strings.HasSuffix(rest, "o"):
		return rest + "ies"
	case strings.HasSuffix(kind, "s") || strings.HasSuffix(kind, "x") || strings.HasSuffix(kind, "ch"):
		return kind + "es"
	}
	return kind + "s"
}
