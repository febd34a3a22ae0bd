package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// base is when the job of these tests was first seen: a rate of 1 s, so instants 1 to 5 are base
// + 1 s to base + 5 s, and all have to be accounted for.
var base = time.Date(2026, 11, 30, 12, 0, 0, 250_000_000, time.UTC)

func second(n float64) time.Time { return base.Add(time.Duration(n * float64(time.Second))) }

// good is the evidence of a run in which each instant fired once, on time.
func good(t *testing.T) evidence {
	t.Helper()
	e := evidence{Began: base, Until: second(5.5), testimony: testimony{
		Runs: make(map[string]run.Run), Skips: make(map[string]run.Skip), Ranges: make(map[string]run.Skip), Busy: make(map[string]bool),
		Versions: map[string]map[int]state.Version{"rate": {1: {
			Number: 1, EffectiveAt: base, Bases: map[string]time.Time{"default": base},
		}}},
		Terms: map[int64]term{1: {Holder: "a", Claimed: second(0.9)}},
	}}
	define(&e, func(*config.Job) {})
	for n := 1; n <= 5; n++ {
		fire(&e, n, 1, second(float64(n)))
	}
	return e
}

// define changes what the one version says of the job, which is a serial one that coalesces what is late by
// more than half a second.
func define(e *evidence, change func(*config.Job)) {
	job := config.Job{Name: "rate", Overlap: config.OverlapSerial, Triggers: []config.Trigger{{
		Name: "default", Schedule: schedule.Schedule{Kind: schedule.KindRate, Interval: time.Second},
		Misfire: config.Misfire{Policy: config.MisfireRunOnce, Grace: 500 * time.Millisecond},
	}}}
	change(&job)
	v := e.Versions["rate"][1]
	v.Definition, _ = json.Marshal(job)
	e.Versions["rate"][1] = v
}

// fire adds a run of instant n under a term, and its arrival a millisecond after it was fired.
func fire(e *evidence, n int, under int64, fired time.Time) {
	id := fmt.Sprint("run-", n-1)
	if _, taken := e.Runs[id]; taken {
		id += "-again"
	}
	r := run.Run{
		ID: id, Occurrence: fmt.Sprint("occurrence-", n), Key: run.Key{Job: "rate", Trigger: "default"}, Version: 1, Cause: run.CauseSchedule,
		State: run.StateSucceeded, Status: 200, ScheduledAt: second(float64(n)), CoveredUntil: second(float64(n + 1)), DueAt: second(float64(n)),
		Attempt: 1, Term: under, DecidedAt: second(float64(n) - 0.1), FiredAt: fired, EndedAt: fired.Add(100 * time.Millisecond),
	}
	e.Runs[id] = r
	arrive(e, r)
}

func arrive(e *evidence, r run.Run) {
	e.Arrivals = append(e.Arrivals, arrival{
		At: r.FiredAt.Add(time.Millisecond), FiredAt: r.FiredAt, Run: r.ID, Occurrence: r.Occurrence, Attempt: r.Attempt, Job: "rate",
		ScheduledAt: r.ScheduledAt, Term: r.Term,
	})
}

// again adds an attempt after the last one of instant n, 200 ms after it was due, by a cause.
func again(e *evidence, n, number int, cause run.Cause) {
	id := fmt.Sprint("run-", n-1)
	r := e.Runs[id]
	r.ID, r.Attempt, r.Cause = fmt.Sprint(id, ".", number), number, cause
	r.DueAt = r.DueAt.Add(time.Duration(number-1) * 200 * time.Millisecond)
	r.FiredAt, r.EndedAt, r.RetryOf = r.DueAt, r.DueAt.Add(100*time.Millisecond), id
	r.State, r.Status, r.Code = run.StateSucceeded, 200, ""
	e.Runs[r.ID] = r
	arrive(e, r)
}

// change changes what is recorded of a run.
func change(e *evidence, id string, how func(*run.Run)) {
	r := e.Runs[id]
	how(&r)
	e.Runs[id] = r
}

