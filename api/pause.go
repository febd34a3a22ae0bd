package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/logkey"
)

// storedAnyway is what to know of a pause when the ledger did not answer.
const storedAnyway = "the change may have been stored all the same; it can be repeated without harm"

// TriggerPath is what the routes of one trigger have in common.
type TriggerPath struct {
	JobPath
	Trigger string `path:"trigger" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"The trigger's name."`
}

// PauseRequest is the body of a request to pause.
type PauseRequest struct {
	Reason string    `json:"reason,omitempty" maxLength:"1024" doc:"Why, for whoever finds it paused."`
	Until  time.Time `json:"until,omitzero" doc:"When it ends by itself; absent: when it is resumed."`
}

// ResumeRequest is the body of a request to resume.
type ResumeRequest struct {
	Misfire string `json:"misfire,omitempty" enum:"skip" doc:"skip passes over the instants of the pause; absent: the misfire policy of each trigger decides."`
}

// PausedRuns is the answer to a request to pause.
type PausedRuns struct {
	Runs []Run `json:"runs" doc:"What was decided before the pause, and will still run."`
}

// StillPaused is the answer to a resume after which other pauses are left.
type StillPaused struct {
	By []Hold `json:"stillPausedBy" doc:"What still pauses it: of a job also what pauses single triggers."`
}

// Hold is one pause in force.
type Hold struct {
	By      string    `json:"by" enum:"everything,job,trigger,definition" doc:"What was paused: everything, the job, the trigger; or the job's definition says paused."`
	Trigger string    `json:"trigger,omitempty" doc:"Which, where a trigger was paused."`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero" doc:"When it ends by itself; absent: when it is resumed, or the definition changes."`
}

func holdsOf(holds []plan.Hold) []Hold {
	var out []Hold
	for _, h := range holds {
		out = append(out, Hold{By: string(h.By), Trigger: h.Trigger, Reason: h.Reason, Since: h.Since.UTC(), Until: h.Until.UTC()})
	}
	return out
}

func (s *Server) registerPauses(api huma.API) {
	type all struct {
		Body *PauseRequest `required:"false"`
	}
	huma.Register(api, pauseOperation("pauseAll", "/v1/pause", "Pause every job"),
		func(ctx context.Context, in *all) (*pauseOutput, error) {
			return s.pause(ctx, run.Key{}, in.Body)
		})

	type job struct {
		JobPath
		Body *PauseRequest `required:"false"`
	}
	huma.Register(api, pauseOperation("pauseJob", "/v1/jobs/{job}/pause", "Pause a job", http.StatusNotFound),
		func(ctx context.Context, in *job) (*pauseOutput, error) {
			return s.pause(ctx, run.Key{Job: in.Job}, in.Body)
		})

	type trigger struct {
		TriggerPath
		Body *PauseRequest `required:"false"`
	}
	huma.Register(api, pauseOperation("pauseTrigger", "/v1/jobs/{job}/triggers/{trigger}/pause", "Pause a trigger", http.StatusNotFound),
		func(ctx context.Context, in *trigger) (*pauseOutput, error) {
			return s.pause(ctx, run.Key{Job: in.Job, Trigger: in.Trigger}, in.Body)
		})
}

func (s *Server) registerResumes(api huma.API) {
	type all struct {
		Body *ResumeRequest `required:"false"`
	}
	huma.Register(api, resumeOperation("resumeAll", "/v1/resume", "End the pause of every job"),
		func(ctx context.Context, in *all) (*resumeOutput, error) {
			return s.resume(ctx, run.Key{}, in.Body)
		})

	type job struct {
		JobPath
		Body *ResumeRequest `required:"false"`
	}
	huma.Register(api, resumeOperation("resumeJob", "/v1/jobs/{job}/resume", "End the pause of a job", http.StatusNotFound),
		func(ctx context.Context, in *job) (*resumeOutput, error) {
			return s.resume(ctx, run.Key{Job: in.Job}, in.Body)
		})

	type trigger struct {
		TriggerPath
		Body *ResumeRequest `required:"false"`
	}
	huma.Register(api, resumeOperation("resumeTrigger", "/v1/jobs/{job}/triggers/{trigger}/resume", "End the pause of a trigger", http.StatusNotFound),
		func(ctx context.Context, in *trigger) (*resumeOutput, error) {
			return s.resume(ctx, run.Key{Job: in.Job, Trigger: in.Trigger}, in.Body)
		})
}

