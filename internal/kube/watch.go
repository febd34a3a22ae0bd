package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Handler is told what a watch sees, one call at a time. It must not block.
type Handler[T any] struct {
	// Object is called with the object as it is now, nil when there is none: once when the watch
	// begins, at each change, and again after a break. It keeps obj.
	Object func(obj *T)
	// State, if set, is called with nil when the watch is up, after Object has been told what there
	// is, and with the reason each time that it is down and will be tried again after a pause.
	State func(err error)
}

// watchTimes are the pauses and patience of a watch.
type watchTimes struct {
	answer   time.Duration // a list, or the beginning of a watch, takes no longer
	silence  time.Duration // a watch without event or bookmark is reopened; bookmarks come each minute
	lifetime time.Duration // the server ends a watch after this up to twice this
	proven   time.Duration // a watch that lasted this long and ended in order is reopened at once
	minPause time.Duration // after the first failure; doubles from failure to failure …
	maxPause time.Duration // … up to this
}

var defaultWatchTimes = watchTimes{
	answer:   15 * time.Second,
	silence:  90 * time.Second,
	lifetime: 5 * time.Minute,
	proven:   5 * time.Second,
	minPause: time.Second,
	maxPause: 30 * time.Second,
}

// metadataOnly asks for objects without their content.
const metadataOnly = runtime.ContentTypeProtobuf + ";as=%[1]s;g=meta.k8s.io;v=v1," +
	runtime.ContentTypeJSON + ";as=%[1]s;g=meta.k8s.io;v=v1"

var (
	errSilent    = errors.New("no event and no bookmark for too long")
	errNoAnswer  = errors.New("no answer in time")
	errShortLife = errors.New("the watch was closed as soon as it was opened")
)

// WatchConfigMap watches one ConfigMap until ctx ends. It needs list and watch on that name only.
func (c *Client) WatchConfigMap(ctx context.Context, namespace, name string, h Handler[corev1.ConfigMap]) {
	w := watcher[corev1.ConfigMap, *corev1.ConfigMap]{
		client: c.core, resource: configMaps, namespace: namespace, name: name, times: c.watch, handler: h,
	}
	w.list = func(ctx context.Context, req *rest.Request) ([]corev1.ConfigMap, string, error) {
		var out corev1.ConfigMapList
		err := req.Do(ctx).Into(&out)
		return out.Items, out.ResourceVersion, err
	}
	w.run(ctx)
}

// WatchConfigMapMetadata watches one ConfigMap until ctx ends and is told its metadata only: for those
// who want to know that it changed, without receiving their own documents back each time.
// It needs list and watch on that name only.
func (c *Client) WatchConfigMapMetadata(ctx context.Context, namespace, name string, h Handler[metav1.PartialObjectMetadata]) {
	w := watcher[metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata]{
		client: c.core, resource: configMaps, namespace: namespace, name: name, times: c.watch, handler: h,
		acceptList:  fmt.Sprintf(metadataOnly, "PartialObjectMetadataList"),
		acceptWatch: fmt.Sprintf(metadataOnly, "PartialObjectMetadata"),
	}
	w.list = func(ctx context.Context, req *rest.Request) ([]metav1.PartialObjectMetadata, string, error) {
		var out metav1.PartialObjectMetadataList
		err := req.Do(ctx).Into(&out)
		return out.Items, out.ResourceVersion, err
	}
	w.run(ctx)
}

// WatchLease watches one Lease until ctx ends. It needs list and watch on that name only.
func (c *Client) WatchLease(ctx context.Context, namespace, name string, h Handler[coordinationv1.Lease]) {
	w := watcher[coordinationv1.Lease, *coordinationv1.Lease]{
		client: c.coordination, resource: leases, namespace: namespace, name: name, times: c.watch, handler: h,
	}
	w.list = func(ctx context.Context, req *rest.Request) ([]coordinationv1.Lease, string, error) {
		var out coordinationv1.LeaseList
		err := req.Do(ctx).Into(&out)
		return out.Items, out.ResourceVersion, err
	}
	w.run(ctx)
}

// watcher keeps one named object in view.
type watcher[T any, P interface {
	*T
	object
}] struct {
	client                    rest.Interface
	resource, namespace, name string
	times                     watchTimes
	handler                   Handler[T]
	list                      func(ctx context.Context, req *rest.Request) ([]T, string, error)
	acceptList, acceptWatch   string // empty: the client's own

	version string // where to go on from; empty: list first
}

