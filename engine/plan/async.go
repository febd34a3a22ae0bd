package plan

import (
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Accept notes that the app has taken on a run of that node and will say later how it ended. Whoever
// finds the run after that knows that nobody waits for an answer any more. It reports false where the
// node does not have the claim.
func Accept(l *state.Ledger, id, node string, firedAt time.Time) bool {
	r := l.Run(id)
	if r == nil || r.Node != node || !r.State.Claimed() {
		return false
	}
	r.Async, r.State = true, run.StateRunning
	if r.FiredAt.IsZero() {
		r.FiredAt = firedAt
	}
	return true
}

// Adopt gives to node the asynchronous runs of a process that is dead and whose app lives on, which
// orphaned names, and returns how many there are. The term with which they were sent stays theirs.
func Adopt(l *state.Ledger, node string, orphaned func(run.Run) bool) int {
	n := 0
	for i := range l.Runs {
		r := &l.Runs[i]
		if r.State.Claimed() && r.Async && r.Node != node && orphaned(*r) {
			r.Node, r.Silent = node, 0
			r.Beat++
			n++
		}
	}
	return n
}

// Verdict is what became of the app's word on a run.
type Verdict int

// The verdicts.
const (
	// VerdictUnknown: the ledger does not know the run.
	VerdictUnknown Verdict = iota
	// VerdictRecorded: the run has ended with it.
	VerdictRecorded
	// VerdictSame: the run had ended so before.
	VerdictSame
	// VerdictOver: the run had ended otherwise, for good.
	VerdictOver
	// VerdictEarly: a node has the run, and has not said yet that it was sent.
	VerdictEarly
	// VerdictUnawaited: nobody waits for the app's word on it.
	VerdictUnawaited
)

// Told is what [Tell] did.
type Told struct {
	Verdict Verdict
	Run     run.Run   // as it is now
	Settled []Settled // what ended by it
	Changed bool
}

// Tell records what the app says, of its own accord, of how an asynchronous run ended. Any node may
// be told, since the ledger alone decides. A word that comes after another end is noted on the run
// and, if it is a success, ends the further attempt that nobody has taken yet.
func Tell(l *state.Ledger, id string, report Report, job config.Job) Told {
	if r := l.Run(id); r != nil {
		switch {
		case !r.Async && !job.Async, r.State == run.StateQueued:
			return Told{Verdict: VerdictUnawaited, Run: *r}
		case r.State == run.StatePending && !r.Async:
			return Told{Verdict: VerdictEarly, Run: *r}
		}
		if report.Outcome.StartedAt.IsZero() {
			report.Outcome.StartedAt = r.FiredAt
		}
		s, ok := Settle(l, id, report, job)
		if !ok {
			return Told{Verdict: VerdictUnawaited, Run: *r}
		}
		return Told{Verdict: VerdictRecorded, Run: s.Run, Settled: []Settled{s}, Changed: true}
	}
	i := slices.IndexFunc(l.Finished, func(r run.Run) bool { return r.ID == id })
	if i < 0 {
		return Told{}
	}
	if t := Afterwards(l.Finished[i], report.Outcome, job); t.Verdict != VerdictOver {
		return t
	}
	canceled, noted := Late(l, l.Finished[i], report.Outcome)
	return Told{Verdict: VerdictOver, Run: l.Finished[i], Settled: canceled, Changed: noted}
}

// Afterwards judges the app's word on a run that has ended.
func Afterwards(ended run.Run, o run.Outcome, job config.Job) Told {
	t := Told{Verdict: VerdictOver, Run: ended}
	switch {
	case !ended.Async && !job.Async:
		t.Verdict = VerdictUnawaited
	case ended.State == o.State && !ended.Unknown:
		t.Verdict = VerdictSame
	}
	return t
}
