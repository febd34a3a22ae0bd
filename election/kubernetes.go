package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/logkey"
)

// Kubernetes is the elector of replicas that compete for one Lease object, which must exist: it
// needs get, update, list and watch on that name and nothing else. Followers watch it and send
// nothing; when the watch cannot be had they look at it every third of the lease duration. So it works
// with get and update alone, less well, and says so.
type Kubernetes struct {
	*candidate
	opts   KubernetesOptions
	sight  *sight
	record *record

	holderMu sync.Mutex
	holder   string // as last told to the observer
}

var _ Elector = (*Kubernetes)(nil)

// NewKubernetes returns an elector on a Lease object. It sends nothing yet.
func NewKubernetes(opts KubernetesOptions) (*Kubernetes, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	c := newCandidate(opts.Options)
	c.log = c.log.With(slog.String(logkey.Lease, opts.Name))
	c.pauses = pauses{first: opts.renewEvery(), max: 12 * opts.renewEvery()}
	k := &Kubernetes{candidate: c, opts: opts, sight: newSight()}
	k.record = &record{opts: &k.opts, sight: k.sight}
	return k, nil
}

// Run campaigns, leads and campaigns again until ctx ends.
func (k *Kubernetes) Run(ctx context.Context, lead Lead) error {
	// The watch outlives ctx, because the hand-over still looks at the record.
	watchCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { k.watch(watchCtx) })
	defer watching.Wait()
	defer stop()

	var pause time.Duration
	for {
		held, won := k.campaign(ctx, time.Now().Add(pause))
		if won && ctx.Err() == nil {
			pause = k.term(ctx, held, lead)
			continue
		}
		// An attempt may have made this process the holder too late, or without its knowing.
		if len(k.record.lost) > 0 || k.record.own(k.sight.get().lease) {
			k.release(ctx)
		}
		return context.Cause(ctx)
	}
}

func (k *Kubernetes) watch(ctx context.Context) {
	forbidden := false
	k.opts.Client.WatchLease(ctx, k.opts.Namespace, k.opts.Name, kube.Handler[coordinationv1.Lease]{
		Object: func(lease *coordinationv1.Lease) { k.sight.see(lease, "") },
		State: func(err error) {
			k.sight.watch(err == nil)
			switch {
			case apierrors.IsForbidden(err) && !forbidden:
				forbidden = true
				k.log.LogAttrs(ctx, slog.LevelWarn, "the Lease may not be watched: it is read at intervals instead, and a hand-over takes as long; "+rights,
					slog.Duration("interval", k.opts.renewEvery()), logkey.Err(err))
			case err != nil:
				k.log.LogAttrs(ctx, slog.LevelDebug, "watch failed", logkey.Err(err))
			}
		},
	})
}

// campaign waits until this process holds the Lease and answers with since when, or with false when
// ctx has ended. It takes nothing before the moment given.
func (k *Kubernetes) campaign(ctx context.Context, from time.Time) (held instant, won bool) {
	interval := k.opts.renewEvery()
	var (
		looked   = time.Now() // when the Lease was last asked for, or need not be
		failures int
		trouble  error // what the last look ended with
		refused  error // what the last attempt ended with
		silent   bool  // the API server did not even show the Lease after the last attempt
	)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for ctx.Err() == nil {
		k.turned()
		s := k.sight.get()
		k.noticeHolder(s)

		wake := interval
		if s.watched {
			looked = time.Now()
			trouble = nil
		} else if due := time.Until(looked.Add(interval)); due <= 0 {
			trouble = k.look(ctx)
			looked = time.Now()
			continue
		} else {
			wake = due
		}

		m := s.next(k.opts.Identity, k.opts.App, k.opts.Duration)
		eligible := k.opts.Eligible()
		due := time.Until(later(m.at, from))
		switch {
		case m.err != nil:
			k.complain(ctx, aboutObject, fmt.Errorf("Lease %s/%s: %w", k.opts.Namespace, k.opts.Name, m.err))
		case eligible != nil:
			k.ineligible(ctx, eligible)
		case m.at.IsZero():
			k.wait(ctx, m.reason)
		case due <= 0 && silent:
			// One call finds out whether it answers again; an attempt would cost two.
			trouble = k.look(ctx)
			looked = time.Now()
			if trouble == nil {
				silent = false
				continue
			}
			from = time.Now().Add(k.backoff(failures, trouble))
			failures++
			continue
		case due <= 0:
			began := time.Now()
			var sent instant
			if sent, refused = k.take(ctx, s); refused == nil {
				return sent, true
			}
			silent = k.sight.get().seen.Before(began)
			looked = time.Now()
			from = time.Now().Add(k.backoff(failures, refused))
			failures++
			continue
		case from.After(m.at) && failures == 0:
			k.wait(ctx, pausing)
			wake = min(wake, due)
		default:
			if m.at.After(from) {
				refused = nil // another one holds it now
			}
			k.wait(ctx, m.reason, slog.String(logkey.Holder, s.holder()))
			wake = min(wake, due)
		}
		if m.err == nil {
			k.settled(aboutObject)
		}
		k.tell(ctx, cmp.Or(refused, trouble), m.err == nil)

		timer.Reset(wake)
		select {
		case <-ctx.Done():
		case <-k.sight.changed:
		case <-k.opts.Changed:
		case <-timer.C:
		}
	}
	return instant{}, false
}

