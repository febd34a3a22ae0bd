package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Cause says why a run was started.
type Cause string

// The causes of a run. A newer sidecar may know more of them.
const (
	CauseSchedule Cause = "schedule" // an instant of its trigger
	CauseManual   Cause = "manual"   // asked for by hand
	CauseRetry    Cause = "retry"    // an attempt failed
	CauseRecovery Cause = "recovery" // the sidecar of an attempt was lost
	CauseBackfill Cause = "backfill" // a past instant, asked for by hand
	CauseRerun    Cause = "rerun"    // a failed or lost occurrence, asked for by hand
)

// Run is one attempt at one occurrence of a job, as the sidecar sent it. Nobody changes a Run
// after [Parse] has made it, so it may be shared between goroutines.
type Run struct {
	// ID names this attempt; another attempt has another one. 32 hex digits.
	ID string
	// Occurrence names what the run is about: the same for all attempts, whoever sends them.
	// 32 hex digits.
	Occurrence string
	Job        string
	Trigger    string // empty: started by hand
	Cause      Cause
	// ScheduledAt is the instant that the run is for, not the time of sending. A retry keeps it.
	ScheduledAt time.Time
	// CoveredUntil ends the range [ScheduledAt, CoveredUntil) that the run stands for; zero
	// where there is none.
	CoveredUntil time.Time
	FiredAt      time.Time // when the request left, by the sidecar's clock
	Attempt      int       // 1 for the first
	// RetryOf is the occurrence's first run; empty: this is it.
	RetryOf string
	// OriginalOccurrence is what a backfill or rerun repeats; empty for other runs.
	OriginalOccurrence string
	// Term is the fencing token: it grows from leader to leader. 0: the job has none (scope
	// instance).
	Term    int64
	Version int // of the job's definition
	// Data is a JSON object with numbers exactly as they were written, or nil. See [Run.Decode].
	Data json.RawMessage

	// Source is the CloudEvents source, /leasecron/NAMESPACE/APP/scheduling. It comes from a
	// header, which no signature covers, and is empty where a proxy took that away.
	Source string
	// TraceParent and TraceState are the W3C trace context, from headers too.
	TraceParent, TraceState string
}

// Decode stores the run's data in v, as [json.Unmarshal] does, but for numbers: those that land
// in an interface value become a [json.Number], which keeps every digit. Without data, v stays
// as it is. The error is a [Permanent] one, since each attempt carries the same data.
func (r *Run) Decode(v any) error { return r.decode(v, false) }

// DecodeStrict is Decode for an app that wants a key that v does not know to be an error: it
// finds misspelled keys, and fails while jobs and app are of different versions.
func (r *Run) DecodeStrict(v any) error { return r.decode(v, true) }

func (r *Run) decode(v any, strict bool) error {
	if len(r.Data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(r.Data))
	d.UseNumber()
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		return Permanent(fmt.Errorf("data of job %s: %w", r.Job, err))
	}
	return nil
}

// String names the run for logs: job/trigger, attempt and occurrence.
func (r *Run) String() string {
	name := r.Job
	if r.Trigger != "" {
		name += "/" + r.Trigger
	}
	return fmt.Sprintf("%s attempt %d of %s", name, r.Attempt, r.Occurrence)
}

type runKey struct{}

// NewContext returns a context that carries run, for tests of handlers and for other routers.
func NewContext(ctx context.Context, run *Run) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// FromContext returns the run that a handler of this package is working on.
func FromContext(ctx context.Context) (*Run, bool) {
	run, ok := ctx.Value(runKey{}).(*Run)
	return run, ok
}
