package chaos

import (
	"maps"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
)

// What has to have fired all the same, whatever went wrong, of a hundred: a scheduler that explains well
// why it does nothing is of no use.
const (
	// leastOfJob is the share of a job's instants that got a run of their own, leastOfAll that of all jobs
	// together.
	leastOfJob, leastOfAll = 10, 40
	// leastArrived is the share of the runs that reached the app.
	leastArrived = 80
	// leastCalm is the share of a job's instants in a calm stretch.
	leastCalm = 60
)

// startsWithin is how long the first sidecars may take to see the jobs.
const startsWithin = 30 * time.Second

// calm judges that in the calm stretch each instant got a run of its own that reached the app, and nothing
// was skipped; but on a busy machine a run may really last until the next instant of a job that skips then.
func (j *judgment) calm() {
	arrived := make(map[string]bool)
	for _, a := range j.Arrivals {
		arrived[a.Occurrence] = true
	}
	for _, job := range slices.Sorted(maps.Keys(j.Versions)) {
		all, _ := j.grid(job)
		due, fired := 0, 0
		for _, at := range all {
			if at.Before(j.Calm.From) || !at.Before(j.Calm.Until) {
				continue
			}
			due++
			switch why := j.firedCalmly(job, at, arrived); why {
			case "":
				fired++
			case busyThen:
			default:
				j.row(job).Groundless++
				j.violation("%s: of %s, when nothing went wrong any more, %s", job, at.Format(clock), why)
			}
		}
		j.CalmInstants, j.CalmFired = j.CalmInstants+due, j.CalmFired+fired
		if 100*fired < leastCalm*due {
			j.violation("%s: when nothing went wrong any more, %d of %d instants fired", job, fired, due)
		}
	}
}

// busyThen: the job had a run in flight by the ledger, and skips what overlaps.
const busyThen = "its job was busy"

// firedCalmly says what is wrong with what became of an instant, or nothing.
func (j *judgment) firedCalmly(job string, at time.Time, arrived map[string]bool) string {
	for _, r := range j.Runs {
		if r.Key.Job != job || r.Cause != run.CauseSchedule || !r.ScheduledAt.Equal(at) {
			continue
		}
		switch {
		case r.Coalesced > 1:
			return "the run stands for others as well"
		case !arrived[r.Occurrence]:
			return "the run never arrived"
		case r.State != run.StateSucceeded:
			return "the run is " + string(r.State)
		}
		return ""
	}
	for _, s := range j.Skips {
		if s.Key.Job == job && s.ScheduledAt.Equal(at) && s.Reason == run.ReasonOverlap && j.Busy[skipID(s)] {
			return busyThen
		}
	}
	return "there is no run"
}

// shares judges that enough has fired and reached the app.
func (j *judgment) shares() {
	total := jobAccount{Job: "all jobs"}
	for name, interval := range j.Standing {
		row := j.row(name)
		least := int((j.Until.Sub(j.Began) - startsWithin) / interval)
		if j.delayed(name) { // whose instants are its runs
			least = least * leastOfJob / 100
		} else {
			j.atLeast(row, leastOfJob)
		}
		if row.Instants < least {
			row.Missing++
			j.violation("%s: its definitions name %d instants, less than the %d of every %s", name, row.Instants, least, interval)
		}
		if !j.delayed(name) {
			total.add(*row)
		}
	}
	if len(j.Standing) == 0 {
		return
	}
	j.atLeast(&total, leastOfAll)
	reached := make(map[string]bool)
	for _, a := range j.Arrivals {
		reached[a.Run] = true
	}
	if 100*len(reached) < leastArrived*len(j.Runs) {
		j.violation("of %d runs %d reached the app, less than %d %%", len(j.Runs), len(reached), leastArrived)
	}
	if j.CalmInstants == 0 {
		j.violation("no instant was due in the calm stretch")
	}
}

func (j *judgment) atLeast(row *jobAccount, least int) {
	if share := row.share(); share < least {
		j.violation("%s: %d of %d instants, %d %%, got a run of their own: less than %d %%", row.Job, row.Fired, row.Instants, share, least)
	}
}

// bases judges that an edit that keeps an interval keeps what a rate counts from.
func (j *judgment) bases(job string) {
	segments := j.segments(job, j.Until)
	for i := 1; i < len(segments); i++ {
		before, now := segments[i-1], segments[i]
		if before.Left {
			continue
		}
		for _, t := range j.definitions[version{job, now.Version.Number}].Triggers {
			old, _, ok := j.trigger(run.Key{Job: job, Trigger: t.Name}, before.Version.Number)
			if !ok || t.Schedule.Kind != schedule.KindRate || old.Schedule.Kind != schedule.KindRate || old.Schedule.Interval != t.Schedule.Interval {
				continue
			}
			if from, to := before.Version.Bases[t.Name], now.Version.Bases[t.Name]; !from.Equal(to) {
				j.row(job).Unexplained++
				j.violation("%s: version %d counts from %s, the one before from %s, at the same rate", job, now.Version.Number, to.Format(clock), from.Format(clock))
			}
		}
	}
}
