package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/engine/run"
)

// RunList is the answer to a request for runs.
type RunList struct {
	Runs []Run `json:"runs" doc:"Newest scheduled instant first."`
}

// Run is a run as the API shows it, without its data.
type Run struct {
	ID                 string    `json:"id"`
	Occurrence         string    `json:"occurrence" doc:"The same for all attempts at one instant."`
	Job                string    `json:"job"`
	Trigger            string    `json:"trigger,omitempty" doc:"Absent for a run asked for by hand."`
	Cause              string    `json:"cause" enum:"schedule,manual,retry,recovery,backfill,rerun"`
	State              string    `json:"state" enum:"Queued,Pending,Running,NeedsReview,Succeeded,Failed,Canceled,Lost"`
	Version            int       `json:"version" doc:"Of the job's definition."`
	Attempt            int       `json:"attempt"`
	RetryOf            string    `json:"retryOf,omitempty" doc:"The first run of the occurrence."`
	OriginalOccurrence string    `json:"originalOccurrence,omitempty"`
	ScheduledAt        time.Time `json:"scheduledAt"`
	CoveredUntil       time.Time `json:"coveredUntil,omitzero" doc:"The first instant that the run does not stand for."`
	Coalesced          int       `json:"coalesced,omitempty" doc:"How many instants the run stands for, if more than one."`
	DueAt              time.Time `json:"dueAt,omitzero"`
	DecidedAt          time.Time `json:"decidedAt,omitzero"`
	FiredAt            time.Time `json:"firedAt,omitzero"`
	EndedAt            time.Time `json:"endedAt,omitzero"`
	Node               string    `json:"node,omitempty" doc:"The sidecar that sent it."`
	Term               int64     `json:"term,omitempty" doc:"The fencing token that it was sent with."`
	Code               run.Code  `json:"code,omitempty"`
	Status             int       `json:"status,omitempty" doc:"HTTP status of the app's answer."`
	Message            string    `json:"message,omitempty" doc:"What the app said, or what went wrong."`
	Unknown            bool      `json:"unknown,omitempty" doc:"The app may have done the work although no answer arrived."`
	AppCode            string    `json:"appCode,omitempty" doc:"The app's own code of a failure."`
	Async              bool      `json:"async,omitempty" doc:"The app has accepted the run with 202, and says later how it ended."`
	Progress           *Progress `json:"progress,omitempty" doc:"What the app says of it while it works."`
}

func runOf(r *run.Run) Run {
	return Run{
		ID: r.ID, Occurrence: r.Occurrence, Job: r.Key.Job, Trigger: r.Key.Trigger,
		Cause: string(r.Cause), State: string(r.State), Version: r.Version,
		Attempt: r.Attempt, RetryOf: r.RetryOf, OriginalOccurrence: r.OriginalOf,
		ScheduledAt: r.ScheduledAt.UTC(), CoveredUntil: r.CoveredUntil.UTC(), Coalesced: r.Coalesced,
		DueAt: r.DueAt.UTC(), DecidedAt: r.DecidedAt.UTC(), FiredAt: r.FiredAt.UTC(), EndedAt: r.EndedAt.UTC(),
		Node: r.Node, Term: r.Term, Code: r.Code, Status: r.Status, Message: r.Message, Unknown: r.Unknown,
		AppCode: r.AppCode, Async: r.Async, Progress: progressOf(r.Progress),
	}
}

func runsOf(runs []run.Run) []Run {
	out := make([]Run, len(runs))
	for i := range runs {
		out[i] = runOf(&runs[i])
	}
	return out
}

func (s *Server) registerRuns(api huma.API) {
	type input struct {
		Job   string `query:"job" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"Of this job only."`
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most so many."`
	}
	type output struct{ Body RunList }
	huma.Register(api, operation("listRuns", http.MethodGet, "/v1/runs", "Recent runs", http.StatusServiceUnavailable),
		func(ctx context.Context, in *input) (*output, error) {
			ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
			defer cancel()
			runs, err := s.opts.Engine.Runs(ctx, in.Job, in.Limit)
			if err != nil {
				return nil, s.fail(ctx, ofEngine(err, "ask again"))
			}
			runs = runs[:min(len(runs), in.Limit)]
			return &output{Body: RunList{Runs: runsOf(runs)}}, nil
		})
}
