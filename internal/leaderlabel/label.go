// Package leaderlabel keeps a label on the leader's own Pod, so that a Service can select it.
//
// The label says who leads as well as it can, and guards nothing: it follows the leadership by a
// moment, and a leader that is cut off from the API server cannot take it off until it is back. It is
// written beside everything else; no run and no election ever waits for it. In steady state it
// costs no request.
package leaderlabel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

// The label of the leader's Pod. Other Pods do not have it.
const (
	Key   = "leasecron.io/leader"
	Value = "true"
)

const (
	callTimeout  = 5 * time.Second
	lastTimeout  = 2 * time.Second // of the attempt to take the label off at the end
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
)

// Pods is where the Pod is labelled, by JSON merge patches; it needs the right to patch Pods.
type Pods interface {
	PatchPod(ctx context.Context, namespace, name string, patch []byte) error
}

// Options are what a Label takes.
type Options struct {
	Pods            Pods   // required
	Namespace, Name string // of the Pod in which this process runs; required
	// UID of that Pod: another one of the same name is left alone. Empty: not checked.
	UID    string
	Logger *slog.Logger // nil: nothing is logged
}

// Label is the label of one Pod. Make it with New, then call Run.
type Label struct {
	opts    Options
	log     *slog.Logger
	leading atomic.Bool
	changed chan struct{}
}

// New checks the options. It writes nothing.
func New(opts Options) (*Label, error) {
	if opts.Pods == nil || opts.Namespace == "" || opts.Name == "" {
		return nil, errors.New("leaderlabel: Pods, Namespace and Name are required")
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Label{opts: opts, log: log.With(slog.String(logkey.Component, "leader-label")), changed: make(chan struct{}, 1)}, nil
}

// Set says whether this process leads. It returns at once.
func (l *Label) Set(leading bool) {
	l.leading.Store(leading)
	select {
	case l.changed <- struct{}{}:
	default: // one is waiting already
	}
}

// Run keeps the label until ctx ends, then takes it off. At first it takes off what an earlier
// process of this Pod may have left.
func (l *Label) Run(ctx context.Context) error {
	var (
		known, shown bool // whether it is known that the Pod has the label, and whether it has
		wait         time.Duration
		retry        = time.NewTimer(0)
	)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			if !known || shown {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
				defer cancel()
				if err := l.write(last, false); err != nil {
					l.log.LogAttrs(last, slog.LevelWarn, "the leader label could not be taken off at the end", logkey.Err(err))
				}
			}
			return context.Cause(ctx)
		case <-l.changed:
		case <-retry.C:
		}
		want := l.leading.Load()
		if known && shown == want {
			continue
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		err := l.write(callCtx, want)
		cancel()
		if ctx.Err() != nil {
			known = false
			continue
		}
		if err != nil {
			if wait == 0 { // one line for each row of failures
				l.log.LogAttrs(ctx, slog.LevelWarn, "the leader label is not up to date, trying again",
					slog.String("pod", l.opts.Name), slog.Bool("leading", want), logkey.Err(err))
			}
			known = false // without an answer it may be stored all the same
			wait = min(max(2*wait, firstBackoff), maxBackoff)
			retry.Reset(wait/2 + rand.N(wait/2+1)) //nolint:gosec // spreads load, hides nothing
			continue
		}
		if wait > 0 {
			l.log.LogAttrs(ctx, slog.LevelInfo, "the leader label is up to date again", slog.Bool("leading", want))
		}
		known, shown, wait = true, want, 0
		retry.Stop()
	}
}

// write sets the label or takes it off.
func (l *Label) write(ctx context.Context, leading bool) error {
	labels := map[string]any{Key: nil}
	if leading {
		labels[Key] = Value
	}
	metadata := map[string]any{"labels": labels}
	if l.opts.UID != "" {
		metadata["uid"] = l.opts.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("write the patch: %w", err)
	}
	return l.opts.Pods.PatchPod(ctx, l.opts.Namespace, l.opts.Name, patch)
}
