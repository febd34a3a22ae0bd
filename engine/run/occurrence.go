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
	// Last is the newest of the instants that a record of the history counts, where no later one is
	// known that it could end at: those of a fixed delay. Zero: ScheduledAt is its only one.
	Last time.Time `json:"last,omitzero"`
}

// Covers reports whether an instant lies in the range: the one it is called after always does.
func (s Skip) Covers(instant time.Time) bool {
	switch {
	case instant.Before(s.ScheduledAt):
		return false
	case s.CoveredUntil.IsZero():
		return instant.Equal(s.ScheduledAt) || !instant.After(s.Last)
	default:
		return instant.Equal(s.ScheduledAt) || instant.Before(s.CoveredUntil)
	}
}
