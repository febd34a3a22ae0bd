package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leasecron/leasecron/internal/kube"
)

// ConfigMapName returns the name of the ConfigMap that holds a document of an app.
func ConfigMapName(app string, name Name) string { return app + "-leasecron-" + string(name) }

// KubernetesOptions say where the ConfigMaps of an app are.
type KubernetesOptions struct {
	Client         *kube.Client
	Namespace, App string
	// Timeout bounds each call to the API server; 5 s where it is zero.
	Timeout time.Duration
	// WatchState, if set, is told with nil that a watch is up, and with the reason that it is down
	// and will be tried again. It is called by the goroutine that watches.
	WatchState func(Name, error)
}

// Kubernetes is a [Store] in ConfigMaps, which must exist: it reads, replaces and watches them by
// name, and creates none. Whatever else an object carries stays as it is.
//
// The ledger and the named leases are plain JSON, for people to read; the catalog and the history
// are compressed.
type Kubernetes struct {
	client     *kube.Client
	namespace  string
	app        string
	timeout    time.Duration
	watchState func(Name, error)

	mu sync.Mutex
	// seen holds the objects as they last were, without the documents themselves: a write has to
	// send what else is in an object, and need not ask for it first.
	seen map[Name]*corev1.ConfigMap
}

var _ Store = (*Kubernetes)(nil)

// causeTooLong is how the API server names the cause when an object exceeds its 1 MiB.
const causeTooLong = metav1.CauseType(field.ErrorTypeTooLong)

var errSlow = errors.New("the API server did not answer in time")

// NewKubernetes returns the store of an app. It sends nothing.
func NewKubernetes(o KubernetesOptions) (*Kubernetes, error) {
	if o.Client == nil {
		return nil, errors.New("ledger in Kubernetes: no client")
	}
	if o.Namespace == "" {
		return nil, errors.New("ledger in Kubernetes: no namespace")
	}
	for _, name := range Names() {
		if bad := validation.IsDNS1123Subdomain(ConfigMapName(o.App, name)); len(bad) > 0 {
			return nil, fmt.Errorf("ledger in Kubernetes: app %q does not make the name of an object: %s", o.App, bad[0])
		}
	}
	k := &Kubernetes{
		client: o.Client, namespace: o.Namespace, app: o.App, timeout: o.Timeout,
		watchState: o.WatchState, seen: make(map[Name]*corev1.ConfigMap),
	}
	if k.timeout <= 0 {
		k.timeout = 5 * time.Second
	}
	if k.watchState == nil {
		k.watchState = func(Name, error) {}
	}
	return k, nil
}

// Load implements [Store].
func (k *Kubernetes) Load(ctx context.Context, name Name) ([]byte, Version, error) {
	cm, err := k.get(ctx, name)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", k.object(name), err)
	}
	data, err := unpack(name, cm)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w: %w; put back a copy, or remove the key to start with an empty document",
			k.object(name), ErrCorrupt, err)
	}
	return data, versionOf(cm), nil
}

// Replace implements [Store].
func (k *Kubernetes) Replace(ctx context.Context, name Name, from Version, data []byte) (Version, error) {
	if err := checkSize(name, len(data), name.MaxBytes()); err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("replace %s: it is not valid UTF-8", k.object(name))
	}
	cm := k.recall(name)
	if cm == nil || versionOf(cm) != from {
		// Nothing to send it in. Either the caller has seen something newer, or something older.
		var err error
		if cm, err = k.get(ctx, name); err != nil {
			return "", fmt.Errorf("replace %s: %w", k.object(name), err)
		}
	}
	if versionOf(cm) != from {
		return "", fmt.Errorf("replace %s: %w", k.object(name), ErrConflict)
	}
	cm = cm.DeepCopy()
	if err := pack(name, cm, data); err != nil {
		return "", fmt.Errorf("replace %s: %w", k.object(name), err)
	}
	if err := checkSize(name, sizeOf(cm), MaxObjectBytes); err != nil {
		return "", err
	}
	stored, err := k.update(ctx, cm)
	if err != nil {
		return "", fmt.Errorf("replace %s: %w", k.object(name), err)
	}
	k.remember(name, stored)
	return versionOf(stored), nil
}

