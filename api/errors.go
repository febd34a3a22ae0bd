package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/logkey"
)

// ledgerTimeout bounds how long a request waits for the ledger.
const ledgerTimeout = 10 * time.Second

// ofEngine gives an error of the engine its code. What the engine does not name is the ledger's:
// that is all it asks. Of a write nobody knows whether it was made, so advice says how to tell.
func ofEngine(err error, advice string) error {
	if _, coded := errors.AsType[*run.Error](err); coded {
		return err
	}
	switch {
	case errors.Is(err, engine.ErrJobNotFound):
		return run.Errorf(run.CodeJobNotFound, "%v", err)
	case errors.Is(err, engine.ErrAlreadyRunning):
		return run.Errorf(run.CodeAlreadyRunning, "%v", err)
	case errors.Is(err, engine.ErrNoLeader):
		return run.Errorf(run.CodeNoScheduler, "the change is stored and takes effect with the next leader; nobody leads now")
	case errors.Is(err, engine.ErrDraining):
		return run.Errorf(run.CodeNoScheduler, "%v", err)
	}
	return &run.Error{Code: run.CodeLedgerUnknown, Detail: "the ledger did not answer; " + advice, Err: err}
}

// fail turns an error into the answer, and logs what the answer hides.
func (s *Server) fail(ctx context.Context, err error) error {
	p := *problem.From(err)
	p.RequestID = requestID(ctx)
	if p.Status >= http.StatusInternalServerError {
		level := slog.LevelInfo // unavailable: whoever owns the outage warns of it
		if p.Code == "" {
			level = slog.LevelError
		}
		s.log.LogAttrs(ctx, level, "request failed", slog.String(logkey.RequestID, p.RequestID), logkey.Err(err))
	}
	return &p
}

// tooLarge is the problem of a part of a request that is too large.
func tooLarge(what string, limit int) *problem.Problem {
	return problem.Status(http.StatusRequestEntityTooLarge, fmt.Sprintf("%s is larger than %d bytes", what, limit))
}
