package chaos

import (
	"net/http"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// attempts judges, for each occurrence, whether every attempt was called for by the end of the one
// before it and by what its job says, and whether each that was called for is there.
func (j *judgment) attempts() {
	occurrences := make(map[string][]run.Run)
	for _, r := range j.Runs {
		occurrences[r.Occurrence] = append(occurrences[r.Occurrence], r)
	}
	for _, runs := range occurrences {
		slices.SortFunc(runs, func(a, b run.Run) int { return a.Attempt - b.Attempt })
		j.occurrence(runs)
	}
}

func (j *judgment) occurrence(runs []run.Run) {
	first := runs[0]
	row := j.row(first.Key.Job)
	job, known := j.definitions[version{first.Key.Job, first.Version}]
	extra := func(r run.Run, why string) {
		row.Extra++
		j.violation("%s of %s: attempt %d, run %s for %s, was not called for: %s", r.Key.Job, r.ScheduledAt.Format(clock), r.Attempt, r.ID, r.Cause, why)
	}
	if !known {
		extra(first, "its version of the job is not known")
		return
	}
	if first.Attempt != 1 || first.Cause == run.CauseRetry || first.Cause == run.CauseRecovery {
		extra(first, "there is no attempt before it")
	}
	retries, recovered := 0, false
	for i, r := range runs[1:] {
		before := runs[i]
		if r.Attempt > before.Attempt+1 {
			extra(r, "the attempt before it is not recorded")
		}
		wants, why := calledFor(job, before, retries, recovered)
		switch {
		case r.Attempt == before.Attempt: // told of as decided twice
		case wants == "":
			extra(r, why)
		case wants != r.Cause:
			extra(r, "what called for it was a "+string(wants))
		case r.DueAt.Before(before.EndedAt.Add(leastWait(job, r.Cause, retries+1))):
			extra(r, "it is due before its time, at "+r.DueAt.Format(clock)+", since the one before ended at "+before.EndedAt.Format(clock))
		}
		retries += count(r.Cause == run.CauseRetry)
		recovered = recovered || r.Cause == run.CauseRecovery
	}
	last := runs[len(runs)-1]
	if wants, _ := calledFor(job, last, retries, recovered); wants != "" && job.Deadline == 0 {
		row.Missing++
		j.violation("%s of %s: attempt %d, run %s, ended as %s with status %d and no %s follows: %s",
			last.Key.Job, last.ScheduledAt.Format(clock), last.Attempt, last.ID, last.State, last.Status, wants, last.Message)
	}
}

// calledFor is the cause of the further attempt that the end of one calls for, or why there must be none.
func calledFor(job config.Job, ended run.Run, retries int, recovered bool) (cause run.Cause, why string) {
	switch {
	case ended.State == run.StateLost && job.Recovery != config.RecoveryRerun:
		return "", "its job does not recover what is lost"
	case ended.State == run.StateLost && recovered:
		return "", "the occurrence had its recovery already"
	case ended.State == run.StateLost:
		return run.CauseRecovery, ""
	case ended.State != run.StateFailed:
		return "", "the one before it is " + string(ended.State)
	case !retryable(ended):
		return "", "the failure before it is none that is repeated: " + ended.Message
	case retries >= job.Retry.MaxRetries:
		return "", "the occurrence had all its retries"
	default:
		return run.CauseRetry, ""
	}
}

// retryable reports whether a failure is of a kind that is repeated, where the job names none.
func retryable(r run.Run) bool {
	switch r.Status {
	case 0: // refused or lost connections, and time that was up; not what the definitions made impossible
		return r.Code == run.CodeFailed || r.Code == run.CodeTimeout
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	default:
		return r.Status >= 500
	}
}

// leastWait is how long the n-th retry waits at least; a recovery does not wait.
func leastWait(job config.Job, cause run.Cause, n int) time.Duration {
	if cause != run.CauseRetry {
		return 0
	}
	wait := job.Retry.Delay
	for i := 1; i < n && job.Retry.Backoff == config.BackoffExponential; i++ {
		wait *= 2
	}
	if job.Retry.MaxDelay > 0 {
		wait = min(wait, job.Retry.MaxDelay)
	}
	// A microsecond, to which times are stored, is nothing to argue about.
	return time.Duration(float64(wait)*(1-job.Retry.Jitter)) - time.Microsecond
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
