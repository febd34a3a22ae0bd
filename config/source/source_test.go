package source_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config/source"
)

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// seen keeps what a source published, for a test to wait for.
type seen struct {
	mu      sync.Mutex
	updates []source.Update
	changed chan struct{}
	ended   chan error
}

// follow runs a source until the test ends, and then sees that it stops.
func follow(t *testing.T, s source.Source) *seen {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &seen{changed: make(chan struct{}), ended: make(chan error, 1)}
	go func() { w.ended <- s.Run(ctx, w.publish) }()
	t.Cleanup(func() {
		stop := errors.New("the test has ended")
		cancel(stop)
		select {
		case err := <-w.ended:
			if !errors.Is(err, stop) {
				t.Errorf("Run() = %v, want the cause of the end", err)
			}
		case <-time.After(patience):
			t.Errorf("Run goes on %v after its context has ended", patience)
		}
	})
	return w
}

func (w *seen) publish(u source.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updates = append(w.updates, u)
	close(w.changed)
	w.changed = make(chan struct{})
}

// next waits for the update with the number n, from 1.
func (w *seen) next(t *testing.T, n int) source.Update {
	t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		updates, changed := w.updates, w.changed
		w.mu.Unlock()
		if len(updates) >= n {
			return updates[n-1]
		}
		select {
		case <-changed:
		case err := <-w.ended:
			w.ended <- err
			t.Fatalf("Run ended with %v after %d updates, want %d", err, len(updates), n)
		case <-deadline:
			t.Fatalf("%d updates within %v, want %d: %v", len(updates), patience, n, updates)
		}
	}
}

func (w *seen) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.updates)
}

// document has one job of the given name.
func document(job string) string {
	return fmt.Sprintf("jobs: [{name: %s, path: /x, schedule: rate 5s}]\n", job)
}

// names lists the jobs of an update, or says why there are none.
func names(u source.Update) string {
	if u.Err != nil {
		return "error: " + u.Err.Error()
	}
	var all []string
	for _, job := range u.Document.Jobs {
		all = append(all, job.Name)
	}
	return strings.Join(all, " ")
}

func wantNames(t *testing.T, u source.Update, want string) {
	t.Helper()
	if got := names(u); got != want {
		t.Fatalf("the source published %q, want %q", got, want)
	}
}
