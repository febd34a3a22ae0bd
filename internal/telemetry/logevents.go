package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/logkey"
)

// LogEvents returns an observer that writes engine events to logger: what somebody must look
// at as a warning, what a person did or chose as info, and the course of normal work for
// debugging, so that an hour of it leaves no warning. Terms and definitions are for debugging
// too: the engine itself logs them, with more than the events carry. Lines about a run that the
// app was told of carry the identifiers that tracing gave it; tracing may be nil.
func LogEvents(logger *slog.Logger, tracing *Tracing) engine.Observer {
	return &eventLog{log: logger.With(slog.String(logkey.Component, "engine")), tracing: tracing}
}

type eventLog struct {
	log     *slog.Logger
	tracing *Tracing
	// ledgerDown: the last swap failed, so that the next good one is worth a line.
	ledgerDown atomic.Bool
}

// Observe implements [engine.Observer].
func (l *eventLog) Observe(event engine.Event) {
	switch e := event.(type) {
	case engine.TermBegan:
		l.write(slog.LevelDebug, "leadership won", slog.Int64(logkey.Term, e.Term))
	case engine.TermEnded:
		l.termEnded(e)
	case engine.JobsChanged:
		l.write(slog.LevelDebug, "job set changed", slog.Int(logkey.Count, len(e.Jobs)))
	case engine.RunStarted:
		l.write(slog.LevelDebug, "run started",
			append(l.runAttrs(e.Run), slog.Duration(logkey.Lateness, e.Lateness))...)
	case engine.RunEnded:
		l.runEnded(e)
	case engine.RetryPlanned:
		l.retryPlanned(e)
	case engine.ManualPlanned:
		l.write(slog.LevelInfo, "manual run accepted", l.runAttrs(e.Run)...)
	case engine.Missed:
		l.missed(e)
	case engine.Committed:
		l.committed(e)
	}
}

func (l *eventLog) termEnded(e engine.TermEnded) {
	attrs := []slog.Attr{slog.Int64(logkey.Term, e.Term)}
	if e.Err != nil {
		attrs = append(attrs, slog.String(logkey.Reason, e.Err.Error()))
	}
	level, msg := slog.LevelDebug, "leadership ended"
	if steppedDown(e.Err) {
		level, msg = slog.LevelWarn, "leadership given up"
	}
	l.write(level, msg, attrs...)
}

func (l *eventLog) runEnded(e engine.RunEnded) {
	attrs := l.endAttrs(e.Run)
	switch e.Run.State {
	case run.StateLost:
		l.write(slog.LevelWarn, "run lost", attrs...)
	case run.StateNeedsReview:
		l.write(slog.LevelWarn, "run needs review", attrs...)
	case run.StateFailed:
		if e.Final { // else the line of the retry says it
			l.write(slog.LevelWarn, "run failed", attrs...)
		}
	case run.StateQueued, run.StatePending, run.StateRunning, run.StateSucceeded, run.StateCanceled:
		l.write(slog.LevelDebug, "run ended", attrs...)
	}
}

// retryPlanned writes the one line of an attempt that failed and will be made again. That of a lost
// one was written already.
func (l *eventLog) retryPlanned(e engine.RetryPlanned) {
	due := slog.Time(logkey.DueAt, e.Run.DueAt)
	if e.After.State == run.StateFailed {
		l.write(slog.LevelInfo, "attempt failed, will be retried", append(l.endAttrs(e.After), due)...)
		return
	}
	l.write(slog.LevelDebug, "retry planned", append(l.runAttrs(e.Run), due)...)
}

// missed writes one line for a whole range. Skips that a policy or a person asked for are no
// reason to wake somebody.
func (l *eventLog) missed(e engine.Missed) {
	level := slog.LevelWarn
	if e.Reason == run.ReasonOverlap || e.Reason == run.ReasonResumeSkip {
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{
		slog.String(logkey.Job, e.Key.Job), slog.String(logkey.Trigger, e.Key.Trigger),
		slog.String(logkey.Reason, string(e.Reason)), slog.Int(logkey.Count, e.Count),
		slog.Time(logkey.ScheduledAt, e.ScheduledAt),
	}
	if !e.CoveredUntil.IsZero() {
		attrs = append(attrs, slog.Time(logkey.CoveredUntil, e.CoveredUntil))
	}
	l.write(level, "instants missed", attrs...)
}

func (l *eventLog) committed(e engine.Committed) {
	if e.Err != nil && !commitFailed(e.Err) {
		return
	}
	if e.Err == nil {
		if l.ledgerDown.CompareAndSwap(true, false) {
			l.write(slog.LevelInfo, "ledger can be written again")
		}
		return
	}
	// The engine, which knows whether it matters, warns of the first.
	l.ledgerDown.Store(true)
	l.write(slog.LevelDebug, "ledger not written", slog.Duration(logkey.Duration, e.Took), logkey.Err(e.Err))
}

func (l *eventLog) write(level slog.Level, msg string, attrs ...slog.Attr) {
	l.log.LogAttrs(context.Background(), level, msg, attrs...) //nolint:sloglint // every caller passes a constant
}

// maxReason bounds what a line repeats of a run's message, in bytes.
const maxReason = 256

// endAttrs say how an attempt ended. The reason of a failure is the run's message, which the invoker
// made fit to be logged; what an app says of its success is of interest to nobody here.
func (l *eventLog) endAttrs(r run.Run) []slog.Attr {
	attrs := append(l.runAttrs(r), slog.String(logkey.Outcome, outcomeLabel(r.State)))
	if !r.FiredAt.IsZero() && !r.EndedAt.IsZero() {
		took := r.EndedAt.Sub(r.FiredAt).Round(time.Millisecond)
		attrs = append(attrs, slog.String(logkey.Duration, took.String()))
	}
	if r.Code == "" {
		return attrs
	}
	attrs = append(attrs, slog.String(logkey.Code, string(r.Code)))
	if r.Status != 0 {
		attrs = append(attrs, slog.Int(logkey.Status, r.Status))
	}
	if r.Message != "" {
		attrs = append(attrs, slog.String(logkey.Reason, clip(r.Message, maxReason)))
	}
	return attrs
}

// clip cuts a text at the last whole character within the limit.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// runAttrs leaves out the run's data: a body has no place in a log.
func (l *eventLog) runAttrs(r run.Run) []slog.Attr {
	attrs := []slog.Attr{
		slog.String(logkey.Job, r.Key.Job), slog.String(logkey.Trigger, r.Key.Trigger),
		slog.String(logkey.RunID, r.ID), slog.Int(logkey.Attempt, r.Attempt),
		slog.String(logkey.Cause, string(r.Cause)), slog.Time(logkey.ScheduledAt, r.ScheduledAt),
	}
	if traceID, spanID := l.tracing.IDs(r); traceID != "" && !r.FiredAt.IsZero() {
		attrs = append(attrs, slog.String(logkey.TraceID, traceID), slog.String(logkey.SpanID, spanID))
	}
	return attrs
}
