package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// sayAgain is what to do when the ledger did not answer an app that has ended a run.
const sayAgain = "it may have been recorded all the same; say it again, until the answer is another one"

// CompleteRequest is the body of a request to complete a run.
type CompleteRequest struct {
	Message string `json:"message,omitempty" doc:"The run's message. 1 KiB of it is kept."`
}

// FailRequest is the body of a request to fail a run.
type FailRequest struct {
	Message    string `json:"message,omitempty" doc:"What went wrong. 1 KiB of it is kept."`
	Code       string `json:"code,omitempty" pattern:"^[A-Za-z0-9._-]{1,64}$" doc:"The app's own code; the run shows it as appCode."`
	Retryable  *bool  `json:"retryable,omitempty" doc:"Whether the job's retry applies. Default true."`
	RetryAfter int    `json:"retryAfter,omitempty" minimum:"0" maximum:"2592000" doc:"Seconds; a retry comes no sooner."`
}

// HeartbeatRequest is the body of a heartbeat.
type HeartbeatRequest struct {
	Progress *int   `json:"progress,omitempty" minimum:"0" maximum:"100" doc:"How much is done, in percent; absent: as before."`
	Message  string `json:"message,omitempty" doc:"What is being done, 256 bytes of it; absent: as before."`
}

// Heartbeat is the answer to a heartbeat: go on.
type Heartbeat struct {
	State      string    `json:"state" enum:"Running"`
	TimeoutAt  time.Time `json:"timeoutAt" doc:"When the job's timeout ends the run."`
	NextBefore time.Time `json:"nextBefore,omitzero" doc:"When the app's silence ends the run; absent: it may be silent."`
}

// Progress is what an app says of a run while it works on it.
type Progress struct {
	Percent *int      `json:"percent,omitempty" doc:"Absent: the app never said."`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at" doc:"When the app last said anything, as far as this sidecar knows."`
}

func progressOf(p *run.Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{Percent: p.Percent, Message: p.Text, At: p.At.UTC()}
}

// RunPath is what the routes of one run have in common.
type RunPath struct {
	ID string `path:"id" pattern:"^[0-9A-Za-z._-]{1,64}$" doc:"The run's ID."`
}

// registerAsync registers what the app says of the runs that it has accepted with 202.
func (s *Server) registerAsync(api huma.API) {
	type runOutput struct{ Body Run }
	end := func(ctx context.Context, id string, result engine.Result) (*runOutput, error) {
		ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		r, err := s.opts.Engine.Complete(ctx, id, result)
		if err != nil {
			return nil, s.fail(ctx, ofEngine(err, sayAgain))
		}
		return &runOutput{Body: runOf(&r)}, nil
	}

	type complete struct {
		RunPath
		Body *CompleteRequest `required:"false"`
	}
	huma.Register(api, asyncOperation("completeRun", "complete", "Say that an asynchronous run is done"),
		func(ctx context.Context, in *complete) (*runOutput, error) {
			var result engine.Result
			if in.Body != nil {
				result.Message = in.Body.Message
			}
			return end(ctx, in.ID, result)
		})

	type fail struct {
		RunPath
		Body *FailRequest `required:"false"`
	}
	huma.Register(api, asyncOperation("failRun", "fail", "Say that an asynchronous run has failed"),
		func(ctx context.Context, in *fail) (*runOutput, error) {
			result := engine.Result{Failed: true}
			if b := in.Body; b != nil {
				result.Message, result.Code = b.Message, b.Code
				result.Final = b.Retryable != nil && !*b.Retryable
				result.RetryAfter = time.Duration(b.RetryAfter) * time.Second
			}
			return end(ctx, in.ID, result)
		})

	type heartbeat struct {
		RunPath
		Body *HeartbeatRequest `required:"false"`
	}
	type heartbeatOutput struct{ Body Heartbeat }
	op := asyncOperation("heartbeatRun", "heartbeat", "Say that a run is being worked on")
	op.Description = "Asked of the sidecar that has sent the run; another one, or one that has just started, answers 503. It costs " +
		"no write. 409 with " + string(run.CodeRunOver) + " means that the run is over: stop working on it."
	huma.Register(api, op, func(ctx context.Context, in *heartbeat) (*heartbeatOutput, error) {
		var body HeartbeatRequest
		if in.Body != nil {
			body = *in.Body
		}
		ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		alive, err := s.opts.Engine.Heartbeat(ctx, in.ID, body.Progress, body.Message)
		if err != nil {
			return nil, s.fail(ctx, ofEngine(err, "ask again"))
		}
		return &heartbeatOutput{Body: Heartbeat{
			State: string(alive.Run.State), TimeoutAt: alive.TimeoutAt.UTC(), NextBefore: alive.NextBefore.UTC(),
		}}, nil
	})
}

func asyncOperation(id, verb, summary string) huma.Operation {
	op := operation(id, http.MethodPost, "/v1/runs/{id}/"+verb, summary,
		http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Description = "Answers once it is in the ledger. Saying the same again gets the same answer. 409 with " + string(run.CodeRunOver) +
		" means that the run has ended otherwise: a late result is noted on it. 503 means: say it again."
	return op
}
