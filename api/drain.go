package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine/run"
)

// longestDrainWait bounds how long one request waits: longer than any grace.
const longestDrainWait = 2 * time.Hour

// Drainer is what the API needs to take a sidecar out of service.
type Drainer interface {
	// Drain begins to hand over and to finish the runs, if that has not begun, and returns a channel
	// that is closed when it is over. It does not block.
	Drain() <-chan struct{}
	// DrainStatus says how far that is. It does not block.
	DrainStatus() DrainStatus
}

// The states of a drain.
const (
	DrainServing  = "serving"  // it has not begun
	DrainDraining = "draining" // under way
	DrainDrained  = "drained"  // over: this sidecar leads no more and has no runs
)

// DrainStatus says how far a drain is, as POST and GET /drain answer it.
type DrainStatus struct {
	State        string    `json:"state" enum:"serving,draining,drained" doc:"Whether the drain has not begun, is under way, or is over."`
	Since        time.Time `json:"since,omitzero" doc:"When it began."`
	HandedOverAt time.Time `json:"handedOverAt,omitzero" doc:"When the leadership was handed over, or there was none to hand over: nothing starts here any more."`
	Until        time.Time `json:"until,omitzero" doc:"When the grace ends: what is open then is recorded as lost."`
	EndedAt      time.Time `json:"endedAt,omitzero" doc:"When it was over."`
	Runs         int       `json:"runs" doc:"Runs of this sidecar whose end is not recorded yet."`
	Lost         int       `json:"lost" doc:"Runs that were recorded as lost because the grace was over."`
	Error        string    `json:"error,omitempty" doc:"Why runs could not be recorded in time; it is tried until the process ends."`
}

func (s *Server) registerDrain(api huma.API) {
	type output struct {
		Status int
		Body   DrainStatus
	}
	type input struct {
		Wait string `query:"wait" doc:"How long to wait for the end, 0s to 2h; without it, until it is over."`
	}
	op := operation("drain", http.MethodPost, "/drain", "Hand the leadership over and finish the runs, for preStop hooks")
	op.Description = "The first request begins the drain, every further one joins it. The answer comes when the drain is over (200), " +
		"or after the wait (202). The process goes on until SIGTERM; it neither leads nor runs anything again before a restart."
	op.Middlewares = huma.Middlewares{unhurried}
	huma.Register(api, op, func(ctx context.Context, in *input) (*output, error) {
		wait, p := drainWait(in.Wait)
		if p != nil {
			p.RequestID = requestID(ctx)
			return nil, p
		}
		if wait > 0 {
			if s.drains.take() {
				defer s.drains.give()
			} else {
				wait = 0 // enough of them wait; this one is told how far it is
			}
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over := s.opts.Drain.Drain()
		select {
		case <-over: // also where nothing is to be waited for
		default:
			select {
			case <-over:
			case <-timer.C:
			case <-ctx.Done(): // the drain goes on without the client
			}
		}
		status := s.drainStatus()
		if status.State != DrainDrained {
			return &output{Status: http.StatusAccepted, Body: status}, nil
		}
		return &output{Status: http.StatusOK, Body: status}, nil
	})

	responses := api.OpenAPI().Paths["/drain"].Post.Responses
	responses["202"] = &huma.Response{Description: "Accepted", Content: responses["200"].Content}

	get := operation("getDrain", http.MethodGet, "/drain", "How far the drain is")
	get.Description = "Changes nothing."
	huma.Register(api, get, func(context.Context, *struct{}) (*struct{ Body DrainStatus }, error) {
		return &struct{ Body DrainStatus }{s.drainStatus()}, nil
	})
}

func (s *Server) drainStatus() DrainStatus {
	d := s.opts.Drain.DrainStatus()
	for _, at := range []*time.Time{&d.Since, &d.HandedOverAt, &d.Until, &d.EndedAt} {
		*at = at.UTC()
	}
	return d
}

// drainWait reads how long a request for a drain waits.
func drainWait(text string) (time.Duration, *problem.Problem) {
	if text == "" {
		return longestDrainWait, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > longestDrainWait {
		return 0, problem.New(run.CodeInvalidQuery, "query.wait: want a duration from 0s to 2h, such as 10s")
	}
	return wait, nil
}

// unhurried lifts the limits of a connection from a request whose answer takes its time. The end of
// the read limit would end the request's context, although it was read.
func unhurried(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a writer without deadlines has no limits either
	_ = control.SetWriteDeadline(time.Time{})
	next(ctx)
}
