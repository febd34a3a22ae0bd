package events

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// component is the source and the controller that Events name.
const component = "leasecron"

const (
	maxMessage  = 900 // bytes; what is put before it fits into the 1024 that an Event takes
	maxInstance = 128 // bytes that the API server takes as the reporting instance
	maxName     = 200 // bytes of an object's name that goes into an Event's
)

// send creates an Event, or brings the one that exists up to date.
func (r *Recorder) send(ctx context.Context, e entry) error {
	if !e.created {
		return r.opts.Writer.CreateEvent(ctx, r.event(e))
	}
	patch, err := json.Marshal(map[string]any{
		"count": e.count, "lastTimestamp": metav1.NewTime(e.last), "message": e.text(),
	})
	if err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	return r.opts.Writer.PatchEvent(ctx, r.opts.Namespace, e.name, patch)
}

// event is an Event as it is created.
func (r *Recorder) event(e entry) *corev1.Event {
	kind, about := kinds[e.key.reason], r.object(kinds[e.key.reason].place)
	return &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.opts.Namespace, Name: e.name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.APIVersion, Kind: about.Kind, Namespace: r.opts.Namespace, Name: about.Name, UID: types.UID(about.UID),
		},
		Type: kind.kind, Reason: kind.name, Message: e.text(), Count: int32(min(e.count, 1<<30)), //nolint:gosec // bounded
		FirstTimestamp: metav1.NewTime(e.first), LastTimestamp: metav1.NewTime(e.last),
		Source:              corev1.EventSource{Component: component, Host: r.opts.Host},
		ReportingController: component, ReportingInstance: clip(r.opts.Node, maxInstance),
	}
}

// object is what Events of a place are about, or the next best.
func (r *Recorder) object(at place) Object {
	lease := r.opts.Lease
	if r.opts.LeaseUID != nil {
		lease.UID = r.opts.LeaseUID()
	}
	switch {
	case at == onJobs && r.opts.Jobs.Name != "":
		jobs := r.opts.Jobs
		r.mu.Lock()
		jobs.UID = r.jobsUID
		r.mu.Unlock()
		return jobs
	case at != onLease && r.opts.Pod.Name != "":
		return r.opts.Pod
	default:
		return lease
	}
}

// eventName is unlike that of any other Event: the object's name, the time, chance.
func (r *Recorder) eventName(e *entry, now time.Time) string {
	about := cmp.Or(r.opts.Pod.Name, r.opts.Lease.Name)
	if kinds[e.key.reason].place == onLease {
		about = r.opts.Lease.Name
	}
	about = strings.TrimRight(about[:min(len(about), maxName)], ".-")
	return about + "." + strconv.FormatInt(now.UnixNano(), 16) + strconv.FormatUint(uint64(rand.Uint32()), 16) //nolint:gosec // tells apart, hides nothing
}

// clip cuts a text at the last whole character within the limit.
func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const dots = "…"
	limit -= len(dots)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + dots
}
