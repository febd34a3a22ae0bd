package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// What is kept of an answer or an error, in bytes: of a run that has ended, and of one that stays in the
// ledger until somebody has looked at it.
const (
	maxMessage       = 1024
	maxReviewMessage = 256
)

// Report is what a node says of a run that it held.
type Report struct {
	Outcome run.Outcome
	// NewID names the retry, if there is one.
	NewID func() string
}

// Settled is what became of a run that ended.
type Settled struct {
	Run   run.Run // as it ended
	Retry run.Run // the further attempt, where ID is not empty
}

// Final reports whether the occurrence has ended with this run.
func (s Settled) Final() bool { return s.Retry.ID == "" && s.Run.State.Ended() }

// Settle records the outcome of a run that the reporting node had claimed, and enqueues the retry
// that it calls for: a failure and its retry are one swap. A result that comes after the run was
// put up for review resolves it. It reports false, and changes nothing, where the ledger does not
// hold the run as open any more: the verdict that came first stands.
func Settle(l *state.Ledger, id string, report Report, job config.Job) (Settled, bool) {
	open := l.Run(id)
	if open == nil {
		return Settled{}, false
	}
	r := *open
	o := report.Outcome
	r.Code, r.Status, r.Unknown = o.Code, o.Status, o.Unknown
	r.Message, r.AppCode = Clip(o.Message), o.AppCode
	r.Async = r.Async || o.Told
	if !o.StartedAt.IsZero() {
		r.FiredAt = o.StartedAt
	}
	if r.FirstStartedAt.IsZero() {
		// An app that refuses connections for hours does not stretch the deadline by them.
		if r.FirstStartedAt = o.BegunAt; r.FirstStartedAt.IsZero() {
			r.FirstStartedAt = o.StartedAt
		}
	}
	if job.Recovery == config.RecoveryReview && o.Unknown && o.State == run.StateFailed {
		if open.State == run.StateNeedsReview {
			return Settled{}, false // it says nothing new
		}
		r.State, r.Message = run.StateNeedsReview, clip(o.Message, maxReviewMessage)
		*open = r
		return Settled{Run: r}, true
	}
	r.State, r.EndedAt = o.State, o.EndedAt
	out := Settled{Run: r}
	if again, ok := retryOf(&out.Run, o, job, report.NewID); ok {
		out.Retry = again
	}
	end(l, out.Run, out.Retry)
	return out, true
}

// Resolve ends a run that needs review, as a person says that it ended. What had been recorded of it stays
// only as far as it agrees: the code, the status and the app's own code of a failure are not those of a run
// that did not fail, and the message tells what was overruled. It reports false where the ledger holds no such run.
func Resolve(l *state.Ledger, id string, as run.State, message string, now time.Time) (Settled, bool) {
	r := l.Run(id)
	if r == nil || r.State != run.StateNeedsReview || !as.Ended() || as == run.StateLost {
		return Settled{}, false
	}
	resolved := *r
	resolved.State, resolved.EndedAt, resolved.Unknown = as, now, false
	resolved.Message = Clip("resolved: " + message)
	if as != run.StateFailed {
		if r.Code != "" {
			resolved.Message = Clip(fmt.Sprintf("resolved: %s (before: %s, %s)", message, r.Code, r.Message))
		}
		resolved.Code, resolved.Status, resolved.AppCode = "", 0, ""
		if as == run.StateCanceled {
			resolved.Code = run.CodeCanceled
		}
	}
	end(l, resolved, run.Run{})
	return Settled{Run: resolved}, true
}

// end moves a run out of the open ones, adds the attempt that follows it if there is one, and
// lets a fixed delay begin where there is none.
func end(l *state.Ledger, ended, again run.Run) {
	l.Remove(ended.ID)
	ended.Data, ended.Again = nil, again.ID != ""
	l.Finished = append(l.Finished, ended)
	if again.ID != "" {
		l.Runs = append(l.Runs, again)
		return
	}
	// A later occurrence is the one that is awaited: this one is of the time before an edit.
	awaited := func(r run.Run) bool {
		return r.Occurrence == ended.Occurrence || r.Key == ended.Key && r.ScheduledAt.After(ended.ScheduledAt)
	}
	if t, ok := l.Triggers[ended.Key]; ok && t.AwaitsEnd && !slices.ContainsFunc(l.Runs, awaited) {
		t.AwaitsEnd, t.LastEnd = false, ended.EndedAt
		l.SetTrigger(ended.Key, t)
	}
}