func (w *watcher[T, P]) run(ctx context.Context) {
	failures := 0
	for {
		lived, err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if lived >= w.times.proven {
			failures = 0
			if err == nil {
				continue
			}
		}
		if err == nil {
			err = errShortLife
		}
		w.state(fmt.Errorf("watch %s/%s: %w", w.resource, w.name, err))
		if !pause(ctx, w.delay(failures, err)) {
			return
		}
		failures++
	}
}

// delay grows with each failure in a row, is spread so that many sidecars do not come at once, and
// is as long as the API server asked for, within bounds.
func (w *watcher[T, P]) delay(failures int, err error) time.Duration {
	d := min(w.times.minPause<<min(failures, 10), w.times.maxPause)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		d = min(max(d, time.Duration(seconds)*time.Second), w.times.maxPause)
	}
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, hides nothing
}

// once lists if need be and follows the object until the watch ends. It says how long the watch was
// up, and why it ended: nil if the API server ended it in order.
func (w *watcher[T, P]) once(ctx context.Context) (lived time.Duration, err error) {
	if w.version == "" {
		if err := w.relist(ctx); err != nil {
			return 0, err
		}
	}
	events, err := w.open(ctx)
	if err != nil {
		// Whatever the API server does not like may be the version: too old, or of a past life.
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code != http.StatusTooManyRequests {
			w.version = ""
		}
		return 0, err
	}
	defer events.Stop()
	w.state(nil)
	opened := time.Now()
	err = w.follow(ctx, events.ResultChan())
	return time.Since(opened), err
}

func (w *watcher[T, P]) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.times.answer, errNoAnswer)
	defer cancel()
	items, version, err := w.list(ctx, w.request(w.acceptList))
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	w.version = version
	for i := range items {
		if P(&items[i]).GetName() == w.name {
			w.handler.Object(&items[i])
			return nil
		}
	}
	w.handler.Object(nil)
	return nil
}

// openStream is a watch whose context ends with it.
type openStream struct {
	watch.Interface
	cancel context.CancelFunc
}

func (s openStream) Stop() {
	s.cancel()
	s.Interface.Stop()
}

func (w *watcher[T, P]) open(ctx context.Context) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	// The context must outlive the opening, so a timer bounds the opening alone.
	patience := time.AfterFunc(w.times.answer, cancel)
	seconds := int64((w.times.lifetime + rand.N(w.times.lifetime)) / time.Second) //nolint:gosec // spreads load, hides nothing
	stream, err := w.request(w.acceptWatch).
		Param("watch", "true").
		Param("resourceVersion", w.version).
		Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.FormatInt(seconds, 10)).
		Watch(ctx)
	if !patience.Stop() && err == nil {
		stream.Stop()
		err = errNoAnswer
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return openStream{stream, cancel}, nil
}

func (w *watcher[T, P]) request(accept string) *rest.Request {
	req := w.client.Get().Namespace(w.namespace).Resource(w.resource).MaxRetries(0).
		Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", w.name).String())
	if accept != "" {
		req.SetHeader("Accept", accept)
	}
	return req
}

func (w *watcher[T, P]) follow(ctx context.Context, events <-chan watch.Event) error {
	silence := time.NewTimer(w.times.silence)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-silence.C:
			return errSilent
		case event, ok := <-events:
			if !ok {
				return nil
			}
			silence.Reset(w.times.silence)
			if err := w.accept(event); err != nil {
				return err
			}
		}
	}
}

func (w *watcher[T, P]) accept(event watch.Event) error {
	if event.Type == watch.Error {
		w.version = "" // mostly 410 Gone; whatever it is, a list sets it right
		return apierrors.FromObject(event.Object)
	}
	obj, ok := event.Object.(P)
	if !ok {
		w.version = ""
		return fmt.Errorf("got a %T", event.Object)
	}
	w.version = obj.GetResourceVersion()
	if event.Type == watch.Bookmark || obj.GetName() != w.name {
		return nil
	}
	if event.Type == watch.Deleted {
		obj = nil
	}
	w.handler.Object(obj)
	return nil
}

func (w *watcher[T, P]) state(err error) {
	if w.handler.State != nil {
		w.handler.State(err)
	}
}

// pause waits and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
