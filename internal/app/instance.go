package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// newInstanceEngine is the engine of the jobs that every replica runs for itself. It is a second
// engine on documents of its own, in memory: it needs neither Lease nor API server, and what it
// knows ends with the process.
func newInstanceEngine(o engine.Options) (*engine.Engine, error) {
	store := ledger.NewMemory()
	o.Instance, o.Exclusive, o.TermFloor = true, true, 0
	o.Ledger = ledger.NewPort[state.Ledger](store, ledger.NameLedger)
	o.Catalog = ledger.NewPort[state.Catalog](store, ledger.NameCatalog)
	o.History = ledger.NewPort[state.History](store, ledger.NameHistory)
	return engine.New(o)
}

// engines are the cluster's engine and the instance's own, shown to API and metrics as one.
type engines struct {
	cluster, instance *engine.Engine
	waiting           func() string // why nobody leads, as /readyz?verbose says it; empty: somebody does. May be nil
}

// explained adds why there is no leader to an error that says that none has done something.
func (e engines) explained(err error) error {
	coded, ok := errors.AsType[*run.Error](err)
	if !ok || coded.Code != run.CodeNoScheduler || e.waiting == nil {
		return err
	}
	if why := e.waiting(); why != "" {
		return run.Errorf(run.CodeNoScheduler, "%s (nobody leads: %s)", coded.Detail, why)
	}
	return err
}

// define gives each engine the jobs of its scope.
func (e engines) define(jobs []config.Job) {
	var cluster, instance []config.Job
	for _, j := range jobs {
		if j.Scope == config.ScopeInstance {
			instance = append(instance, j)
		} else {
			cluster = append(cluster, j)
		}
	}
	e.cluster.Define(cluster)
	e.instance.Define(instance)
}

// drain finishes the runs of both within the same time.
func (e engines) drain(ctx context.Context) error {
	var both errgroup.Group
	both.Go(func() error { return e.cluster.Drain(ctx) })
	both.Go(func() error { return e.instance.Drain(ctx) })
	return both.Wait()
}

// Status is the cluster's with the jobs and the runs of this instance added.
func (e engines) Status() engine.Status {
	s, own := e.cluster.Status(), e.instance.Status()
	s.Jobs = byName(append(s.Jobs, own.Jobs...))
	s.InFlight += own.InFlight
	s.Held += own.Held
	s.Abandoned += own.Abandoned
	return s
}

// Jobs are the cluster's and those of this instance.
func (e engines) Jobs(ctx context.Context) ([]engine.JobStatus, error) {
	jobs, err := e.cluster.Jobs(ctx)
	if err != nil {
		return nil, e.explained(err)
	}
	own, err := e.instance.Jobs(ctx)
	if _, waits := errors.AsType[*run.Error](err); err != nil && !waits { // for the app, and has none yet
		return nil, err
	}
	return byName(append(jobs, own...)), nil
}

func byName(jobs []engine.JobStatus) []engine.JobStatus {
	slices.SortFunc(jobs, func(a, b engine.JobStatus) int { return strings.Compare(a.Job.Name, b.Job.Name) })
	return jobs
}

// Enqueue asks the engine that has the job.
func (e engines) Enqueue(ctx context.Context, job string, data json.RawMessage) (run.Run, error) {
	r, err := e.instance.Enqueue(ctx, job, data)
	if errors.Is(err, engine.ErrJobNotFound) {
		r, err = e.cluster.Enqueue(ctx, job, data)
		return r, e.explained(err)
	}
	return r, err
}

// Pause asks the engine that has the job; pausing everything concerns both.
func (e engines) Pause(ctx context.Context, key run.Key, reason string, until time.Time) ([]run.Run, error) {
	if key.Job != "" {
		runs, err := e.instance.Pause(ctx, key, reason, until)
		if errors.Is(err, engine.ErrJobNotFound) {
			runs, err = e.cluster.Pause(ctx, key, reason, until)
			return runs, e.explained(err)
		}
		return runs, err
	}
	var runs, own []run.Run
	err := e.both(func(of *engine.Engine) (err error) {
		if of == e.instance {
			own, err = of.Pause(ctx, key, reason, until)
		} else {
			runs, err = of.Pause(ctx, key, reason, until)
		}
		return err
	})
	return append(runs, own...), err
}

