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

// five is the judgment of the good evidence; with is another.
func five() jobAccount {
	return jobAccount{Job: "rate", Instants: 5, Fired: 5, Arrived: 5, WorstLate: time.Millisecond}
}

func with(change func(*jobAccount)) jobAccount {
	j := five()
	change(&j)
	return j
}

// planted is something that is put into good evidence, and what has to come of it.
type planted struct {
	plant func(*evidence)
	want  jobAccount
	says  []string // of each violation
}

func checkPlanted(t *testing.T, tests map[string]planted) {
	t.Helper()
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

// TestJudge plants each thing that must not be into good evidence: the judge is only worth what it
// would find.
func TestJudge(t *testing.T) {
	checkPlanted(t, map[string]planted{
		"each instant fired once": {plant: func(*evidence) {}, want: five()},
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
		"a failure that never reached the app and arrived is unexplained": {
			plant: func(e *evidence) {
				change(e, "run-1", func(r *run.Run) { r.State, r.Status, r.Code = run.StateFailed, 0, run.CodeFailed })
			},
			want: with(func(j *jobAccount) { j.Unexplained = 1 }),
			says: []string{"is recorded as never having reached the app"},
		},
		"an edit that moves a rate is unexplained": {
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
	})
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
