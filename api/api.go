package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
)

// Engine is what the API needs of the engine, which [engine.Engine] has. An error that is neither
// one of the engine's own nor a [run.Error] counts as one of the ledger.
type Engine interface {
	// Status is what the engine knows now. It does not block.
	Status() engine.Status
	// Jobs are those of the cluster, ordered by name, whichever replica is asked.
	Jobs(ctx context.Context) ([]engine.JobStatus, error)
	// Enqueue writes down a manual run of a job and does not wait for it. Data is a JSON
	// object laid over the job's own, or nil.
	Enqueue(ctx context.Context, job string, data json.RawMessage) (run.Run, error)
	// Pause keeps a trigger, a job (key.Trigger empty) or everything (key zero) from firing until
	// that time, or until it is resumed if that is zero. It returns the runs that were decided before
	// and will still run, once a leader acts by it, or [engine.ErrNoLeader].
	Pause(ctx context.Context, key run.Key, reason string, until time.Time) ([]run.Run, error)
	// Resume takes a pause back; with skip the instants of the pause are passed over. It returns the
	// pauses that still hold what was resumed.
	Resume(ctx context.Context, key run.Key, skip bool) ([]plan.Hold, error)
	// Everything is the pause of all jobs, nil where there is none, whichever replica is asked.
	Everything(ctx context.Context) (*plan.Hold, error)
	// Resolve ends a run that needs review as a person says that it ended.
	Resolve(ctx context.Context, id string, as run.State, note string) (run.Run, error)
	// Complete takes the app's word on how an asynchronous run ended, and returns the run once that is
	// in the ledger.
	Complete(ctx context.Context, id string, result engine.Result) (run.Run, error)
	// Heartbeat notes that the app works on a run; percent nil and an empty text say nothing new.
	Heartbeat(ctx context.Context, id string, percent *int, text string) (engine.Alive, error)
	// Runs returns recent runs, newest scheduled instant first, at most limit; of one job where
	// job is not empty.
	Runs(ctx context.Context, job string, limit int) ([]run.Run, error)
}

// Leadership is what the API needs of the election.
type Leadership interface {
	// Leader is what the election knows now. It does not block.
	Leader() Leader
}

// LeadershipFunc is a function that is a [Leadership].
type LeadershipFunc func() Leader

// Leader implements [Leadership].
func (f LeadershipFunc) Leader() Leader { return f() }

// Leader says who leads, as GET /leader answers it.
type Leader struct {
	// Name is the identity of the leader; empty while none is known. Clients of the old
	// leader-elector sidecars read this field.
	Name       string    `json:"name" doc:"The leader's identity; empty while none is known."`
	Self       string    `json:"self" doc:"The identity of the sidecar that answers."`
	IsLeader   bool      `json:"isLeader" doc:"Whether the sidecar that answers leads."`
	Term       int64     `json:"term" doc:"The number of the leadership, 0 while it is not known; it only grows."`
	Lease      string    `json:"lease" doc:"The name of the Lease; empty without an election."`
	AcquiredAt time.Time `json:"acquiredAt,omitzero" doc:"When the leader took over, by its clock."`
	RenewedAt  time.Time `json:"renewedAt,omitzero" doc:"When the leader last renewed, as last seen; by its clock."`
	// SeenAt and AgeSeconds say how old all of this is: a follower that is cut off knows only the past.
	SeenAt     time.Time `json:"seenAt,omitzero" doc:"When all of this was last confirmed, by this sidecar's clock; absent while nothing is known."`
	AgeSeconds *float64  `json:"ageSeconds,omitempty" doc:"How long ago that was, in seconds, by the monotonic clock."`
	Draining   bool      `json:"draining,omitempty" doc:"The sidecar that answers is drained, or on its way out: it does not lead again."`
}

// Check is one line of a probe.
type Check struct {
	Name string // lower case, with dashes
	// Informational checks tell what is wrong, but do not fail the probe.
	Informational bool
	// Probe says how things are. It answers from memory, at once.
	Probe func() (detail string, err error)
}

// Options says what a [Server] serves, and where.
type Options struct {
	// Address is that of the pod network, as in LEASECRON_LISTEN; empty: not served.
	Address string
	// APIAddress is that of the API, as in LEASECRON_API_LISTEN: a loopback address; empty:
	// not served.
	APIAddress string

	Namespace, App string // whose jobs these are
	Version        string // of the program
	Commit         string // of its source
	ZoneData       string // version of the time zone data
	DefaultTarget  string // base URL of jobs that name none

	Engine     Engine
	Leadership Leadership
	Drain      Drainer             // nil: there is no /drain
	Leases     Leases              // nil: not served
	Live       []Check             // the loops make progress
	Ready      []Check             // the process can do its work, whoever leads
	Metrics    prometheus.Gatherer // nil: no /metrics
	Logger     *slog.Logger        // nil: none
}