// Resume asks the engine that has the job; resuming everything concerns both.
func (e engines) Resume(ctx context.Context, key run.Key, skip bool) ([]plan.Hold, error) {
	if key.Job == "" {
		return nil, e.both(func(of *engine.Engine) error {
			_, err := of.Resume(ctx, key, skip)
			return err
		})
	}
	holds, err := e.instance.Resume(ctx, key, skip)
	if errors.Is(err, engine.ErrJobNotFound) {
		holds, err = e.cluster.Resume(ctx, key, skip)
		return holds, e.explained(err)
	}
	return holds, err
}

// Everything is the cluster's pause of all jobs: the instance's own says no more.
func (e engines) Everything(ctx context.Context) (*plan.Hold, error) {
	return e.cluster.Everything(ctx)
}

// Resolve asks the cluster first: few jobs are the instance's own.
func (e engines) Resolve(ctx context.Context, id string, as run.State, note string) (run.Run, error) {
	r, err := e.cluster.Resolve(ctx, id, as, note)
	if coded, ok := errors.AsType[*run.Error](err); ok && coded.Code == run.CodeRunNotFound {
		return e.instance.Resolve(ctx, id, as, note)
	}
	return r, err
}

// Complete asks the instance's own engine first, which needs nobody to answer.
func (e engines) Complete(ctx context.Context, id string, result engine.Result) (run.Run, error) {
	r, err := e.instance.Complete(ctx, id, result)
	if coded, ok := errors.AsType[*run.Error](err); ok && coded.Code == run.CodeRunNotFound {
		return e.cluster.Complete(ctx, id, result)
	}
	return r, err
}

// Heartbeat asks as Complete does.
func (e engines) Heartbeat(ctx context.Context, id string, percent *int, text string) (engine.Alive, error) {
	alive, err := e.instance.Heartbeat(ctx, id, percent, text)
	if coded, ok := errors.AsType[*run.Error](err); ok && coded.Code == run.CodeRunNotFound {
		return e.cluster.Heartbeat(ctx, id, percent, text)
	}
	return alive, err
}

// both does the same with each engine at once, so that one without a leader does not hold up the
// other. What went wrong with the cluster's is told first.
func (e engines) both(do func(*engine.Engine) error) error {
	var group errgroup.Group
	var own error
	group.Go(func() error { return do(e.cluster) })
	group.Go(func() error { own = do(e.instance); return nil })
	return cmp.Or(group.Wait(), own)
}

// Runs lists the runs of the cluster and of this instance.
func (e engines) Runs(ctx context.Context, job string, limit int) ([]run.Run, error) {
	own, err := e.instance.Runs(ctx, job, limit)
	if err != nil {
		return nil, err
	}
	runs, err := e.cluster.Runs(ctx, job, limit)
	if err != nil {
		return nil, err
	}
	runs = append(runs, own...)
	slices.SortFunc(runs, state.NewestFirst)
	return runs[:min(limit, len(runs))], nil
}

// jobSets makes one set of jobs of what two engines have in force, for an observer that knows one.
type jobSets struct {
	mu   sync.Mutex
	sets [2][]config.Job
	next engine.Observer
}

// observer returns what the engine with that index is to be observed by. Only the first one's
// terms are of interest: an instance's own jobs know no leader.
func (j *jobSets) observer(index int) engine.Observer { return jobSetObserver{j, index} }

type jobSetObserver struct {
	sets  *jobSets
	index int
}

// Observe implements [engine.Observer].
func (o jobSetObserver) Observe(e engine.Event) {
	switch e := e.(type) {
	case engine.JobsChanged:
		o.sets.mu.Lock()
		o.sets.sets[o.index] = e.Jobs
		all := slices.Concat(o.sets.sets[0], o.sets.sets[1])
		o.sets.mu.Unlock()
		o.sets.next.Observe(engine.JobsChanged{Jobs: all})
	case engine.TermBegan, engine.TermEnded, engine.Committed:
		if o.index == 0 {
			o.sets.next.Observe(e)
		}
	default:
		o.sets.next.Observe(e)
	}
}