// skip passes over count instants from n on, for a reason, at a time.
func skip(e *evidence, n, count int, reason run.Reason, at time.Time) run.Skip {
	for i := range count {
		forget(e, n+i)
	}
	s := run.Skip{
		Occurrence: fmt.Sprint("occurrence-", n), Key: run.Key{Job: "rate", Trigger: "default"}, Version: 1, Reason: reason,
		ScheduledAt: second(float64(n)), CoveredUntil: second(float64(n + count)), Count: count, DecidedAt: at,
	}
	e.Skips[skipID(s)] = s
	return s
}

func skipsLate(j *config.Job)    { j.Triggers[0].Misfire.Policy = config.MisfireSkip }
func skipsOverlap(j *config.Job) { j.Overlap = config.OverlapSkip }
func retriesTwice(j *config.Job) {
	j.Retry = config.Retry{MaxRetries: 2, Delay: 100 * time.Millisecond}
}
func reruns(j *config.Job) { j.Recovery = config.RecoveryRerun }

func fails(r *run.Run) { r.State, r.Status, r.Code = run.StateFailed, 503, run.CodeFailed }

func getsLost(r *run.Run) {
	r.State, r.Status, r.Code, r.Unknown = run.StateLost, 0, run.CodeFailed, true
}

// forget takes the decision about instant n out of the evidence.
func forget(e *evidence, n int) {
	for id, r := range e.Runs {
		if r.ScheduledAt.Equal(second(float64(n))) {
			delete(e.Runs, id)
		}
	}
	for i, a := range e.Arrivals {
		if a.ScheduledAt.Equal(second(float64(n))) {
			e.Arrivals = append(e.Arrivals[:i:i], e.Arrivals[i+1:]...)
			return
		}
	}
}

