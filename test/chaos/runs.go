package chaos

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
)

// runs judges what is recorded of each run by what arrived.
func (j *judgment) runs() {
	arrived := make(map[string]bool, len(j.Arrivals))
	for _, a := range j.Arrivals {
		arrived[a.Run] = true
	}
	type attempt struct {
		occurrence string
		number     int
	}
	delayed := make(map[string]bool)
	for job := range j.Versions {
		delayed[job] = j.delayed(job)
	}
	seen := make(map[attempt]string)
	byJob := make(map[string][]run.Run)
	for _, r := range j.Runs {
		row := j.row(r.Key.Job)
		key := attempt{r.Occurrence, r.Attempt}
		if other, again := seen[key]; again {
			row.DecidedTwice++
			j.violation("%s of %s: attempt %d is recorded as run %s and as run %s", r.Key.Job, r.ScheduledAt.Format(clock), r.Attempt, other, r.ID)
		}
		seen[key] = r.ID
		byJob[r.Key.Job] = append(byJob[r.Key.Job], r)
		switch r.Cause {
		case run.CauseRetry:
			row.Retried++
		case run.CauseRecovery:
			row.Recovered++
		case run.CauseSchedule:
			if delayed[r.Key.Job] {
				row.Instants++
				row.Fired++
			}
		case run.CauseManual, run.CauseBackfill, run.CauseRerun:
		}
		switch {
		case r.State == run.StateLost:
			row.Lost++
		case r.State == run.StateFailed && r.Status == 0 && !r.Unknown && !arrived[r.ID]:
			j.Unreached++
		case r.State == run.StateFailed && r.Status == 0 && !r.Unknown:
			row.Unexplained++
			j.violation("%s of %s: run %s is recorded as never having reached the app, and arrived: %s", r.Key.Job, r.ScheduledAt.Format(clock), r.ID, r.Message)
		case r.State == run.StateSucceeded && !arrived[r.ID]:
			row.Unexplained++
			j.violation("%s of %s: run %s is recorded as succeeded and never arrived", r.Key.Job, r.ScheduledAt.Format(clock), r.ID)
		case !r.State.Ended() && r.DueAt.Before(j.Until):
			row.Unexplained++
			j.violation("%s of %s: run %s never ended: %+v", r.Key.Job, r.ScheduledAt.Format(clock), r.ID, r)
		}
	}
	for job, runs := range byJob {
		j.serial(job, runs)
	}
}

// delayed reports whether a job has a fixed delay, whose instants no grid names.
func (j *judgment) delayed(job string) bool {
	for _, s := range j.segments(job, j.Until) {
		var definition config.Job
		if json.Unmarshal(s.Version.Definition, &definition) != nil {
			continue
		}
		if slices.ContainsFunc(definition.Triggers, func(t config.Trigger) bool { return t.Schedule.Kind == schedule.KindEvery }) {
			return true
		}
	}
	return false
}

// serial judges that no two runs of a job were in flight at once by the ledger, unless the job
// says that they may be.
func (j *judgment) serial(job string, runs []run.Run) {
	for _, s := range j.segments(job, j.Until) {
		var definition config.Job
		if json.Unmarshal(s.Version.Definition, &definition) != nil || definition.Overlap == config.OverlapParallel {
			return
		}
	}
	runs = slices.DeleteFunc(runs, func(r run.Run) bool { return r.FiredAt.IsZero() || r.EndedAt.IsZero() })
	slices.SortFunc(runs, func(a, b run.Run) int { return cmp.Or(a.FiredAt.Compare(b.FiredAt), a.EndedAt.Compare(b.EndedAt)) })
	for i := 1; i < len(runs); i++ {
		if before, r := runs[i-1], runs[i]; r.FiredAt.Before(before.EndedAt) {
			j.row(job).Unexplained++
			j.violation("%s: run %s started at %s, before run %s had ended at %s", job, r.ID, r.FiredAt.Format(clock), before.ID, before.EndedAt.Format(clock))
		}
	}
}
