package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/election/leases"
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

// ofLeases gives an error of the named leases its code.
func ofLeases(err error) error {
	if _, coded := errors.AsType[*run.Error](err); coded {
		return err
	}
	if e, ok := errors.AsType[*leases.InvalidError](err); ok {
		return run.Errorf(run.CodeInvalidQuery, "%v", e)
	}
	if e, ok := errors.AsType[*leases.HeldError](err); ok {
		return run.Errorf(run.CodeLeaseHeld, "%v", e)
	}
	if e, ok := errors.AsType[*leases.LostError](err); ok {
		return run.Errorf(run.CodeLeaseHeld, "%v", e)
	}
	switch {
	case errors.Is(err, leases.ErrKeyReused):
		return run.Errorf(run.CodeIdempotencyKeyReused, "%v", leases.ErrKeyReused)
	case errors.Is(err, leases.ErrFull):
		return run.Errorf(run.CodeLedgerFull, "%v", leases.ErrFull)
	case errors.Is(err, leases.ErrTooLate):
		return run.Errorf(run.CodeElectionUnknown, "%v", leases.ErrTooLate)
	case errors.Is(err, leases.ErrTokensUsedUp):
		return run.Errorf(run.CodeElectionUnknown, "%v", leases.ErrTokensUsedUp)
	}
	detail := "the store of the leases did not answer; nothing was changed"
	if e, ok := errors.AsType[*leases.StoreError](err); ok && e.Unknown {
		detail = "the store of the leases did not answer; the change may have been made: repeat the request, an acquisition with the same Idempotency-Key"
	}
	return &run.Error{Code: run.CodeElectionUnknown, Detail: detail, Err: err}
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