// TestJudge plants each thing that must not be into good evidence: the judge is only worth what it
// would find.
func TestJudge(t *testing.T) {
	decidedAt := func(n float64) func(*run.Run) { return func(r *run.Run) { r.DecidedAt = second(n) } }
	five := jobAccount{Job: "rate", Instants: 5, Fired: 5, Arrived: 5, WorstLate: time.Millisecond}
	with := func(change func(*jobAccount)) jobAccount {
		j := five
		change(&j)
		return j
	}
	tests := map[string]struct {
		plant func(*evidence)
		want  jobAccount
		says  []string // of each violation
	}{
		"each instant fired once": {plant: func(*evidence) {}, want: five},
		"an attempt that arrives again is a duplicate": {
			plant: func(e *evidence) { e.Arrivals = append(e.Arrivals, e.Arrivals[2]) },
			want:  with(func(j *jobAccount) { j.Arrived, j.Duplicates = 6, 1 }),
			says:  []string{"attempt 1 arrived twice"},
		},
		"an occurrence that was given two runs was decided twice, and arrives twice": {
			plant: func(e *evidence) { fire(e, 3, 1, second(3.5)) },
			want: with(func(j *jobAccount) {
				j.Arrived, j.Duplicates, j.DecidedTwice, j.WorstLate = 6, 1, 1, 501*time.Millisecond
			}),
			says: []string{"arrived twice", "is recorded as run"},
		},
		"an instant without a decision is unaccounted for": {
			plant: func(e *evidence) { forget(e, 3) },
			want:  with(func(j *jobAccount) { j.Arrived, j.Fired, j.Unaccounted = 4, 4, 1 }),
			says:  []string{"12:00:03.250000 is not accounted for"},
		},
		"an instant that was passed over is accounted for": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 3, 1, run.ReasonMisfire, second(3.6))
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped = 4, 4, 1 }),
		},
		"an instant that was passed over and fired was decided twice": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 2, 2, run.ReasonMisfire, second(3.6))
				fire(e, 3, 1, second(3))
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.DecidedTwice = 4, 3, 1, 1 }),
			says: []string{"12:00:03.250000 was decided 2 times"},
		},
		"instants that share a run are accounted for": {
			plant: func(e *evidence) {
				forget(e, 3)
				forget(e, 4)
				change(e, "run-1", func(r *run.Run) { r.Coalesced, r.CoveredUntil, r.DecidedAt = 3, second(5), second(4.2) })
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Coalesced = 3, 3, 2 }),
		},
		"what was undecided when the job left is left": {
			plant: func(e *evidence) {
				forget(e, 5)
				e.Versions["rate"][2] = state.Version{Number: 2, EffectiveAt: second(5.2)}
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Left = 4, 4, 1 }),
		},
		"a gap before a job left is unaccounted for": {
			plant: func(e *evidence) {
				forget(e, 4)
				e.Versions["rate"][2] = state.Version{Number: 2, EffectiveAt: second(5.2)}
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Unaccounted = 4, 4, 1 }),
			says: []string{"12:00:04.250000 is not accounted for"},
		},
		"a callback before its instant is early": {
			plant: func(e *evidence) { e.Arrivals[1].At = second(1.999) },
			want:  with(func(j *jobAccount) { j.Early = 1 }),
			says:  []string{"arrived 1ms before its time"},
		},
		"a callback before its instant is early, whatever its run says of when it is due (B4)": {
			plant: func(e *evidence) {
				e.Arrivals[1].At = second(1.999)
				change(e, "run-1", func(r *run.Run) { r.DueAt = second(1.9) })
			},
			want: with(func(j *jobAccount) { j.Early, j.Groundless = 1, 1 }),
			says: []string{"arrived 1ms before its time", "it was due -100ms after its instant"},
		},
		"a callback that starts before its instant and arrives after it is early": {
			plant: func(e *evidence) { change(e, "run-1", func(r *run.Run) { r.FiredAt = second(1.999) }) },
			want:  with(func(j *jobAccount) { j.Early = 1 }),
			says:  []string{"started 1ms before its time"},
		},
		"a callback for another instant than its run's is unexplained": {
			plant: func(e *evidence) { e.Arrivals[1].ScheduledAt = second(1) },
			want:  with(func(j *jobAccount) { j.Unexplained = 1 }),
			says:  []string{"arrived for the instant 12:00:01.250000 and is recorded for 12:00:02.250000"},
		},
		"a run that is due later than its jitter allows is groundless": {
			plant: func(e *evidence) { change(e, "run-1", func(r *run.Run) { r.DueAt, r.FiredAt = second(2.0005), second(2.0006) }) },
			want:  with(func(j *jobAccount) { j.Groundless = 1 }),
			says:  []string{"it was due 500µs after its instant"},
		},
		"a decision long before its instant is groundless": {
			plant: func(e *evidence) { change(e, "run-1", decidedAt(1.4)) },
			want:  with(func(j *jobAccount) { j.Groundless = 1 }),
			says:  []string{"it was decided 600ms ahead"},
		},
		"retries and one recovery that the job asks for are called for": {
			plant: func(e *evidence) {
				define(e, func(j *config.Job) { retriesTwice(j); reruns(j) })
				again(e, 3, 2, run.CauseRetry)
				again(e, 3, 3, run.CauseRecovery)
				again(e, 3, 4, run.CauseRetry)
				change(e, "run-2", fails)
				change(e, "run-2.2", getsLost)
				change(e, "run-2.3", fails)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Lost, j.Recovered, j.Retried = 8, 1, 1, 2 }),
		},
		"a retry of a job without retries is extra (B5)": {
			plant: func(e *evidence) {
				again(e, 3, 2, run.CauseRetry)
				change(e, "run-2", fails)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 6, 1, 1 }),
			says: []string{"attempt 2, run run-2.2 for retry, was not called for: the occurrence had all its retries"},
		},
		"a retry beyond the last is extra (B5)": {
			plant: func(e *evidence) {
				define(e, retriesTwice)
				for number := 2; number <= 4; number++ {
					again(e, 3, number, run.CauseRetry)
				}
				for _, id := range []string{"run-2", "run-2.2", "run-2.3"} {
					change(e, id, fails)
				}
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 8, 3, 1 }),
			says: []string{"attempt 4, run run-2.4 for retry, was not called for: the occurrence had all its retries"},
		},
		"a retry of what did not fail is extra": {
			plant: func(e *evidence) {
				define(e, retriesTwice)
				again(e, 3, 2, run.CauseRetry)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 6, 1, 1 }),
			says: []string{"the one before it is Succeeded"},
		},
		"a retry of a failure that is final is extra": {
			plant: func(e *evidence) {
				define(e, retriesTwice)
				again(e, 3, 2, run.CauseRetry)
				change(e, "run-2", func(r *run.Run) { fails(r); r.Status = 501 })
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 6, 1, 1 }),
			says: []string{"the failure before it is none that is repeated"},
		},
		"a retry before its delay is extra": {
			plant: func(e *evidence) {
				define(e, func(j *config.Job) { retriesTwice(j); j.Retry.Delay = 300 * time.Millisecond })
				again(e, 3, 2, run.CauseRetry)
				change(e, "run-2", fails)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 6, 1, 1 }),
			says: []string{"it is due before its time"},
		},
		"a second recovery is extra, also after a retry (B5)": {
			plant: func(e *evidence) {
				define(e, func(j *config.Job) { retriesTwice(j); reruns(j) })
				again(e, 3, 2, run.CauseRecovery)
				again(e, 3, 3, run.CauseRetry)
				again(e, 3, 4, run.CauseRecovery)
				change(e, "run-2", getsLost)
				change(e, "run-2.2", fails)
				change(e, "run-2.3", getsLost)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Lost, j.Recovered, j.Retried, j.Extra = 8, 2, 2, 1, 1 }),
			says: []string{"the occurrence had its recovery already"},
		},
		"a recovery that the job does not ask for is extra": {
			plant: func(e *evidence) {
				again(e, 3, 2, run.CauseRecovery)
				change(e, "run-2", getsLost)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Lost, j.Recovered, j.Extra = 6, 1, 1, 1 }),
			says: []string{"its job does not recover what is lost"},
		},
		"a retry that does not come is missing": {
			plant: func(e *evidence) {
				define(e, retriesTwice)
				change(e, "run-2", fails)
			},
			want: with(func(j *jobAccount) { j.Missing = 1 }),
			says: []string{"ended as Failed with status 503 and no retry follows"},
		},
		"a recovery that does not come is missing": {
			plant: func(e *evidence) {
				define(e, reruns)
				change(e, "run-2", getsLost)
			},
			want: with(func(j *jobAccount) { j.Lost, j.Missing = 1, 1 }),
			says: []string{"no recovery follows"},
		},
		"an attempt without the one before it is extra": {
			plant: func(e *evidence) {
				define(e, retriesTwice)
				again(e, 3, 3, run.CauseRetry)
				change(e, "run-2", fails)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 6, 1, 1 }),
			says: []string{"the attempt before it is not recorded"},
		},
		"a skip within the grace is groundless (B8)": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 3, 2, run.ReasonMisfire, second(4.3))
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 3, 3, 2, 1 }),
			says: []string{"2 instants from 12:00:03.250000 on were skipped at 12:00:04.550000 for misfire: the last of them was late by 300ms only"},
		},
		"a misfire of a job that does not skip is groundless (B8)": {
			plant: func(e *evidence) { skip(e, 3, 1, run.ReasonMisfire, second(3.9)) },
			want:  with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 4, 4, 1, 1 }),
			says:  []string{"its job does not skip what is late"},
		},
		"a skip ahead of time is groundless": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 3, 2, run.ReasonMisfire, second(3.9))
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 3, 3, 2, 1 }),
			says: []string{"was not due yet"},
		},
		"a window that the job does not have is groundless": {
			plant: func(e *evidence) { skip(e, 3, 1, run.ReasonWindow, second(9)) },
			want:  with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 4, 4, 1, 1 }),
			says:  []string{"they were late by 6s only"},
		},
		"a resume where nothing was paused is groundless": {
			plant: func(e *evidence) { skip(e, 3, 1, run.ReasonResumeSkip, second(3.9)) },
			want:  with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 4, 4, 1, 1 }),
			says:  []string{"nothing was paused"},
		},
		"an overlap with a run that the ledger shows is accounted for": {
			plant: func(e *evidence) {
				define(e, skipsOverlap)
				e.Busy[skipID(skip(e, 3, 1, run.ReasonOverlap, second(3)))] = true
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped = 4, 4, 1 }),
		},
		"an overlap without a run in the ledger is groundless, though the records would allow it (B8)": {
			plant: func(e *evidence) {
				define(e, skipsOverlap)
				e.Busy[skipID(skip(e, 3, 1, run.ReasonOverlap, second(3)))] = false
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 4, 4, 1, 1 }),
			says: []string{"its job had no open run"},
		},
		"an overlap that was not seen to appear is judged by the records": {
			plant: func(e *evidence) {
				define(e, skipsOverlap)
				skip(e, 1, 1, run.ReasonOverlap, second(1)) // nothing was decided before
				skip(e, 3, 1, run.ReasonOverlap, second(3))
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 3, 3, 2, 1 }),
			says: []string{"1 instants from 12:00:01.250000 on were skipped"},
		},
		"an overlap of a job that waits is groundless": {
			plant: func(e *evidence) { e.Busy[skipID(skip(e, 3, 1, run.ReasonOverlap, second(3)))] = true },
			want:  with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 4, 4, 1, 1 }),
			says:  []string{"its job does not skip what overlaps"},
		},
		"coalescing within the grace is groundless (B8)": {
			plant: func(e *evidence) {
				forget(e, 3)
				change(e, "run-1", func(r *run.Run) { r.Coalesced, r.CoveredUntil, r.DecidedAt = 2, second(4), second(2.4) })
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Coalesced, j.Groundless = 4, 4, 1, 1 }),
			says: []string{"stands for 2 instants: it was late by 400ms only"},
		},
		"coalescing what is not due yet is groundless": {
			plant: func(e *evidence) {
				forget(e, 3)
				change(e, "run-1", func(r *run.Run) { r.Coalesced, r.CoveredUntil, r.DecidedAt = 2, second(4), second(2.9) })
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Coalesced, j.Groundless = 4, 4, 1, 1 }),
			says: []string{"one of them was not due yet"},
		},
		"one run for less than all that was due is groundless": {
			plant: func(e *evidence) { change(e, "run-1", decidedAt(3.2)) },
			want:  with(func(j *jobAccount) { j.Groundless = 1 }),
			says:  []string{"it leaves out 12:00:03.250000"},
		},
		"coalescing of a job that catches up is groundless": {
			plant: func(e *evidence) {
				define(e, func(j *config.Job) { j.Triggers[0].Misfire.Policy = config.MisfireCatchUp })
				forget(e, 3)
				change(e, "run-1", func(r *run.Run) { r.Coalesced, r.CoveredUntil, r.DecidedAt = 2, second(4), second(3.6) })
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Coalesced, j.Groundless = 4, 4, 1, 1 }),
			says: []string{"its job does not coalesce"},
		},
		"a late run of a job that skips what is late is groundless": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				change(e, "run-1", decidedAt(2.6))
			},
			want: with(func(j *jobAccount) { j.Groundless = 1 }),
			says: []string{"its job skips what is late"},
		},
		"a failure that never reached the app and arrived is unexplained": {
			plant: func(e *evidence) {
				change(e, "run-1", func(r *run.Run) { r.State, r.Status, r.Code = run.StateFailed, 0, run.CodeFailed })
			},
			want: with(func(j *jobAccount) { j.Unexplained = 1 }),
			says: []string{"is recorded as never having reached the app"},
		},
		"an edit that moves a rate is unexplained (B9)": {
			plant: func(e *evidence) {
				v := e.Versions["rate"][1]
				v.Number, v.EffectiveAt, v.Bases = 2, second(5.2), map[string]time.Time{"default": second(1)}
				e.Versions["rate"][2] = v
			},
			want: with(func(j *jobAccount) { j.Unexplained = 1 }),
			says: []string{"version 2 counts from"},
		},
		"a callback without a record is unexplained": {
			plant: func(e *evidence) { e.Arrivals[4].Run = "nobody's" },
			want:  with(func(j *jobAccount) { j.Unexplained = 2 }), // the recorded one never arrived
			says:  []string{"as run nobody's", "never arrived"},
		},
		"a run between the instants is unexplained": {
			plant: func(e *evidence) {
				r := e.Runs["run-4"]
				r.ID, r.Occurrence, r.State, r.ScheduledAt, r.FiredAt, r.EndedAt = "run-x", "occurrence-x", run.StateLost, second(4.5), time.Time{}, second(5)
				r.DueAt, r.DecidedAt = second(4.5), second(4.4)
				e.Runs["run-x"] = r
			},
			want: with(func(j *jobAccount) { j.Unexplained, j.Lost = 1, 1 }),
			says: []string{"no instant of its definitions"},
		},
		"a run that never ends is unexplained": {
			plant: func(e *evidence) {
				r := e.Runs["run-1"]
				r.State, r.EndedAt = run.StatePending, time.Time{}
				e.Runs["run-1"] = r
			},
			want: with(func(j *jobAccount) { j.Unexplained = 1 }),
			says: []string{"never ended"},
		},
		"runs of a serial job that overlap are unexplained": {
			plant: func(e *evidence) {
				r := e.Runs["run-1"]
				r.EndedAt = second(3.4)
				e.Runs["run-1"] = r
			},
			want: with(func(j *jobAccount) { j.Unexplained = 1 }),
			says: []string{"before run run-1 had ended"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := good(t)
			tt.plant(&e)
			got := judge(e)
			if diff := cmp.Diff([]jobAccount{tt.want}, got.Jobs); diff != "" {
				t.Errorf("judge() (-want +got):\n%s", diff)
			}
			if len(got.Violations) != len(tt.says) {
				t.Errorf("violations %q, want %d", got.Violations, len(tt.says))
			}
			for _, want := range tt.says {
				if !strings.Contains(strings.Join(got.Violations, "\n"), want) {
					t.Errorf("violations %q, want one that says %q", got.Violations, want)
				}
			}
		})
	}
}

