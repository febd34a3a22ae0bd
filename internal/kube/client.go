package kube

import (
	"cmp"
	"fmt"
	"net"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Client speaks to one API server over connections of its own. It is safe for concurrent use.
type Client struct {
	core         rest.Interface
	coordination rest.Interface
	clock        *clock
	watch        watchTimes
}

// New returns a client for one purpose, which shows in the user agent: "leasecron/1.2.0 (lease)".
// Clients share no connections, so that leases, ledger and watches never queue behind each other.
// It sends nothing. cfg is not changed.
func New(cfg *rest.Config, purpose string) (*Client, error) {
	c := &Client{clock: new(clock), watch: defaultWatchTimes}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = fmt.Sprintf("%s (%s)", cmp.Or(cfg.UserAgent, "leasecron/"+version()), purpose)
	cfg.QPS = -1
	cfg.Timeout = 0 // each call has its own
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.NextProtos = []string{"http/1.1"}
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = codecs.WithoutConversion()
	if cfg.Dial == nil {
		// client-go shares transports between equal configurations. A dialer of its own keeps this
		// client's connections apart.
		cfg.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	cfg.Wrap(c.clock.wrap)

	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the API server: %w", err)
	}
	for _, group := range []struct {
		client  *rest.Interface
		path    string
		version schema.GroupVersion
	}{
		{&c.core, "/api", corev1.SchemeGroupVersion},
		{&c.coordination, "/apis", coordinationv1.SchemeGroupVersion},
	} {
		cfg.APIPath, cfg.GroupVersion = group.path, &group.version
		client, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
		if err != nil {
			return nil, fmt.Errorf("set up the client for %s: %w", group.version, err)
		}
		*group.client = client
	}
	return c, nil
}

// codecs know the kinds used here and no others: what is registered is linked, with all its methods.
var codecs = serializer.NewCodecFactory(newScheme())

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
	scheme.AddKnownTypes(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, coordinationv1.SchemeGroupVersion)
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err) // only if two types claim one name, which no input can cause
	}
	return scheme
}
