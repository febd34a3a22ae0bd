package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// maxDataBytes is the most data that a manual run may bring; what it makes after merging is
// checked by the engine.
const maxDataBytes = 256 << 10

// Job is a job as the API shows it, without headers and data: they may hold what is nobody
// else's business, and make lists large.
type Job struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	State       string    `json:"state" enum:"Waiting,Paused,Acquired,Blocked,Complete,Error" doc:"Acquired: a run has not ended. Blocked: one has not ended and the next is due. Complete: it will not be due again."`
	Paused      bool      `json:"paused" doc:"A pause keeps all of it from firing: one of the whole job, or one of each trigger that may still be due."`
	PausedBy    []Hold    `json:"pausedBy,omitempty" doc:"What pauses the job or some of its triggers; absent: nothing."`
	Next        time.Time `json:"next,omitzero" doc:"The next instant, always in the future; absent: none."`
	DueSince    time.Time `json:"dueSince,omitzero" doc:"The oldest instant that is due and not decided yet."`
	LastStart   time.Time `json:"lastStart,omitzero"`
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	LastFailure time.Time `json:"lastFailure,omitzero" doc:"When a run last failed or was lost and no further attempt followed."`
	FirstSeen   time.Time `json:"firstSeen,omitzero"`
	InFlight    int       `json:"inFlight" doc:"Runs that have not ended."`
	Error       string    `json:"error,omitempty" doc:"Why the job cannot run."`
	Target      string    `json:"target" doc:"Base URL of the app, the sidecar's default where the job names none."`
	Path        string    `json:"path"`
	Method      string    `json:"method"`
	Timeout     string    `json:"timeout" example:"30s"`
	Async       bool      `json:"async,omitempty" doc:"The app may answer 202 and say later how a run ended."`
	Heartbeat   string    `json:"heartbeatTimeout,omitempty" example:"2m0s" doc:"How long it may be silent until then; absent: as long as it likes."`
	Overlap     string    `json:"overlap"`
	Recovery    string    `json:"recovery"`
	Scope       string    `json:"scope"`
	MaxRetries  int       `json:"maxRetries"`
	Triggers    []Trigger `json:"triggers"`
}

// Trigger is a trigger as the API shows it.
type Trigger struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Schedule    string    `json:"schedule" example:"cron 0 0 9 * * MON-FRI tz=Asia/Shanghai"`
	Priority    int       `json:"priority"`
	Paused      bool      `json:"paused"`
	PausedBy    []Hold    `json:"pausedBy,omitempty" doc:"What pauses it, by itself or with its job; absent: nothing."`
	Misfire     string    `json:"misfire" enum:"run-once,skip,catch-up"`
	Next        time.Time `json:"next,omitzero" doc:"As of the job."`
	DueSince    time.Time `json:"dueSince,omitzero" doc:"As of the job."`
}

// JobPath is what the routes of one job have in common. The framework fills an embedded struct
// only where its type is exported.
type JobPath struct {
	Job string `path:"job" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"The job's name."`
}

// JobList is the answer to a request for jobs.
type JobList struct {
	Jobs []Job `json:"jobs" doc:"Ordered by name."`
}

func (s *Server) registerJobs(api huma.API) {
	type list struct{ Body JobList }
	huma.Register(api, operation("listJobs", http.MethodGet, "/v1/jobs", "The jobs in force",
		http.StatusServiceUnavailable),
		func(ctx context.Context, _ *struct{}) (*list, error) {
			jobs, err := s.jobs(ctx)
			if err != nil {
				return nil, s.fail(ctx, err)
			}
			out := new(list)
			out.Body.Jobs = make([]Job, len(jobs))
			for i := range jobs {
				out.Body.Jobs[i] = s.jobOf(&jobs[i])
			}
			return out, nil
		})

	type one struct{ Body Job }
	huma.Register(api, operation("getJob", http.MethodGet, "/v1/jobs/{job}", "One job",
		http.StatusNotFound, http.StatusServiceUnavailable),
		func(ctx context.Context, in *JobPath) (*one, error) {
			jobs, err := s.jobs(ctx)
			if err != nil {
				return nil, s.fail(ctx, err)
			}
			for i := range jobs {
				if jobs[i].Job.Name == in.Job {
					return &one{Body: s.jobOf(&jobs[i])}, nil
				}
			}
			return nil, s.fail(ctx, run.Errorf(run.CodeJobNotFound, "there is no job %q", in.Job))
		})

	s.registerEnqueue(api)
}