// TestJudgeTerms: a callback under a term that starts after one of a later term was committed is
// told apart from one whose sender stood still between its check and the send.
func TestJudgeTerms(t *testing.T) {
	tests := map[string]struct {
		fired        time.Time // of instant 3, under term 1; term 2 has committed one at 3.1
		delay        time.Duration
		frozen       bool
		late, freeze int
	}{
		"before the other was committed":     {fired: second(3)},
		"before it, though it arrives later": {fired: second(3.09), delay: 100 * time.Millisecond},
		"after it":                           {fired: second(3.2), late: 1},
		"after it, by a process that stood still between check and send": {fired: second(3.09), delay: time.Second, frozen: true, freeze: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := good(t)
			e.Terms[2] = term{Holder: "b", Claimed: second(3.1)}
			forget(&e, 3)
			fire(&e, 3, 1, tt.fired)
			a := &e.Arrivals[len(e.Arrivals)-1]
			a.At, a.Frozen = a.At.Add(tt.delay), tt.frozen
			for _, n := range []int{4, 5} {
				forget(&e, n)
				fire(&e, n, 2, second(float64(n)))
			}
			got := judge(e)
			if got.LateSends != tt.late || got.FrozenSends != tt.freeze || len(got.Violations) != tt.late {
				t.Errorf("late %d, frozen %d, violations %q; want %d and %d", got.LateSends, got.FrozenSends, got.Violations, tt.late, tt.freeze)
			}
			if got.Leaders != 2 {
				t.Errorf("terms with callbacks %d, want 2", got.Leaders)
			}
		})
	}
}

