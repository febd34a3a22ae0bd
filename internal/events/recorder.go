package events

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leasecron/leasecron/internal/logkey"
)

// The bounds of what is written.
const (
	subjectsApart = 4                // of each reason have an Event of their own, the others share one
	firstPause    = 10 * time.Second // between two writes of one Event; doubles
	maxPause      = 10 * time.Minute
	forgetAfter   = time.Hour // as the API server does with Events, by default

	burst      = 20               // writes at once, of all Events together
	writeEvery = 15 * time.Second // after that

	callTimeout  = 5 * time.Second
	lastTimeout  = 2 * time.Second // of what is left at the end
	firstBackoff = time.Second
	maxBackoff   = 2 * time.Minute
	muteFor      = 10 * time.Minute // after the right was found missing
)

// Writer is where Events are written. It needs the right to create and to patch Events.
type Writer interface {
	CreateEvent(ctx context.Context, event *corev1.Event) error
	PatchEvent(ctx context.Context, namespace, name string, patch []byte) error
}

// Object is what Events may be about.
type Object struct {
	APIVersion, Kind, Name string
	UID                    string // kubectl describe shows the Events with the object's; empty: not known
}

// Options are what a Recorder takes.
type Options struct {
	Writer    Writer // required
	Namespace string // of the objects and the Events; required
	Node      string // the process that reports; required
	Host      string // the pod's name; shown as the source
	// Lease is what leadership is about; required.
	Lease Object
	// LeaseUID answers with the Lease's UID once that is known. It must not block. Nil: never.
	LeaseUID func() string
	// Pod is what runs are about, Jobs what definitions are about. Without a name the next best
	// object takes their place: the Pod, the Lease.
	Pod, Jobs Object
	Logger    *slog.Logger // nil: nothing is logged
}

// Recorder keeps what is to be told, and writes it. Its Observe methods never block.
type Recorder struct {
	opts Options
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	entries map[key]*entry
	apart   [reasons]int // entries of each reason that are a subject's own
	muted   time.Time    // until then nothing is kept: there is no right to write it
	jobsUID string

	// Of Run's goroutine alone:
	bucket  bucket
	backoff time.Duration
	warned  bool // of the row of failures
	denied  bool // it was said that the right is missing
}

// New checks the options. It writes nothing.
func New(opts Options) (*Recorder, error) {
	if opts.Writer == nil || opts.Namespace == "" || opts.Node == "" || opts.Lease.Name == "" {
		return nil, errors.New("events: Writer, Namespace, Node and Lease are required")
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Recorder{
		opts: opts, log: log.With(slog.String(logkey.Component, "events")),
		wake: make(chan struct{}, 1), entries: make(map[key]*entry), bucket: bucket{tokens: burst},
	}, nil
}

// note keeps something to be written.
func (r *Recorder) note(n note) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.muted) {
		return
	}
	r.forget(now)
	e := r.entry(n)
	if e.first.IsZero() {
		e.first = now
	}
	e.last, e.message = now, clip(n.message, maxMessage)
	e.count += max(n.count, 1)
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
}

// entry finds or makes what counts a note. The caller holds mu.
func (r *Recorder) entry(n note) *entry {
	k := key{reason: n.reason, subject: n.subject}
	if e := r.entries[k]; e != nil {
		return e
	}
	if n.subject != "" && r.apart[n.reason] >= subjectsApart {
		k = key{reason: n.reason, crowd: true}
		if e := r.entries[k]; e != nil {
			return e
		}
	} else {
		r.apart[n.reason]++
	}
	e := &entry{key: k}
	r.entries[k] = e
	return e
}

// forget drops what has been quiet for so long that the API server has forgotten it too, and a
// pause, so that what comes next is news. The caller holds mu.
func (r *Recorder) forget(now time.Time) {
	for k, e := range r.entries {
		if now.Sub(e.last) < forgetAfter || e.pending() {
			continue
		}
		r.drop(k)
	}
}

// drop removes an entry. The caller holds mu.
func (r *Recorder) drop(k key) {
	if _, ok := r.entries[k]; ok && !k.crowd {
		r.apart[k.reason]--
	}
	delete(r.entries, k)
}

// Run writes until ctx ends, and then, for a moment, what is left.
func (r *Recorder) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
			defer cancel()
			r.last(last)
			return context.Cause(ctx)
		case <-r.wake:
			if r.backoff > 0 { // the timer is the one of the back-off
				continue
			}
		case <-timer.C:
		}
		if wait, more := r.write(ctx); more {
			timer.Reset(wait)
		}
	}
}

