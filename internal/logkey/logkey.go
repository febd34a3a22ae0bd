// Package logkey names every key of a log line in one place.
package logkey

import "log/slog"

// The keys, snake_case.
const (
	Component    = "component"
	App          = "app"
	Namespace    = "namespace"
	Node         = "node"
	Job          = "job_name"
	Trigger      = "trigger"
	RunID        = "run_id"
	Occurrence   = "occurrence"
	Attempt      = "attempt"
	Cause        = "cause"
	Reason       = "reason"
	Code         = "code"
	Status       = "status"
	Term         = "term"
	Holder       = "holder"
	Lease        = "lease"
	Count        = "count"
	ScheduledAt  = "scheduled_at"
	CoveredUntil = "covered_until"
	Source       = "source"
	Address      = "address"
	Duration     = "duration"
	RequestID    = "request_id"
	Method       = "method"
	Path         = "path"
	DueAt        = "due_at"
	Outcome      = "outcome"
	Lateness     = "lateness"
	Error        = "error"
	TraceID      = "trace_id" // as OpenTelemetry names it outside of its own log format
	SpanID       = "span_id"
)

// Err is the attribute of an error.
func Err(err error) slog.Attr { return slog.String(Error, err.Error()) }