// TestJudgeShare: an engine that passes everything over, with whatever reasons, does not pass, nor does one that
// fires and reaches nobody.
func TestJudgeShare(t *testing.T) {
	tests := map[string]struct {
		plant func(*evidence)
		says  []string
	}{
		"all fired": {plant: func(*evidence) {}},
		"all skipped, each for a reason that holds": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 1, 5, run.ReasonMisfire, second(9))
			},
			says: []string{
				"rate: 0 of 5 instants, 0 %, got a run of their own: less than 10 %",
				"all jobs: 0 of 5 instants, 0 %, got a run of their own: less than 40 %",
			},
		},
		"a definition that names nothing": {
			plant: func(e *evidence) { define(e, func(j *config.Job) { j.Triggers[0].Schedule.Interval = time.Hour }) },
			says:  []string{"rate: its definitions name 0 instants, less than the 5 of every 1s"},
		},
		"runs that reach nobody": {
			plant: func(e *evidence) {
				for id := range e.Runs {
					change(e, id, getsLost)
				}
				e.Arrivals = nil
			},
			says: []string{"of 5 runs 0 reached the app, less than 80 %"},
		},
		"a calm stretch in which all fired": {plant: func(e *evidence) { e.Calm = span{second(2), second(5)} }},
		"a skip in a calm stretch, for a reason that holds": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(5)}
				define(e, skipsLate)
				skip(e, 3, 1, run.ReasonMisfire, second(3.6))
			},
			says: []string{"rate: of 12:00:03.250000, when nothing went wrong any more, there is no run"},
		},
		"a coalesced run in a calm stretch": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(3)}
				forget(e, 3)
				change(e, "run-1", func(r *run.Run) { r.Coalesced, r.CoveredUntil, r.DecidedAt = 2, second(4), second(3.2) })
			},
			says: []string{"rate: of 12:00:02.250000, when nothing went wrong any more, the run stands for others as well"},
		},
		"a run in a calm stretch that is lost": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(5)}
				change(e, "run-2", getsLost)
			},
			says: []string{"rate: of 12:00:03.250000, when nothing went wrong any more, the run is Lost"},
		},
		"a busy machine in a calm stretch": {
			plant: func(e *evidence) {
				e.Calm = span{second(1), second(5)}
				define(e, skipsOverlap)
				e.Busy[skipID(skip(e, 3, 1, run.ReasonOverlap, second(3)))] = true
			},
		},
		"a calm stretch in which hardly anything fired, as the ledger has it for a reason": {
			plant: func(e *evidence) {
				e.Calm = span{second(2), second(5)}
				define(e, skipsOverlap)
				for _, n := range []int{3, 4} {
					e.Busy[skipID(skip(e, n, 1, run.ReasonOverlap, second(float64(n))))] = true
				}
			},
			says: []string{"rate: when nothing went wrong any more, 1 of 3 instants fired"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := good(t)
			e.Standing = map[string]time.Duration{"rate": time.Second}
			e.Began = base.Add(-startsWithin)
			e.Calm = span{second(5), second(5.5)}
			tt.plant(&e)
			got := judge(e).Violations
			for _, want := range tt.says {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("violations %q, want one that says %q", got, want)
				}
			}
			if len(tt.says) == 0 && len(got) > 0 {
				t.Errorf("violations %q, want none", got)
			}
		})
	}
}