// write writes what may be written now and says when to look again, if there is anything left.
func (r *Recorder) write(ctx context.Context) (wait time.Duration, more bool) {
	for ctx.Err() == nil {
		now := time.Now()
		e, at, ok := r.next(now)
		if !ok {
			return 0, false
		}
		if at.After(now) {
			return at.Sub(now), true
		}
		if at := r.bucket.next(now); at.After(now) {
			return at.Sub(now), true
		}
		r.bucket.take(now)
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		err := r.send(callCtx, e)
		cancel()
		if !r.settle(ctx, e, err) {
			r.backoff = min(max(2*r.backoff, firstBackoff), maxBackoff)
			return r.backoff/2 + rand.N(r.backoff/2+1), true //nolint:gosec // spreads load, hides nothing
		}
		r.backoff = 0
	}
	return 0, false
}

// last makes one attempt to write each Event that is left.
func (r *Recorder) last(ctx context.Context) {
	r.mu.Lock()
	for _, e := range r.entries {
		e.next = time.Time{}
	}
	r.mu.Unlock()
	if r.backoff == 0 { // else the API server is away, and has been asked a moment ago
		_, _ = r.write(ctx)
	}
}

// next picks the Event to be written next, and when: of those that may be written now a new one, and
// the first reason; else the one that may soonest.
func (r *Recorder) next(now time.Time) (picked entry, at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *entry
	for _, e := range r.entries {
		if e.pending() && (best == nil || before(e, best, now)) {
			best = e
		}
	}
	if best == nil {
		return entry{}, time.Time{}, false
	}
	if best.name == "" {
		best.name = r.eventName(best, now)
	}
	return *best, best.next, true
}

func before(a, b *entry, now time.Time) bool {
	aDue, bDue := !a.next.After(now), !b.next.After(now)
	switch {
	case aDue != bDue:
		return aDue
	case !aDue:
		return a.next.Before(b.next)
	case a.created != b.created: // what nobody knows of yet is not held up by a count
		return b.created
	case a.key.reason != b.key.reason:
		return a.key.reason < b.key.reason
	default:
		return a.first.Before(b.first)
	}
}

// settle takes in how a write of what sent was ended, and reports whether to go on with the next.
func (r *Recorder) settle(ctx context.Context, sent entry, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[sent.key]
	if e == nil || e.name != sent.name { // dropped meanwhile
		return true
	}
	switch {
	case err == nil, !sent.created && apierrors.IsAlreadyExists(err):
		// One that exists was stored by a call whose answer was lost; with the next patch it is right.
		if err == nil {
			e.told = sent.count
		} else {
			e.told = min(1, sent.count-1)
		}
		e.created = true
		e.pause = min(max(2*e.pause, firstPause), maxPause)
		e.next = time.Now().Add(e.pause)
		if r.warned || r.denied {
			r.warned, r.denied = false, false
			r.log.LogAttrs(ctx, slog.LevelInfo, "events can be written again")
		}
		return true
	case sent.created && apierrors.IsNotFound(err): // it has expired
		e.created, e.name, e.first, e.count, e.told = false, "", e.last, max(e.count-e.told, 1), 0
		return true
	case apierrors.IsForbidden(err):
		if !r.denied {
			r.denied = true
			r.log.LogAttrs(ctx, slog.LevelWarn, "events cannot be written: the right is missing; grant create and patch on events, or set LEASECRON_EVENTS=false",
				slog.String(logkey.Namespace, r.opts.Namespace), logkey.Err(err))
		}
		clear(r.entries)
		clear(r.apart[:])
		r.muted = time.Now().Add(muteFor)
		return true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.IsRequestEntityTooLargeError(err):
		r.log.LogAttrs(ctx, slog.LevelError, "an event was refused and is dropped", slog.String(logkey.Reason, kinds[e.key.reason].name), logkey.Err(err))
		r.drop(e.key)
		return true
	default:
		if !r.warned {
			r.warned = true
			r.log.LogAttrs(ctx, slog.LevelInfo, "events cannot be written for now, trying again", logkey.Err(err))
		}
		return false
	}
}

// bucket bounds the rate of all writes together.
type bucket struct {
	tokens float64
	at     time.Time // when tokens was right
}

func (b *bucket) refill(now time.Time) {
	if !b.at.IsZero() {
		b.tokens = min(b.tokens+now.Sub(b.at).Seconds()/writeEvery.Seconds(), burst)
	}
	b.at = now
}

// next is when a write may be made.
func (b *bucket) next(now time.Time) time.Time {
	b.refill(now)
	if b.tokens >= 1 {
		return now
	}
	return now.Add(time.Duration((1-b.tokens)*float64(writeEvery)) + time.Millisecond)
}

func (b *bucket) take(now time.Time) {
	b.refill(now)
	b.tokens--
}
