package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// TestJudgeDecisions: what was skipped or coalesced has a reason that holds.
func TestJudgeDecisions(t *testing.T) {
	decidedAt := func(n float64) func(*run.Run) { return func(r *run.Run) { r.DecidedAt = second(n) } }
	checkPlanted(t, map[string]planted{
		"a callback before its instant is early, whatever its run says of when it is due": {
			plant: func(e *evidence) {
				e.Arrivals[1].At = second(1.999)
				change(e, "run-1", func(r *run.Run) { r.DueAt = second(1.9) })
			},
			want: with(func(j *jobAccount) { j.Early, j.Groundless = 1, 1 }),
			says: []string{"arrived 1ms before its time", "it was due -100ms after its instant"},
		},
		"a run that is due later than its jitter allows is groundless": {
			plant: func(e *evidence) {
				change(e, "run-1", func(r *run.Run) { r.DueAt, r.FiredAt = second(2.0005), second(2.0006) })
			},
			want: with(func(j *jobAccount) { j.Groundless = 1 }),
			says: []string{"it was due 500µs after its instant"},
		},
		"a decision long before its instant is groundless": {
			plant: func(e *evidence) { change(e, "run-1", decidedAt(1.4)) },
			want:  with(func(j *jobAccount) { j.Groundless = 1 }),
			says:  []string{"it was decided 600ms ahead"},
		},
		"a skip within the grace is groundless": {
			plant: func(e *evidence) {
				define(e, skipsLate)
				skip(e, 3, 2, run.ReasonMisfire, second(4.3))
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Fired, j.Skipped, j.Groundless = 3, 3, 2, 1 }),
			says: []string{"2 instants from 12:00:03.250000 on were skipped at 12:00:04.550000 for misfire: the last of them was late by 300ms only"},
		},
		"a misfire of a job that does not skip is groundless": {
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
		"an overlap without a run in the ledger is groundless, though the records would allow it": {
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
		"coalescing within the grace is groundless": {
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
	})
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