// TestJudgeReasons: the table says why instants got no run of their own, each counted once.
func TestJudgeReasons(t *testing.T) {
	e := good(t)
	define(&e, skipsLate)
	s := skip(&e, 2, 2, run.ReasonMisfire, second(3.6))
	e.Ranges[skipID(s)] = s // the history has it as well
	if diff := cmp.Diff(map[run.Reason]int{run.ReasonMisfire: 2}, judge(e).Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestNoteBusy: only the version that introduces a skip tells whether its job was busy.
func TestNoteBusy(t *testing.T) {
	key := run.Key{Job: "rate", Trigger: "default"}
	skipOf := func(n string) run.Skip { return run.Skip{Occurrence: n, Key: key, Reason: run.ReasonOverlap} }
	w := newWitness(nil, nil)
	idle := &state.Ledger{Skipped: []run.Skip{skipOf("first")}}
	busy := &state.Ledger{Runs: []run.Run{{Key: key}}, Skipped: []run.Skip{skipOf("first"), skipOf("second")}}
	other := &state.Ledger{Runs: []run.Run{{Key: run.Key{Job: "another"}}}, Skipped: []run.Skip{skipOf("second"), skipOf("third")}}
	w.noteBusy(nil, idle) // which may have been introduced long before
	w.noteBusy(idle, busy)
	w.noteBusy(busy, other)
	want := map[string]bool{skipID(skipOf("second")): true, skipID(skipOf("third")): false}
	if diff := cmp.Diff(want, w.testimony().Busy); diff != "" {
		t.Errorf("busy (-want +got):\n%s", diff)
	}
}
