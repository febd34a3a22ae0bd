package run

import "time"

// Decision says what became of an occurrence.
type Decision string

// The decisions about an occurrence.
const (
	DecisionFired     Decision = "Fired"
	DecisionCoalesced Decision = "Coalesced"
	DecisionSkipped   Decision = "Skipped"
)

// Reason says why instants got no run of their own. Ledger, API and metrics use the same words.
type Reason string

// The reasons for a missed instant.
const (
	ReasonMisfire    Reason = "misfire"
	ReasonWindow     Reason = "window"
	ReasonOverlap    Reason = "overlap"
	ReasonResumeSkip Reason = "resume-skip"
	ReasonLost       Reason = "lost"
)

// Reasons lists every [Reason].
func Reasons() []Reason {
	return []Reason{ReasonMisfire, ReasonWindow, ReasonOverlap, ReasonResumeSkip, ReasonLost}
}

// Skip is an occurrence without a run: the instants in [ScheduledAt, CoveredUntil) of one
// trigger and version, passed over for one reason.
type Skip struct {
	Occurrence   string    `json:"occurrence"`
	Key          Key       `json:"key"`
	Version      int       `json:"version"`
	Reason       Reason    `json:"reason"`
	ScheduledAt  time.Time `json:"scheduledAt"`
	CoveredUntil time.Time `json:"coveredUntil,omitzero"`
	Count        int       `json:"count"`
	DecidedAt    time.Time `json:"decidedAt"`
}
