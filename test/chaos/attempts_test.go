package chaos

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// TestJudgeAttempts: no attempt more than was called for, and none fewer.
func TestJudgeAttempts(t *testing.T) {
	checkPlanted(t, map[string]planted{
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
		"a retry of a job without retries is extra": {
			plant: func(e *evidence) {
				again(e, 3, 2, run.CauseRetry)
				change(e, "run-2", fails)
			},
			want: with(func(j *jobAccount) { j.Arrived, j.Retried, j.Extra = 6, 1, 1 }),
			says: []string{"attempt 2, run run-2.2 for retry, was not called for: the occurrence had all its retries"},
		},
		"a retry beyond the last is extra": {
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
		"a second recovery is extra, also after a retry": {
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
	})
}
