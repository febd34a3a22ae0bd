package run

import (
	"encoding/json"
	"strings"
	"time"
)

// Cause says why a run exists.
type Cause string

// The causes of a run.
const (
	CauseSchedule Cause = "schedule"
	CauseManual   Cause = "manual"
	CauseRetry    Cause = "retry"
	CauseRecovery Cause = "recovery"
	CauseBackfill Cause = "backfill"
	CauseRerun    Cause = "rerun"
)

// State is where a run stands.
type State string

// The states of a run, in the order in which it passes them.
const (
	// StateQueued: decided, waits for its due time or for a slot; nobody was told to send it.
	StateQueued State = "Queued"
	// StatePending: given to a node, which may have sent it.
	StatePending State = "Pending"
	// StateRunning: its node has reported that it was sent.
	StateRunning State = "Running"
	// StateNeedsReview: its outcome is unknown and a person has to say what it was.
	StateNeedsReview State = "NeedsReview"
	StateSucceeded   State = "Succeeded"
	StateFailed      State = "Failed"
	StateCanceled    State = "Canceled"
	// StateLost: its node is gone; whether the app ran it is not known.
	StateLost State = "Lost"
)

// Ended reports whether a run in this state can never change again.
func (s State) Ended() bool {
	switch s {
	case StateSucceeded, StateFailed, StateCanceled, StateLost:
		return true
	case StateQueued, StatePending, StateRunning, StateNeedsReview:
		return false
	}
	return false
}

// Known reports whether this program knows the state: a newer one may know others.
func (s State) Known() bool {
	switch s {
	case StateQueued, StatePending, StateRunning, StateNeedsReview, StateSucceeded, StateFailed, StateCanceled, StateLost:
		return true
	}
	return false
}

// Claimed reports whether a run in this state belongs to a node that may have sent it.
func (s State) Claimed() bool { return s == StatePending || s == StateRunning }

// Run is one attempt of an occurrence, as the ledger and the history keep it.
type Run struct {
	ID         string `json:"id"`
	Occurrence string `json:"occurrence"`
	Key        Key    `json:"key"`
	Version    int    `json:"version"`
	Cause      Cause  `json:"cause"`
	State      State  `json:"state"`
	Priority   int    `json:"priority,omitempty"`

	// ScheduledAt is the instant that the occurrence is called after, CoveredUntil the first
	// instant after the covered range (zero where there is none), Coalesced how many instants
	// the run stands for (0 and 1 both mean its own only).
	ScheduledAt  time.Time `json:"scheduledAt"`
	CoveredUntil time.Time `json:"coveredUntil,omitzero"`
	Coalesced    int       `json:"coalesced,omitempty"`

	// DueAt is when it may be sent: the instant plus jitter, or when a retry is due.
	DueAt   time.Time `json:"dueAt"`
	Attempt int       `json:"attempt"`
	RetryOf string    `json:"retryOf,omitempty"` // the first run of the occurrence
	// Again: another attempt of the occurrence follows this one, which has ended.
	Again bool `json:"again,omitempty"`
	// Retries counts the retries of the occurrence so far; Recovered: one attempt was a recovery.
	Retries   int  `json:"retries,omitempty"`
	Recovered bool `json:"recovered,omitempty"`
	// FirstStartedAt is when the first attempt of the occurrence began, whether or not it reached the
	// app; deadline counts from it.
	FirstStartedAt time.Time `json:"firstStartedAt,omitzero"`

	Node string `json:"node,omitempty"`
	Term int64  `json:"term,omitempty"`
	// Place is the pod, by UID, in which the node runs: a new process there knows that it is gone.
	Place string `json:"place,omitempty"`
	// Beat grows while the node that has the run says that it still works on it. Silent is how long,
	// in milliseconds, leaders have heard nothing of it, which outlives each of them.
	Beat   int64 `json:"beat,omitempty"`
	Silent int64 `json:"silent,omitempty"`
	// Cancel asks the run's node to end it.
	Cancel bool `json:"cancel,omitempty"`
	// Async: the app has accepted the run and says later how it ended.
	Async bool `json:"async,omitempty"`
	// Progress is what the app last said of its work; the value behind it is never changed.
	Progress *Progress `json:"progress,omitempty"`

	DecidedAt  time.Time       `json:"decidedAt"`
	FiredAt    time.Time       `json:"firedAt,omitzero"`
	EndedAt    time.Time       `json:"endedAt,omitzero"`
	Data       json.RawMessage `json:"data,omitempty"` // of a manual request, laid over the job's and the trigger's
	Request    string          `json:"request,omitempty"`
	OriginalOf string          `json:"originalOccurrence,omitempty"` // of a backfill or a rerun

	Code    Code   `json:"code,omitempty"`
	Status  int    `json:"status,omitempty"`  // HTTP status, 0 where no response arrived
	Message string `json:"message,omitempty"` // what the app said, or what went wrong; at most 1 KiB
	AppCode string `json:"appCode,omitempty"` // of a failure, in the app's own words
	// Unknown: the app may have done the work although no answer arrived.
	Unknown bool `json:"unknown,omitempty"`

	// Extra are the members that this program does not know, as a newer one has written them: they go
	// where the run goes. See [ReadRun] and [Run.Stored]. The map is never changed.
	Extra map[string]json.RawMessage `json:"-"`
}

// LateNote is what the message of a run begins with whose result came after its end.
const LateNote = "late result: "

// Noted reports whether a late result was noted on the run.
func (r *Run) Noted() bool { return strings.HasPrefix(r.Message, LateNote) }

// Progress is what an app says of a run while it works on it.
type Progress struct {
	Percent *int      `json:"percent,omitempty"` // 0 to 100; nil: it never said
	Text    string    `json:"text,omitempty"`    // at most [MaxProgressText] bytes
	At      time.Time `json:"at"`                // when it last said anything
}

// MaxProgressText bounds the text of a [Progress], of which the ledger holds one for each run.
const MaxProgressText = 256
