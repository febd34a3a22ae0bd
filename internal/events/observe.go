package events

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

var _ engine.Observer = (*Recorder)(nil)

// Observe implements [engine.Observer].
func (r *Recorder) Observe(event engine.Event) {
	switch e := event.(type) {
	case engine.TermBegan:
		r.note(note{reason: leaderElected, message: fmt.Sprintf("%s leads, term %d", r.opts.Node, e.Term)})
	case engine.LedgerGone:
		r.note(note{reason: ledgerGone, message: fmt.Sprintf(
			"%s found an empty ledger where a leader had written before: planning starts now, what was in flight is unknown. Was a ConfigMap deleted or replaced?", r.opts.Node)})
	case engine.TimesCut:
		r.note(note{reason: watermarkCut, message: decidedAhead(e)})
	case engine.FormatNewer:
		r.note(note{reason: newerFormat, message: fmt.Sprintf("%s does not lead and writes nothing: %v", r.opts.Node, e.Err)})
	case engine.CatalogRefused:
		r.note(note{reason: catalogRefused, message: fmt.Sprintf("the newest job definitions are not in force and those before stay so, because the catalog does not take them: %v", e.Err)})
	case engine.HistoryRefused:
		r.note(note{reason: historyRefused, message: fmt.Sprintf(
			"the history takes nothing, what ended waits in the ledger, and the oldest of it is dropped when that needs the room; jobs go on: %v", e.Err)})
	case engine.RecordsDropped:
		r.note(note{reason: recordsDropped, count: e.Count, message: "records of what ended were dropped, because the history takes none and the ledger needs the room"})
	case engine.Unreadable:
		r.note(note{reason: recordsUnreadable, message: fmt.Sprintf(
			"%d records of the %s cannot be read and are kept as they are; a job stands still whose decisions they hold. The first: %s",
			len(e.Records), e.Document, strings.Join(e.Records[:min(len(e.Records), 3)], ", "))})
	case engine.JobInvalid:
		r.note(note{reason: jobInvalid, subject: e.Job, message: fmt.Sprintf("job %s cannot be computed any more and stands still: %v", e.Job, e.Err)})
	case engine.RunEnded:
		r.runEnded(e)
	case engine.Missed:
		r.missed(e)
	}
}

// decidedAhead says what the ledger had decided that had not come yet.
func decidedAhead(e engine.TimesCut) string {
	what := "the ledger had decided"
	if !e.Watermark.IsZero() {
		what += " until " + stamp(e.Watermark)
	} else {
		what += " some triggers"
	}
	if n := len(e.Triggers); n > 0 {
		what += fmt.Sprintf(" (%s", e.Triggers[0])
		if n > 1 {
			what += fmt.Sprintf(" and %d other triggers", n-1)
		}
		what += ")"
	}
	return what + ", which lies in the future: cut to now, and instants since then are decided again"
}

// runEnded tells of what somebody has to look at. A failure that will be retried is none yet.
func (r *Recorder) runEnded(e engine.RunEnded) {
	n := note{subject: e.Run.Key.Job}
	switch e.Run.State {
	case run.StateFailed:
		if !e.Final {
			return
		}
		n.reason, n.message = runFailed, describe(e.Run, "failed")
	case run.StateLost:
		n.reason, n.message = runLost, describe(e.Run, "was lost with "+cmp.Or(e.Run.Node, "its sidecar"))
	case run.StateNeedsReview:
		n.reason, n.message = runNeedsReview, describe(e.Run, "needs review: whether the app did it is not known")
	case run.StateQueued, run.StatePending, run.StateRunning, run.StateSucceeded, run.StateCanceled:
		return
	}
	r.note(n)
}

// missed tells of instants that nobody chose to miss. Those of lost runs are told as such.
func (r *Recorder) missed(e engine.Missed) {
	if e.Reason != run.ReasonMisfire && e.Reason != run.ReasonWindow {
		return
	}
	span := "at " + stamp(e.ScheduledAt)
	if !e.CoveredUntil.IsZero() && e.Count > 1 {
		span = fmt.Sprintf("from %s until %s", stamp(e.ScheduledAt), stamp(e.CoveredUntil))
	}
	r.note(note{
		reason: instantsMissed, subject: e.Key.Job, count: e.Count,
		message: fmt.Sprintf("%d instants of %s %s got no run of their own (%s)", e.Count, e.Key, span, e.Reason),
	})
}

// describe says which run it is and what became of it.
func describe(r run.Run, what string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s of %s, instant %s, attempt %d, %s", r.ID, r.Key, stamp(r.ScheduledAt), r.Attempt, what)
	if r.Code != "" {
		fmt.Fprintf(&b, ": %s", r.Code)
	}
	if r.Status != 0 {
		fmt.Fprintf(&b, " status %d", r.Status)
	}
	if r.Message != "" {
		fmt.Fprintf(&b, ": %s", r.Message)
	}
	return b.String()
}

// ObserveElection tells how terms of this sidecar end, and what keeps it from competing.
func (r *Recorder) ObserveElection(event election.Event) {
	switch e := event.(type) {
	case election.TermEnded:
		n := note{reason: leadershipHandedOver, message: fmt.Sprintf("%s handed the leadership over: %v", r.opts.Node, e.Err)}
		switch {
		case errors.Is(e.Err, election.ErrForeign):
			n.reason, n.message = leaseRefused, fmt.Sprintf("%s stopped leading: %v", r.opts.Node, e.Err)
		case e.Lost:
			n.reason, n.message = leadershipLost, fmt.Sprintf("%s lost the leadership: %v", r.opts.Node, e.Err)
		case errors.Is(e.Err, engine.ErrLedgerFailing), errors.Is(e.Err, engine.ErrTermOver), errors.Is(e.Err, engine.ErrNewerFormat):
			n.reason, n.message = steppedDown, fmt.Sprintf("%s stepped down: %v", r.opts.Node, e.Err)
		}
		r.note(n)
	case election.Obstructed:
		r.note(note{reason: leaseRefused, message: fmt.Sprintf("%s cannot compete for the leadership: %v", r.opts.Node, e.Err)})
	}
}

// JobsSeen takes note of the UID of the ConfigMap with the definitions.
func (r *Recorder) JobsSeen(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobsUID = uid
}

// JobsRefused tells that a version of the definitions is not in force.
func (r *Recorder) JobsRefused(origin string, err error) {
	r.note(note{reason: jobsRefused, message: fmt.Sprintf("job definitions of %s are refused, the last good ones stay in force: %v", origin, err)})
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
