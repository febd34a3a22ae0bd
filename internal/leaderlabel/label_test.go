package leaderlabel_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/internal/leaderlabel"
)

const (
	on  = `{"metadata":{"labels":{"leasecron.io/leader":"true"},"uid":"u1"}}`
	off = `{"metadata":{"labels":{"leasecron.io/leader":null},"uid":"u1"}}`
)

// fakePods keeps the patches, and refuses them while err is set.
type fakePods struct {
	mu      sync.Mutex
	patches []string
	err     error
	hang    bool
}

func (f *fakePods) PatchPod(ctx context.Context, namespace, name string, patch []byte) error {
	f.mu.Lock()
	err, hang := f.err, f.hang
	f.patches = append(f.patches, namespace+"/"+name+" "+string(patch))
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}

func (f *fakePods) set(err error, hang bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.hang = err, hang
}

// take returns what was written since the last call.
func (f *fakePods) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.patches
	f.patches = nil
	for i := range out {
		out[i] = strings.TrimPrefix(out[i], "shop/shop-0 ")
	}
	return slices.Clip(out)
}

// bubble runs a label in fake time until the test's part is over.
func bubble(t *testing.T, play func(pods *fakePods, label *leaderlabel.Label, log *strings.Builder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pods, log := &fakePods{}, &strings.Builder{}
		label, err := leaderlabel.New(leaderlabel.Options{
			Pods: pods, Namespace: "shop", Name: "shop-0", UID: "u1", Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- label.Run(ctx) }()
		synctest.Wait()
		if diff := cmp.Diff([]string{off}, pods.take()); diff != "" {
			t.Errorf("what an earlier process left at the start (-want +got):\n%s", diff)
		}
		play(pods, label, log)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run() = %v", err)
		}
	})
}

func wrote(t *testing.T, pods *fakePods, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, pods.take()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestLabelFollowsTheLeadership(t *testing.T) {
	bubble(t, func(pods *fakePods, label *leaderlabel.Label, _ *strings.Builder) {
		label.Set(true)
		wrote(t, pods, "gained", on)
		label.Set(true)
		time.Sleep(time.Hour)
		wrote(t, pods, "an hour of steady state")
		label.Set(false)
		wrote(t, pods, "lost", off)
		label.Set(true)
		wrote(t, pods, "gained again", on)
	})
}

func TestLabelIsTakenOffAtTheEnd(t *testing.T) {
	for name, leading := range map[string]bool{"a leader": true, "a follower": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := &fakePods{}
				label, err := leaderlabel.New(leaderlabel.Options{Pods: pods, Namespace: "shop", Name: "shop-0", UID: "u1"})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = label.Run(ctx) }()
				synctest.Wait()
				label.Set(leading)
				synctest.Wait()
				pods.take()
				stop()
				<-done
				want := []string(nil)
				if leading {
					want = []string{off}
				}
				if diff := cmp.Diff(want, pods.take()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestLabelIsTriedAgain(t *testing.T) {
	bubble(t, func(pods *fakePods, label *leaderlabel.Label, log *strings.Builder) {
		pods.set(errors.New("pods \"shop-0\" is forbidden"), false)
		label.Set(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		tries := pods.take()
		if len(tries) < 10 || len(tries) > 40 || slices.Contains(tries, off) {
			t.Errorf("%d tries in an hour, want growing pauses of at most 5 min", len(tries))
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings, want one\n%s", n, log)
		}
		pods.set(nil, false)
		time.Sleep(5 * time.Minute)
		wrote(t, pods, "when it works again", on)
	})
}

// Nobody knows whether a write without an answer is stored.
func TestAWriteWithoutAnswerIsMadeUpFor(t *testing.T) {
	bubble(t, func(pods *fakePods, label *leaderlabel.Label, _ *strings.Builder) {
		pods.set(nil, true)
		label.Set(true)
		wrote(t, pods, "a write that hangs", on)
		label.Set(false)
		time.Sleep(4 * time.Second)
		pods.set(nil, false)
		time.Sleep(10 * time.Second)
		wrote(t, pods, "the leadership was lost meanwhile", off)
	})
}

// At the end an API server that is away does not hold the process up.
func TestTheEndIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := &fakePods{hang: true}
		label, err := leaderlabel.New(leaderlabel.Options{Pods: pods, Namespace: "shop", Name: "shop-0"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = label.Run(ctx) }()
		synctest.Wait()
		began := time.Now()
		stop()
		<-done
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the end took %s", took)
		}
	})
}

func TestNewWantsToKnowThePod(t *testing.T) {
	if _, err := leaderlabel.New(leaderlabel.Options{Pods: &fakePods{}, Namespace: "shop"}); err == nil {
		t.Error("no error without the Pod's name")
	}
}
