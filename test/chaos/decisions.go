package chaos

import (
	"maps"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/test/cluster"
)

// mostAhead is how long before its instant a decision may be made.
const mostAhead = 500 * time.Millisecond

// reportedWithin is how long an end may take to reach the ledger, where only records are left to tell whether
// a job was busy: a run of which nobody hears for longer is lost.
const reportedWithin = cluster.NodeTimeout + 10*time.Second

// decisions judges the reason for which instants were skipped or coalesced, each by its own times and by
// what its job had in flight. Whether each instant was decided is asked elsewhere.
func (j *judgment) decisions() {
	grids := make(map[string][]time.Time)
	for job := range j.Versions {
		grids[job], _ = j.grid(job)
	}
	byJob := make(map[string][]run.Run)
	for _, r := range j.Runs {
		byJob[r.Key.Job] = append(byJob[r.Key.Job], r)
	}
	seen := make(map[string]run.Skip)
	for _, skips := range []map[string]run.Skip{j.Skips, j.Ranges} { // a range that grew has another end and is judged as well
		for _, id := range slices.Sorted(maps.Keys(skips)) {
			s := skips[id]
			if !s.ScheduledAt.Before(j.Until) {
				continue
			}
			last, n := covered(grids[s.Key.Job], s)
			before, again := seen[id]
			if again && before.CoveredUntil.Equal(s.CoveredUntil) {
				continue
			}
			if !again {
				j.Reasons[s.Reason] += n
			}
			seen[id] = s
			if why := j.groundless(s, last, byJob[s.Key.Job]); why != "" {
				j.row(s.Key.Job).Groundless++
				j.violation("%s: %d instants from %s on were skipped at %s for %s: %s",
					s.Key, n, s.ScheduledAt.Format(clock), s.DecidedAt.Format(clock), s.Reason, why)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.Runs)) {
		r := j.Runs[id]
		if r.Cause != run.CauseSchedule || !r.ScheduledAt.Before(j.Until) {
			continue
		}
		if r.Coalesced > 1 {
			j.Reasons[run.ReasonMisfire] += r.Coalesced - 1
		}
		if why := j.unfounded(r, grids[r.Key.Job]); why != "" {
			j.row(r.Key.Job).Groundless++
			j.violation("%s of %s, decided at %s, stands for %d instants: %s", r.Key, r.ScheduledAt.Format(clock), r.DecidedAt.Format(clock), max(r.Coalesced, 1), why)
		}
	}
}

// covered returns the last instant of a grid that a skip covers, and how many it covers.
func covered(grid []time.Time, s run.Skip) (last time.Time, n int) {
	last = s.ScheduledAt
	for _, at := range grid {
		if cluster.SkipCovers(s, at) {
			last, n = at, n+1
		}
	}
	return last, max(n, 1)
}

// groundless says why the reason of a skip does not hold, or nothing.
func (j *judgment) groundless(s run.Skip, last time.Time, runs []run.Run) string {
	trigger, job, ok := j.trigger(s.Key, s.Version)
	late := s.DecidedAt.Sub(last)
	switch {
	case !ok:
		return "its version of the job is not known"
	case late < 0:
		return "the last of them was not due yet"
	}
	switch s.Reason {
	case run.ReasonMisfire:
		if trigger.Misfire.Policy != config.MisfireSkip {
			return "its job does not skip what is late"
		}
		if late <= trigger.Misfire.Grace {
			return "the last of them was late by " + late.String() + " only"
		}
	case run.ReasonWindow:
		if trigger.Misfire.Window == 0 || late <= trigger.Misfire.Window {
			return "they were late by " + late.String() + " only"
		}
	case run.ReasonOverlap:
		if job.Overlap != config.OverlapSkip {
			return "its job does not skip what overlaps"
		}
		if busy, seen := j.Busy[skipID(s)]; seen && !busy || !seen && !busyAt(runs, s.DecidedAt) {
			return "its job had no open run"
		}
	case run.ReasonResumeSkip, run.ReasonLost:
		return "nothing was paused, and what is lost has a run"
	default:
		return "there is no such reason"
	}
	return ""
}

// unfounded says why the decision to fire, late or for several instants, does not hold, or nothing.
func (j *judgment) unfounded(r run.Run, grid []time.Time) string {
	trigger, _, ok := j.trigger(r.Key, r.Version)
	if !ok {
		return "its version of the job is not known"
	}
	late := r.DecidedAt.Sub(r.ScheduledAt)
	misfired := late > trigger.Misfire.Grace
	jitter := r.DueAt.Sub(r.ScheduledAt)
	switch {
	case late < -mostAhead:
		return "it was decided " + (-late).String() + " ahead"
	case jitter < 0 || jitter > trigger.Schedule.Jitter:
		return "it was due " + jitter.String() + " after its instant"
	case r.Coalesced > 1 && trigger.Misfire.Policy != config.MisfireRunOnce:
		return "its job does not coalesce"
	case r.Coalesced > 1 && !misfired:
		return "it was late by " + late.String() + " only"
	case misfired && trigger.Misfire.Policy == config.MisfireSkip:
		return "it was late by " + late.String() + ", and its job skips what is late"
	}
	if trigger.Schedule.Kind == schedule.KindEvery || (trigger.Misfire.Policy != config.MisfireRunOnce && r.Coalesced <= 1) {
		return ""
	}
	n := 0
	for _, at := range grid {
		covers := cluster.RunCovers(r, at)
		n += count(covers)
		switch {
		case covers && r.Coalesced > 1 && at.After(r.DecidedAt):
			return "one of them was not due yet"
		case misfired && !covers && at.After(r.ScheduledAt) && !at.After(r.DecidedAt) && j.decides(r.Key.Job, r.Version, at):
			return "it leaves out " + at.Format(clock) + ", which was due as well"
		}
	}
	if r.Coalesced > 1 && n != r.Coalesced && !r.CoveredUntil.After(j.Until) {
		return "the definitions name another number of instants"
	}
	return ""
}

// decides reports whether a version of a job decides an instant.
func (j *judgment) decides(job string, number int, at time.Time) bool {
	return slices.ContainsFunc(j.segments(job, j.Until), func(s segment) bool {
		return s.Version.Number == number && !at.Before(s.From) && at.Before(s.Until)
	})
}

// trigger is the definition by which something was decided.
func (j *judgment) trigger(key run.Key, number int) (config.Trigger, config.Job, bool) {
	job, ok := j.definitions[version{key.Job, number}]
	if !ok {
		return config.Trigger{}, job, false
	}
	i := slices.IndexFunc(job.Triggers, func(t config.Trigger) bool { return t.Name == key.Trigger })
	if i < 0 {
		return config.Trigger{}, job, false
	}
	return job.Triggers[i], job, true
}

// busyAt reports whether an occurrence may have been open by the ledger at a time, as far as its records tell.
func busyAt(runs []run.Run, at time.Time) bool {
	return slices.ContainsFunc(runs, func(r run.Run) bool {
		return !r.DecidedAt.After(at) && (r.EndedAt.IsZero() || r.EndedAt.Add(reportedWithin).After(at))
	})
}
