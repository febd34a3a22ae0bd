package config

import (
	"encoding/json"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

// Job is one job, checked and with every default filled in: the form in which the catalog
// keeps a version of it. Equal jobs marshal to equal bytes.
type Job struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Target      string            `json:"target,omitempty"` // base URL without a trailing slash; empty: the sidecar's own
	Path        string            `json:"path"`             // starts with a slash
	Method      string            `json:"method"`           // POST, PUT or PATCH
	Headers     map[string]string `json:"headers,omitempty"`
	BearerFile  string            `json:"bearerFile,omitempty"`
	Data        json.RawMessage   `json:"data,omitempty"` // a JSON object, numbers as written
	Paused      bool              `json:"paused,omitempty"`
	Timeout     time.Duration     `json:"timeout"`            // of one attempt
	Deadline    time.Duration     `json:"deadline,omitempty"` // of all attempts of an occurrence, 0: none
	// Async: the app may answer 202 and say later how the run ended. HeartbeatTimeout is how long it may
	// be silent until then, 0: as long as it likes.
	Async            bool          `json:"async,omitempty"`
	HeartbeatTimeout time.Duration `json:"heartbeatTimeout,omitempty"`

	Overlap      Overlap   `json:"overlap"`
	MaxParallel  int       `json:"maxParallel,omitempty"` // with OverlapParallel, 0: no limit
	Retry        Retry     `json:"retry,omitzero"`
	Recovery     Recovery  `json:"recovery"`
	Scope        Scope     `json:"scope"`
	HistoryLimit int       `json:"historyLimit"`
	Triggers     []Trigger `json:"triggers,omitempty"`
	// Calendars are the ones that the triggers name, so that a version of a job needs nothing else.
	Calendars map[string]schedule.CalendarSpec `json:"calendars,omitempty"`
}

// Trigger says when a job is due.
type Trigger struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Schedule    schedule.Schedule `json:"schedule"` // its text form; the time zone is filled in
	Data        json.RawMessage   `json:"data,omitempty"`
	Priority    int               `json:"priority"`
	Misfire     Misfire           `json:"misfire"`
}

// Misfire says what happens to instants that could not be decided in time.
type Misfire struct {
	Policy MisfirePolicy `json:"policy"`
	Grace  time.Duration `json:"grace"`           // later than this is a misfire
	Window time.Duration `json:"window,omitzero"` // older than this is skipped, 0: unlimited
	Limit  int           `json:"limit,omitempty"` // catch-up: runs a second
}

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	MaxRetries int           `json:"maxRetries,omitempty"` // 0: exactly one request
	Delay      time.Duration `json:"delay,omitempty"`
	Backoff    Backoff       `json:"backoff,omitempty"`
	MaxDelay   time.Duration `json:"maxDelay,omitempty"`
	Jitter     float64       `json:"jitter,omitempty"`   // 0 to 1, ± this part of the delay
	Statuses   []int         `json:"statuses,omitempty"` // empty: 408, 425, 429, 5xx except 501
	// NoUnknown leaves out attempts whose outcome is unknown (`unknown: false` in the document).
	NoUnknown bool `json:"noUnknown,omitempty"`
}

// Overlap says what happens when a job is due while it still runs.
type Overlap string

// The overlap policies.
const (
	OverlapSerial   Overlap = "serial"
	OverlapSkip     Overlap = "skip"
	OverlapParallel Overlap = "parallel"
	OverlapReplace  Overlap = "replace"
)

// MisfirePolicy names what becomes of instants later than the grace time.
type MisfirePolicy string

// The misfire policies.
const (
	MisfireRunOnce MisfirePolicy = "run-once"
	MisfireSkip    MisfirePolicy = "skip"
	MisfireCatchUp MisfirePolicy = "catch-up"
)

// Backoff says how the delay before a retry grows.
type Backoff string

// The back-off kinds.
const (
	BackoffFixed       Backoff = "fixed"
	BackoffExponential Backoff = "exponential"
)

// Recovery says what happens to a run whose sidecar died.
type Recovery string

// The recovery policies.
const (
	RecoveryNone   Recovery = "none"
	RecoveryRerun  Recovery = "rerun"
	RecoveryReview Recovery = "review"
)

// Scope says who runs a job.
type Scope string

// The scopes.
const (
	ScopeCluster  Scope = "cluster"
	ScopeInstance Scope = "instance"
)