// HandBack gives up a claim that was not used: the run waits again, with its ID and its attempt,
// for a node that may send it. Only the node that has it knows that nothing was sent, even where it
// has said before that it works on it. It reports false where the node does not have the claim any
// more.
func HandBack(l *state.Ledger, id, node string) bool {
	r := l.Run(id)
	if r == nil || r.Node != node || !r.State.Claimed() {
		return false
	}
	r.State, r.Node, r.Place, r.Term, r.Beat, r.Silent = run.StateQueued, "", "", 0, 0, 0
	r.FiredAt = time.Time{}
	return true
}

// retryOf returns the further attempt that a failed one calls for. A deadline that leaves no
// time for it ends the occurrence as timed out, which it notes in ended.
func retryOf(ended *run.Run, o run.Outcome, job config.Job, newID func() string) (run.Run, bool) {
	if o.State != run.StateFailed || !retryable(o, job.Retry) || ended.Retries >= job.Retry.MaxRetries {
		return run.Run{}, false
	}
	if o.Unknown && job.Retry.NoUnknown {
		return run.Run{}, false
	}
	due := o.EndedAt.Add(RetryDelay(job.Retry, ended.Retries+1, o.RetryAfter, ended.ID)).Round(0).UTC().Truncate(tick)
	if job.Deadline > 0 && !ended.FirstStartedAt.IsZero() && due.After(ended.FirstStartedAt.Add(job.Deadline)) {
		ended.Code = run.CodeTimeout
		ended.Message = Clip(fmt.Sprintf("deadline of %s leaves no time for another attempt; the last one: %s", job.Deadline, ended.Message))
		return run.Run{}, false
	}
	return another(*ended, run.CauseRetry, due, newID()), true
}

// retryable reports whether an outcome is of a kind that is repeated: by the job's own list of
// statuses where it has one and the app answered, else by the general rule.
func retryable(o run.Outcome, r config.Retry) bool {
	if o.Status != 0 && len(r.Statuses) > 0 {
		return slices.Contains(r.Statuses, o.Status)
	}
	return o.Retryable
}

// another is the next attempt of an occurrence: the same in all that the app may compare, with
// the next attempt number.
func another(ended run.Run, cause run.Cause, due time.Time, id string) run.Run {
	again := run.Run{
		ID: id, Occurrence: ended.Occurrence, Key: ended.Key, Version: ended.Version, Cause: cause,
		State: run.StateQueued, Priority: ended.Priority,
		ScheduledAt: ended.ScheduledAt, CoveredUntil: ended.CoveredUntil, Coalesced: ended.Coalesced,
		DueAt: due, Attempt: ended.Attempt + 1, RetryOf: ended.RetryOf, FirstStartedAt: ended.FirstStartedAt,
		Retries: ended.Retries, Recovered: ended.Recovered,
		DecidedAt: ended.EndedAt, Data: ended.Data, Request: ended.Request, OriginalOf: ended.OriginalOf,
	}
	if again.RetryOf == "" {
		again.RetryOf = ended.ID
	}
	if again.FirstStartedAt.IsZero() {
		again.FirstStartedAt = ended.FiredAt // of a run that was lost: its node had said that it was sent
	}
	switch cause {
	case run.CauseRetry:
		again.Retries++
	case run.CauseRecovery:
		again.Recovered = true
	case run.CauseSchedule, run.CauseManual, run.CauseBackfill, run.CauseRerun:
	}
	return again
}

// Clip cuts a message to the length that is kept, at a rune's border.
func Clip(s string) string { return clip(s, maxMessage) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut]
}
