package electionbench_test

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// rival is a candidate of client-go's elector, as its documentation shows it: released on cancel, and
// run again after a term, which it does not do by itself.
type rival struct {
	name   string
	cancel context.CancelFunc
	began  chan time.Time // when it was told that it leads
	told   chan time.Time // when it was told that it does not any more: its context ended
	done   chan struct{}
}

// startRival starts one. It ends with the test.
func startRival(t *testing.T, cfg *rest.Config, namespace, lease, name string, s size) *rival {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &rival{name: name, cancel: cancel, began: make(chan time.Time, 64), told: make(chan time.Time, 64), done: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: s.lease, RenewDeadline: s.deadline, RetryPeriod: s.retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				r.began <- time.Now()
				<-ctx.Done()
				r.told <- time.Now()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *rival) stop() {
	r.cancel()
	<-r.done
}

// firstRival waits until one of them leads, and says when it began.
func firstRival(t *testing.T, within time.Duration, all ...*rival) (*rival, time.Time) {
	t.Helper()
	type start struct {
		r  *rival
		at time.Time
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	won := make(chan start, len(all))
	var group sync.WaitGroup
	for _, r := range all {
		group.Go(func() {
			select {
			case at := <-r.began:
				won <- start{r, at}
			case <-ctx.Done():
			}
		})
	}
	defer group.Wait()
	defer cancel()
	select {
	case s := <-won:
		return s.r, s.at
	case <-ctx.Done():
		t.Fatalf("none of client-go's candidates led within %s", within)
		return nil, time.Time{}
	}
}
