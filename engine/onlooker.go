package engine

import (
	"context"
	"fmt"
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
	// reading holds a token while somebody reads, so that those who ask together share one look.
	reading chan struct{}
	// Of whoever has put the token there:
	at   time.Time // when it was last looked, monotonic; zero: never
	err  error     // what came of that, instead of a view
	view *view     // the last good one
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
	return v.jobs(e.wall(), e.unsent()), nil
}

func (e *Engine) look(ctx context.Context) (*view, error) {
	o := &e.onlooker
	select {
	case o.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("read the jobs: %w", context.Cause(ctx))
	}
	defer func() { <-o.reading }()
	if o.at.IsZero() || time.Since(o.at) >= lookAgainAfter {
		next, err := e.readView(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, err // that one did not wait for the answer says nothing to the others
		}
		// A failure is shared too: in an outage each of those who wait would wait for one of its own.
		o.at, o.err = time.Now(), err
		if err == nil {
			o.view = next
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return o.view, nil
}

// readView reads the documents. The caller has the onlooker's token.
func (e *Engine) readView(ctx context.Context) (*view, error) {
	// The ledger before the history: what moves from one to the other meanwhile is in both.
	ledger, err := e.o.Ledger.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	if ledger.Term == 0 { // an empty list would look like an answer
		return nil, run.Errorf(run.CodeNoScheduler, "no leader has taken note of the jobs yet: ask again when one has")
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
	return next, nil
}

// compiled computes a catalog, unless it is the one that was looked at before.
func (e *Engine) compiled(catalog *state.Catalog) *plan.Definitions {
	if before := e.onlooker.view; before != nil && before.definitions.Revision == catalog.Revision {
		return before.definitions
	}
	return plan.Compile(catalog)
}

// jobs describes the jobs by what the documents say, and by which runs this node has surely not sent.
func (v *view) jobs(now time.Time, unsent map[string]bool) []JobStatus {
	names := v.definitions.Names()
	jobs := make([]JobStatus, len(names))
	for i, name := range names {
		jobs[i] = v.job(name, now)
		jobs[i].Latest = jobs[i].Merge(state.Latest{LastStart: v.ledger.Sent(name, now, unsent)})
	}
	return jobs
}