func (s *Server) jobs(ctx context.Context) ([]engine.JobStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	jobs, err := s.opts.Engine.Jobs(ctx)
	if err != nil {
		return nil, ofEngine(err, "ask again, or the leader")
	}
	return jobs, nil
}

func (s *Server) jobOf(j *engine.JobStatus) Job {
	out := Job{
		Name: j.Job.Name, Description: j.Job.Description, State: jobState(j), Paused: j.Paused, PausedBy: holdsOf(j.PausedBy),
		Next: j.Next.UTC(), DueSince: j.DueSince.UTC(), LastStart: j.LastStart.UTC(), LastSuccess: j.LastSuccess.UTC(), LastFailure: j.LastFailure.UTC(), FirstSeen: j.FirstSeen.UTC(),
		InFlight: j.InFlight, Error: j.Error,
		Target: cmp.Or(j.Job.Target, s.opts.DefaultTarget), Path: j.Job.Path, Method: j.Job.Method, Timeout: j.Job.Timeout.String(),
		Overlap: string(j.Job.Overlap), Recovery: string(j.Job.Recovery), Scope: string(j.Job.Scope),
		MaxRetries: j.Job.Retry.MaxRetries, Async: j.Job.Async,
		Triggers: make([]Trigger, len(j.Job.Triggers)),
	}
	if j.Job.HeartbeatTimeout > 0 {
		out.Heartbeat = j.Job.HeartbeatTimeout.String()
	}
	for i, t := range j.Job.Triggers {
		out.Triggers[i] = Trigger{
			Name: t.Name, Description: t.Description, Schedule: t.Schedule.String(), Priority: t.Priority,
			Misfire: string(t.Misfire.Policy), PausedBy: holdsOf(j.Holds(t.Name)),
		}
		out.Triggers[i].Paused = len(out.Triggers[i].PausedBy) > 0
		for _, known := range j.Triggers {
			if known.Name == t.Name {
				out.Triggers[i].Next, out.Triggers[i].DueSince = known.Next.UTC(), known.DueSince.UTC()
			}
		}
	}
	return out
}

func jobState(j *engine.JobStatus) string {
	switch {
	case j.Error != "":
		return "Error"
	case j.Paused:
		return "Paused"
	case j.InFlight > 0 && !j.DueSince.IsZero():
		return "Blocked"
	case j.InFlight > 0:
		return "Acquired"
	case len(j.Job.Triggers) > 0 && j.Next.IsZero() && j.DueSince.IsZero():
		return "Complete"
	default:
		return "Waiting"
	}
}

// object is a JSON object whose bytes are kept as they came, numbers digit for digit.
type object json.RawMessage

// Schema implements [huma.SchemaProvider].
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// UnmarshalJSON keeps a copy.
func (o *object) UnmarshalJSON(b []byte) error {
	*o = append((*o)[:0], b...)
	return nil
}

// EnqueueRequest is the body of a request for a manual run.
type EnqueueRequest struct {
	Data object `json:"data,omitempty" doc:"Laid over the job's data, key by key; at most 256 KiB."`
}

func (s *Server) registerEnqueue(api huma.API) {
	type input struct {
		JobPath
		Body *EnqueueRequest `required:"false"`
	}
	type output struct{ Body Run }
	op := operation("enqueueJob", http.MethodPost, "/v1/jobs/{job}/enqueue", "Run a job once, without waiting for it",
		http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.DefaultStatus = http.StatusAccepted
	op.Description = "Answers as soon as the run is in the ledger. A 503 after the request was written may mean that the run exists."
	huma.Register(api, op, func(ctx context.Context, in *input) (*output, error) {
		var data json.RawMessage
		if in.Body != nil {
			data = json.RawMessage(in.Body.Data)
		}
		if len(data) > maxDataBytes {
			return nil, s.fail(ctx, tooLarge("data", maxDataBytes))
		}
		ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		r, err := s.opts.Engine.Enqueue(ctx, in.Job, data)
		if err != nil {
			return nil, s.fail(ctx, ofEngine(err, "it may exist all the same, as GET /v1/runs will tell"))
		}
		return &output{Body: runOf(&r)}, nil
	})
}