// Watch implements [Store].
func (k *Kubernetes) Watch(ctx context.Context, name Name, changed func(Version)) error {
	k.client.WatchConfigMapMetadata(ctx, k.namespace, ConfigMapName(k.app, name), kube.Handler[metav1.PartialObjectMetadata]{
		Object: func(m *metav1.PartialObjectMetadata) {
			if m == nil {
				changed("")
				return
			}
			changed(versionOf(m))
		},
		State: func(err error) { k.watchState(name, err) },
	})
	return context.Cause(ctx)
}

// Exclusive implements [Store]: other replicas write too.
func (k *Kubernetes) Exclusive() bool { return false }

// Close implements [Store]. There is nothing to release.
func (k *Kubernetes) Close() error { return nil }

func (k *Kubernetes) object(name Name) string {
	return "ConfigMap " + k.namespace + "/" + ConfigMapName(k.app, name)
}

// get reads an object, and remembers it.
func (k *Kubernetes) get(ctx context.Context, name Name) (*corev1.ConfigMap, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	call, cancel := context.WithTimeoutCause(ctx, k.timeout, errSlow)
	defer cancel()
	cm, err := k.client.GetConfigMap(call, k.namespace, ConfigMapName(k.app, name))
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w; apply what sidecar pack makes", ErrMissing, err)
	case err != nil:
		return nil, because(call, err)
	}
	k.remember(name, cm)
	return cm, nil
}

// update sends an object, and says what an error leaves behind.
func (k *Kubernetes) update(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	call, cancel := context.WithTimeoutCause(ctx, k.timeout, errSlow)
	defer cancel()
	stored, err := k.client.UpdateConfigMap(call, cm)
	switch {
	case err == nil:
		return stored, nil
	case kube.Unknown(err):
		return nil, fmt.Errorf("%w: %w", ErrUnknown, because(call, err))
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %w", ErrConflict, err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	case apierrors.IsRequestEntityTooLargeError(err), apierrors.HasStatusCause(err, causeTooLong):
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return nil, because(call, err)
}

// because adds why a call's context ended, which the failure itself does not say.
func because(call context.Context, err error) error {
	if cause := context.Cause(call); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (k *Kubernetes) recall(name Name) *corev1.ConfigMap {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[name]
}

func (k *Kubernetes) remember(name Name, cm *corev1.ConfigMap) {
	kept := cm.DeepCopy()
	delete(kept.Data, plainKey(name))
	delete(kept.BinaryData, packedKey(name))
	kept.ManagedFields = nil // a write without them leaves them to the API server
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen[name] = kept
}

// versionOf joins uid and resourceVersion: an object that was made anew is another one, whatever
// its resourceVersion.
func versionOf(o metav1.Object) Version {
	return Version(string(o.GetUID()) + "/" + o.GetResourceVersion())
}

// sizeOf counts what the API server counts, and the annotations, which it limits too.
func sizeOf(cm *corev1.ConfigMap) int {
	size := 0
	for _, part := range []map[string]string{cm.Data, cm.Labels, cm.Annotations} {
		for k, v := range part {
			size += len(k) + len(v)
		}
	}
	for k, v := range cm.BinaryData {
		size += len(k) + len(v)
	}
	return size
}

func plainKey(name Name) string  { return string(name) + ".json" }
func packedKey(name Name) string { return string(name) + ".json.gz" }

// pack puts a document into its object.
func pack(name Name, cm *corev1.ConfigMap, data []byte) error {
	if !name.compressed() {
		if cm.Data == nil {
			cm.Data = make(map[string]string, 1)
		}
		cm.Data[plainKey(name)] = string(data)
		return nil
	}
	small, err := compress(data)
	if err != nil {
		return err
	}
	if cm.BinaryData == nil {
		cm.BinaryData = make(map[string][]byte, 1)
	}
	cm.BinaryData[packedKey(name)] = small
	return nil
}

// unpack takes a document out of its object; nil if it was never written.
func unpack(name Name, cm *corev1.ConfigMap) ([]byte, error) {
	if !name.compressed() {
		text := cm.Data[plainKey(name)]
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		return []byte(text), nil
	}
	small := cm.BinaryData[packedKey(name)]
	if len(small) == 0 {
		return nil, nil
	}
	data, err := decompress(small, name.MaxBytes())
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", packedKey(name), err)
	}
	return data, nil
}
