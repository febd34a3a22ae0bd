package election

import (
	"context"
	"errors"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasecron/leasecron/internal/kube"
)

// errConflict: someone wrote to the Lease first. What it is now has been read, if that worked.
var errConflict = errors.New("the Lease was changed in the meantime")

// record reads and writes the election record. Its calls are made one after the other.
type record struct {
	opts  *KubernetesOptions
	sight *sight
	// lost are writes without an answer, which may still show up in the record. They are told apart by
	// their renewTime, as no two writes of a process have the same.
	lost []write
}

// write is one write to the record.
type write struct {
	renewTime metav1.MicroTime
	sent      instant
	anew      bool // it began a term
}

// maxLost bounds how many lost writes are kept in mind; older ones have long been overtaken.
const maxLost = 8

// read looks at the record.
func (r *record) read(ctx context.Context, refused string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.CallTimeout)
	defer cancel()
	lease, err := r.opts.Client.GetLease(ctx, r.opts.Namespace, r.opts.Name)
	switch {
	case apierrors.IsNotFound(err):
		r.sight.see(nil, refused)
		return nil, ErrMissing
	case err != nil:
		return nil, err
	}
	r.sight.see(lease, refused)
	return lease, nil
}

// hold writes this process into the record that base is, with the fencing term if it is known, and
// returns the moment from which the Lease counts as held: when the write that is now stored was sent.
func (r *record) hold(ctx context.Context, base *coordinationv1.Lease, anew bool, term int64) (instant, error) {
	sent := now()
	next := base.DeepCopy()
	spec := &next.Spec
	if anew {
		if spec.HolderIdentity == nil || *spec.HolderIdentity != r.opts.Identity {
			spec.LeaseTransitions = new(value(spec.LeaseTransitions) + 1)
		}
		spec.HolderIdentity = new(r.opts.Identity)
		spec.AcquireTime = new(metav1.NewMicroTime(sent.wall))
	}
	spec.LeaseDurationSeconds = new(int32(r.opts.Duration / time.Second)) //nolint:gosec // at most an hour
	spec.RenewTime = new(metav1.NewMicroTime(sent.wall))
	term = max(term, r.sight.greatestTerm()) // the object may be a new one, which knows of none
	if known := (sighting{lease: base}).term(); term > known {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, TermAnnotation, strconv.FormatInt(term, 10))
	}
	return r.put(ctx, next, write{renewTime: *spec.RenewTime, sent: sent, anew: anew})
}

// free writes into the record that base is that nobody holds it.
func (r *record) free(ctx context.Context, base *coordinationv1.Lease) error {
	sent := now()
	next := base.DeepCopy()
	next.Spec.HolderIdentity = new("")
	next.Spec.LeaseDurationSeconds = new(int32(1)) // the API server refuses 0
	next.Spec.RenewTime = new(metav1.NewMicroTime(sent.wall))
	_, err := r.put(ctx, next, write{renewTime: *next.Spec.RenewTime, sent: sent})
	return err
}

func (r *record) put(ctx context.Context, next *coordinationv1.Lease, w write) (instant, error) {
	callCtx, cancel := context.WithTimeout(ctx, r.opts.CallTimeout)
	defer cancel()
	stored, err := r.opts.Client.UpdateLease(callCtx, next)
	switch {
	case err == nil:
		r.lost = nil // settled: none of them can land after this one
		r.sight.see(stored, "")
		return w.sent, nil
	case apierrors.IsNotFound(err):
		r.sight.see(nil, "")
		return instant{}, ErrMissing
	case apierrors.IsConflict(err):
		return r.settle(ctx, next.ResourceVersion, w.anew)
	case kube.Unknown(err):
		r.lost = append(r.lost, w)
		if len(r.lost) > maxLost {
			r.lost = r.lost[1:]
		}
		// If it shows, it counts. If it does not, it may still come: then err stands.
		if sent, unsettled := r.settle(ctx, "", w.anew); unsettled == nil {
			return sent, nil
		}
	}
	return instant{}, err
}

// settle reads the record after a write was refused as outdated, or had no answer. If what is stored
// is an own write whose answer was lost, the record is held from when that was sent. A new term is begun only by a
// write that meant to: a renewal of a lost term, however late it is stored, does not bring it back.
func (r *record) settle(ctx context.Context, refused string, anew bool) (instant, error) {
	stored, err := r.read(ctx, refused)
	if err != nil {
		return instant{}, err
	}
	if !r.own(stored) || stored.Spec.RenewTime == nil {
		return instant{}, errConflict
	}
	for _, w := range r.lost {
		if equalMicro(w.renewTime, *stored.Spec.RenewTime) && (w.anew || !anew) {
			r.lost = nil
			return w.sent, nil
		}
	}
	return instant{}, errConflict
}

func (r *record) own(lease *coordinationv1.Lease) bool {
	return lease != nil && value(lease.Spec.HolderIdentity) == r.opts.Identity
}

// equalMicro compares as the API server stores: in microseconds.
func equalMicro(a, b metav1.MicroTime) bool { return a.UnixMicro() == b.UnixMicro() }

func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
