package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/engine/run"
)

// ResolveRequest is the body of a request to resolve a run.
type ResolveRequest struct {
	State string `json:"state" enum:"Succeeded,Failed,Canceled" doc:"How the run ended."`
	Note  string `json:"note" minLength:"1" maxLength:"1024" doc:"How that is known; it becomes the run's message."`
}

func (s *Server) registerResolve(api huma.API) {
	type input struct {
		ID   string `path:"id" pattern:"^[0-9A-Za-z._-]{1,64}$" doc:"The run's ID."`
		Body ResolveRequest
	}
	type output struct{ Body Run }
	op := operation("resolveRun", http.MethodPost, "/v1/runs/{id}/resolve", "Say how a run ended that needs review",
		http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)
	op.Description = "For runs in state NeedsReview. Nothing is sent to the app."
	huma.Register(api, op, func(ctx context.Context, in *input) (*output, error) {
		ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		r, err := s.opts.Engine.Resolve(ctx, in.ID, run.State(in.Body.State), in.Body.Note)
		if err != nil {
			return nil, s.fail(ctx, ofEngine(err, "the run may be resolved all the same, as GET /v1/runs will tell"))
		}
		return &output{Body: runOf(&r)}, nil
	})
}