// rights says what to grant.
const rights = "grant get, update, list and watch on this one Lease"

// tell complains about what the last call ended with, if nothing else is complained about.
func (k *Kubernetes) tell(ctx context.Context, trouble error, first bool) {
	if trouble == nil || errors.Is(trouble, errConflict) {
		k.settled(aboutServer)
		k.settled(aboutRights)
		return
	}
	switch {
	case !first:
	case apierrors.IsForbidden(trouble):
		k.complain(ctx, aboutRights, fmt.Errorf("Lease %s/%s may not be used: %w; %s", k.opts.Namespace, k.opts.Name, trouble, rights))
	default:
		k.complain(ctx, aboutServer, fmt.Errorf("the API server cannot be asked for the Lease: %w", trouble))
	}
}

// take tries to become the holder of the record that s shows.
func (k *Kubernetes) take(ctx context.Context, s sighting) (instant, error) {
	// The end of ctx does not cut the call short: its answer would be lost and the Lease perhaps ours.
	sent, err := k.record.hold(context.WithoutCancel(ctx), s.lease, true, 0)
	if err == nil && now().reached(sent.add(k.opts.RenewDeadline)) {
		err = ErrExpired // this process was stopped in between
	}
	return sent, err
}

// look reads the Lease while the watch is down.
func (k *Kubernetes) look(ctx context.Context) error {
	_, err := k.record.read(ctx, "")
	if errors.Is(err, ErrMissing) {
		return nil // the sighting says so
	}
	return err
}

// backoff is the pause after a failed call: short at first, because a call that hangs has taken its
// time already, and never longer than it takes until the next renewal.
func (k *Kubernetes) backoff(failures int, err error) time.Duration {
	interval := k.opts.renewEvery()
	if errors.Is(err, errConflict) && failures < 3 {
		return rand.N(interval/100 + 1) //nolint:gosec // spreads load, hides nothing
	}
	d := min(interval/20<<min(failures, 8), interval)
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads load, hides nothing
}

func (k *Kubernetes) noticeHolder(s sighting) {
	holder := k.holderNow(s)
	k.holderMu.Lock()
	changed := holder != k.holder
	k.holder = holder
	k.holderMu.Unlock()
	if changed {
		k.observe(HolderChanged{Holder: holder})
	}
}

// holderNow is who leads as far as this process knows: itself only while its lease is valid, another
// only while that one's time has not run out.
func (k *Kubernetes) holderNow(s sighting) string {
	if k.leading() != nil {
		return k.opts.Identity
	}
	holder := s.holder()
	if holder == k.opts.Identity || !time.Now().Before(s.runsOut(k.opts.Duration)) {
		return ""
	}
	return holder
}

// Status says what is known at this moment.
func (k *Kubernetes) Status() Status {
	s := k.sight.get()
	status := Status{
		Identity: k.opts.Identity,
		Lease:    k.opts.Name,
		Holder:   k.holderNow(s),
		Term:     s.term(),
		SeenAt:   s.seen,
		Waiting:  k.waitingFor(),
		LastTurn: k.lastTurn(),
	}
	if s.lease != nil {
		status.LeaseUID = string(s.lease.UID)
		status.AcquiredAt = value(s.lease.Spec.AcquireTime).Time
		status.RenewedAt = value(s.lease.Spec.RenewTime).Time
	}
	if lease := k.leading(); lease != nil {
		status.Leading, status.Waiting = true, ""
		status.Term = lease.Term()
	}
	return status
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