type pauseOutput struct{ Body PausedRuns }

type resumeOutput struct {
	Status int
	Body   StillPaused
}

func pauseOperation(id, path, summary string, errs ...int) huma.Operation {
	op := operation(id, http.MethodPost, path, summary,
		append(errs, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)...)
	op.Description = "Answers once the leader acts by it. Instants of the pause stay undecided and are not missed; manual runs " +
		"still work. Pausing what is paused replaces reason and end."
	return op
}

func resumeOperation(id, path, summary string, errs ...int) huma.Operation {
	op := pauseOperation(id, path, summary, errs...)
	op.Description = "Answers once the leader acts by it. Each pause is ended by itself: a job whose trigger was paused, or that was " +
		"paused with every job, needs its own resume there, and the answer names those pauses. Resuming what is not paused changes nothing."
	op.Responses = map[string]*huma.Response{
		"200": {Description: "Done; other pauses still hold it"},
		"204": {Description: "Done; nothing pauses it any more"},
	}
	return op
}

func (s *Server) pause(ctx context.Context, key run.Key, body *PauseRequest) (*pauseOutput, error) {
	if body == nil {
		body = new(PauseRequest)
	}
	if !body.Until.IsZero() && !body.Until.After(time.Now()) {
		return nil, s.fail(ctx, run.Errorf(run.CodeInvalidQuery, "body.until: %s has passed", body.Until.UTC().Format(time.RFC3339)))
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	runs, err := s.opts.Engine.Pause(ctx, key, body.Reason, body.Until.UTC())
	if stored(err) {
		s.log.LogAttrs(ctx, slog.LevelInfo, "paused", s.pauseAttrs(ctx, key, err, slog.String(logkey.Reason, body.Reason), untilAttr(body.Until))...)
	}
	if err != nil {
		return nil, s.fail(ctx, ofEngine(err, storedAnyway))
	}
	return &pauseOutput{Body: PausedRuns{Runs: runsOf(runs)}}, nil
}

func (s *Server) resume(ctx context.Context, key run.Key, body *ResumeRequest) (*resumeOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	skip := body != nil && body.Misfire == "skip"
	holds, err := s.opts.Engine.Resume(ctx, key, skip)
	if stored(err) {
		s.log.LogAttrs(ctx, slog.LevelInfo, "resumed", s.pauseAttrs(ctx, key, err, slog.Bool("skip", skip), slog.Int("still_paused_by", len(holds)))...)
	}
	switch {
	case err != nil:
		return nil, s.fail(ctx, ofEngine(err, storedAnyway))
	case len(holds) == 0:
		return &resumeOutput{Status: http.StatusNoContent}, nil
	}
	return &resumeOutput{Status: http.StatusOK, Body: StillPaused{By: holdsOf(holds)}}, nil
}

// stored reports of a change of pauses whether it is: that is worth a line, also where no leader acts by it yet.
func stored(err error) bool { return err == nil || errors.Is(err, engine.ErrNoLeader) }

// pauseAttrs say what was changed, and by whom.
func (s *Server) pauseAttrs(ctx context.Context, key run.Key, err error, more ...slog.Attr) []slog.Attr {
	what := key.String()
	if key.Job == "" {
		what = "everything"
	}
	return append([]slog.Attr{
		slog.String("what", what), slog.Bool("in_force", err == nil),
		slog.String(logkey.Node, s.opts.Engine.Status().Node), slog.String(logkey.RequestID, requestID(ctx)),
	}, more...)
}

// untilAttr leaves out an end that a pause has not.
func untilAttr(until time.Time) slog.Attr {
	if until.IsZero() {
		return slog.Attr{}
	}
	return slog.Time("until", until.UTC())
}
