package run

import (
	"encoding/json"
	"time"
)

// Attempt is what an invoker is told to deliver: everything that the app will see, resolved.
type Attempt struct {
	Namespace, App string // make the CloudEvents source
	// Run is what is told. Its FiredAt is the time of the first try, so that attempts which begin one
	// after the other say so whatever their goroutines do then; zero: now.
	Run         Run
	Description string

	URL         string            // target and path
	Method      string            // POST, PUT or PATCH
	Headers     map[string]string // the job's own
	BearerFile  string            // read anew for each attempt; empty: no Authorization header
	Data        json.RawMessage   // merged; a JSON object, or null
	Timeout     time.Duration     // of the whole attempt, counted from its start
	FencingTerm int64             // 0: no fencing token (scope instance)

	// TraceParent and TraceState are the trace context (W3C) that the app joins; empty: none.
	TraceParent, TraceState string

	// MayStart is asked immediately before the first byte of the request is written, and again
	// before each retry of a refused connection. When it returns an error, nothing is written.
	MayStart func() error
	// Started is called once, when the first byte is about to be written, with that time.
	Started func(at time.Time)
}

// Outcome says how one attempt ended.
type Outcome struct {
	State   State // Succeeded, Failed or Canceled
	Code    Code  // empty on success
	Status  int   // HTTP status, 0 where no response arrived
	Message string
	AppCode string // of a failure, in the app's own words; empty: it has none
	// NotSent: no byte of the request was written, so the app surely did not see it.
	NotSent bool
	// Refused: MayStart forbade the start. Implies NotSent.
	Refused bool
	// Unknown: the request was written and no answer tells whether the app did the work.
	Unknown bool
	// Retryable: of a kind that may be repeated (408, 425, 429, 5xx but 501, refused, lost, timeout).
	Retryable bool
	// RetryAfter is what the app asked for with Retry-After, 0 where it did not.
	RetryAfter time.Duration
	// Told: the app has said so itself, after it had accepted the run.
	Told      bool
	BegunAt   time.Time // when the attempt began, whether or not anything was sent; zero: it did not
	StartedAt time.Time // when the request was written; zero: never
	EndedAt   time.Time
}
