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
	definition, err := json.Marshal(config.Job{Name: "rate", Overlap: config.OverlapSerial, Triggers: []config.Trigger{
		{Name: "default", Schedule: schedule.Schedule{Kind: schedule.KindRate, Interval: time.Second}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := evidence{Until: second(5.5), testimony: testimony{
		Runs: make(map[string]run.Run), Skips: make(map[string]run.Skip), Ranges: make(map[string]run.Skip),
		Versions: map[string]map[int]state.Version{"rate": {1: {
			Number: 1, EffectiveAt: base, Definition: definition, Bases: map[string]time.Time{"default": base},
		}}},
		Terms: map[int64]term{1: {Holder: "a", Claimed: second(0.9)}},
	}}
	for n := 1; n <= 5; n++ {
		fire(&e, n, 1, second(float64(n)))
	}
	return e
}

// fire adds a run of instant n under a term, and its arrival a millisecond after it was fired.
func fire(e *evidence, n int, under int64, fired time.Time) {
	id := fmt.Sprint("run-", n-1)
	if _, taken := e.Runs[id]; taken {
		id += "-again"
	}
	r := run.Run{
		ID: id, Occurrence: fmt.Sprint("occurrence-", n), Key: run.Key{Job: "rate", Trigger: "default"}, Cause: run.CauseSchedule,
		State: run.StateSucceeded, ScheduledAt: second(float64(n)), CoveredUntil: second(float64(n + 1)), DueAt: second(float64(n)),
		Attempt: 1, Term: under, FiredAt: fired, EndedAt: fired.Add(100 * time.Millisecond),
	}
	e.Runs[id] = r
	e.Arrivals = append(e.Arrivals, arrival{
		At: fired.Add(time.Millisecond), FiredAt: fired, Run: id, Occurrence: r.Occurrence, Attempt: 1, Job: "rate", ScheduledAt: r.ScheduledAt, Term: under,
	})
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
				forget(e, 3)
				e.Skips["x"] = run.Skip{Occurrence: "occurrence-3", Key: run.Key{Job: "rate", Trigger: "default"}, ScheduledAt: second(3), CoveredUntil: second(4), Count: 1}
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped = 4, 4, 1 }),
		},
		"an instant that was passed over and fired was decided twice": {
			plant: func(e *evidence) {
				e.Skips["x"] = run.Skip{Occurrence: "occurrence-2", Key: run.Key{Job: "rate", Trigger: "default"}, ScheduledAt: second(2), CoveredUntil: second(4), Count: 2}
				forget(e, 2)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.DecidedTwice = 4, 3, 1, 1 }),
			says: []string{"12:00:03.250000 was decided 2 times"},
		},
		"instants that share a run are accounted for": {
			plant: func(e *evidence) {
				forget(e, 3)
				forget(e, 4)
				for id, r := range e.Runs {
					if r.ScheduledAt.Equal(second(2)) {
						r.Coalesced, r.CoveredUntil = 3, second(5)
						e.Runs[id] = r
					}
				}
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
		"a callback without a record is unexplained": {
			plant: func(e *evidence) { e.Arrivals[4].Run = "nobody's" },
			want:  with(func(j *jobAccount) { j.Unexplained = 2 }), // the recorded one never arrived
			says:  []string{"as run nobody's", "never arrived"},
		},
		"a run between the instants is unexplained": {
			plant: func(e *evidence) {
				r := e.Runs["run-4"]
				r.ID, r.Occurrence, r.State, r.ScheduledAt, r.FiredAt, r.EndedAt = "run-x", "occurrence-x", run.StateLost, second(4.5), time.Time{}, second(5)
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
