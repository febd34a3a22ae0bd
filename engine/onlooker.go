package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// lookAgainAfter is how old what a node that does not lead knows of the jobs may be. However many
// ask, it reads the documents no more often.
const lookAgainAfter = time.Second

// onlooker is what a node that does not lead has read of the documents.
type onlooker struct {
	mu   sync.Mutex // held while it reads, so that those who ask together share one look
	at   time.Time  // monotonic; zero: never
	view *view
}

// Jobs returns the jobs of the cluster, ordered by name, whichever replica is asked: the leader tells
// what it knows, another one reads the documents, at most once a second. It is
// [run.CodeNoScheduler] before the first leader has taken note of the definitions.
func (e *Engine) Jobs(ctx context.Context) ([]JobStatus, error) {
	if s := e.Status(); s.Leading {
		return s.Jobs, nil
	}
	v, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	return v.jobs(e.wall()), nil
}

func (e *Engine) look(ctx context.Context) (*view, error) {
	o := &e.onlooker
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.at.IsZero() && time.Since(o.at) < lookAgainAfter {
		return o.view, nil
	}
	// The ledger before the history: what moves from one to the other meanwhile is in both.
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	if ledger.Term == 0 { // an empty list would look like an answer
		return nil, run.Errorf(run.CodeNoScheduler, "no leader has taken note of the jobs yet: ask again in a few seconds")
	}
	catalog, err := e.o.Catalog.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	history, err := e.o.History.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	next := &view{latest: latestOf(history), definitions: e.compiled(catalog)}
	next.setLedger(ledger)
	o.view, o.at = next, time.Now()
	return next, nil
}

// compiled computes a catalog, unless it is the one that was looked at before.
func (e *Engine) compiled(catalog *state.Catalog) *plan.Definitions {
	if before := e.onlooker.view; before != nil && before.definitions.Revision == catalog.Revision {
		return before.definitions
	}
	return plan.Compile(catalog)
}

// jobs describes the jobs by what the documents say alone.
func (v *view) jobs(now time.Time) []JobStatus {
	names := v.definitions.Names()
	jobs := make([]JobStatus, len(names))
	for i, name := range names {
		jobs[i] = v.job(name, now)
		jobs[i].Latest = jobs[i].Merge(state.Latest{LastStart: v.ledger.Sent(name, now)})
	}
	return jobs
}
