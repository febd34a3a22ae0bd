package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/logkey"
)

// ConfigMapOptions are what a [ConfigMap] needs. All but Parse and Logger are required.
type ConfigMapOptions struct {
	Client    *kube.Client
	Namespace string
	Name      string
	Key       string
	Parse     config.Options // Now and Resolve are set for each version
	Logger    *slog.Logger   // nil: nothing is logged
}

// ConfigMap follows a jobs document in a key of a ConfigMap, through the API: a change is known
// within milliseconds, where a mounted copy follows a minute later.
type ConfigMap struct {
	opts ConfigMapOptions
	log  *slog.Logger
	load loader
}

var _ Source = (*ConfigMap)(nil)

// NewConfigMap returns a source that has not asked the API server anything yet.
func NewConfigMap(opts ConfigMapOptions) (*ConfigMap, error) {
	if opts.Client == nil || opts.Namespace == "" || opts.Name == "" || opts.Key == "" {
		return nil, errors.New("a ConfigMap source needs a client, a namespace, a name and a key")
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &ConfigMap{
		opts: opts,
		log:  log.With(slog.String(logkey.Component, "source")),
		load: loader{
			origin: fmt.Sprintf("ConfigMap %s/%s key %s", opts.Namespace, opts.Name, opts.Key),
			name:   opts.Name + "/" + opts.Key,
			opts:   opts.Parse,
		},
	}, nil
}

// Run implements [Source]. It never gives up: a ConfigMap that is absent, unreadable or invalid is
// published as refused, and a good version when there is one.
func (c *ConfigMap) Run(ctx context.Context, publish func(Update)) error {
	box := newMailbox()
	var watching sync.WaitGroup
	watching.Go(func() {
		c.opts.Client.WatchConfigMap(ctx, c.opts.Namespace, c.opts.Name, kube.Handler[corev1.ConfigMap]{
			Object: func(object *corev1.ConfigMap) { box.put(sighting{object: object, seen: true}) },
			State:  func(err error) { box.put(sighting{down: err}) },
		})
	})
	defer watching.Wait()
	c.follow(ctx, box, publish)
	return context.Cause(ctx)
}

// follow publishes what the watch sees, outside of the watch's own goroutine, which must not block.
func (c *ConfigMap) follow(ctx context.Context, box *mailbox, publish func(Update)) {
	known := false // whether the watch ever told what there is
	down := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-box.full:
		}
		s := box.take()
		if s.seen {
			known = true
			update, news := c.load.load(configMapReader{c.opts, s.object}, time.Now())
			if news {
				if s.object != nil {
					update.UID = string(s.object.UID)
				}
				publish(update)
			}
		}
		switch {
		case s.down == nil:
			down = false
		case !known:
			// There is nothing in force, so why there is nothing has to be said.
			if update, news := c.load.fail(fmt.Errorf("watch the ConfigMap: %w", s.down), time.Now()); news {
				publish(update)
			}
		case !down:
			// What is in force stays right as far as anyone can know; only changes are missed.
			down = true
			c.log.LogAttrs(ctx, slog.LevelWarn, "watch of the job definitions interrupted, changes will be seen when it is back",
				slog.String(logkey.Source, c.load.origin), logkey.Err(s.down))
		}
	}
}

// sighting is what the watch told since it was last asked: the newest object and the newest state.
type sighting struct {
	seen   bool
	object *corev1.ConfigMap // nil: there is none
	down   error             // nil: the watch is up
}

// mailbox holds one sighting; a newer one replaces what nobody has taken yet.
type mailbox struct {
	full chan struct{}
	mu   sync.Mutex
	last sighting
}

func newMailbox() *mailbox { return &mailbox{full: make(chan struct{}, 1)} }

func (b *mailbox) put(s sighting) {
	b.mu.Lock()
	if !s.seen {
		s.seen, s.object = b.last.seen, b.last.object
	}
	b.last = s
	b.mu.Unlock()
	select {
	case b.full <- struct{}{}:
	default: // it is known to be full
	}
}

func (b *mailbox) take() sighting {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.last
	b.last = sighting{down: s.down}
	return s
}

// configMapReader reads from one version of a ConfigMap.
type configMapReader struct {
	opts   ConfigMapOptions
	object *corev1.ConfigMap
}

func (r configMapReader) document() ([]byte, error) {
	if r.object == nil {
		return nil, fmt.Errorf("ConfigMap %s/%s does not exist", r.opts.Namespace, r.opts.Name)
	}
	data, ok := r.key(r.opts.Key)
	if !ok {
		keys := slices.Concat(slices.Collect(maps.Keys(r.object.Data)), slices.Collect(maps.Keys(r.object.BinaryData)))
		slices.Sort(keys)
		has := "no keys"
		if len(keys) > 0 {
			has = strings.Join(keys, ", ")
		}
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %q (it has %s)", r.opts.Namespace, r.opts.Name, r.opts.Key, has)
	}
	return data, nil
}

func (r configMapReader) resolve(name string) ([]byte, error) {
	data, ok := r.key(name)
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %q", r.opts.Namespace, r.opts.Name, name)
	}
	return data, nil
}

// replaced is false: an object is one version.
func (configMapReader) replaced() bool { return false }

func (r configMapReader) key(name string) ([]byte, bool) {
	if text, ok := r.object.Data[name]; ok {
		return []byte(text), true
	}
	data, ok := r.object.BinaryData[name]
	return data, ok
}
