package chaos

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/test/cluster"
)

// instants judges whether each instant that the versions of a job name was decided once.
func (j *judgment) instants(job string) {
	type decision struct {
		occurrence string
		skipped    bool
	}
	decided := make(map[time.Time][]decision)
	all, of := j.grid(job)
	if len(all) == 0 {
		return
	}
	mark := func(from, until time.Time, d decision) (marked int) {
		i, _ := slices.BinarySearchFunc(all, from, time.Time.Compare)
		for ; i < len(all) && (all[i].Equal(from) || all[i].Before(until)); i++ {
			if !slices.Contains(decided[all[i]], d) {
				decided[all[i]] = append(decided[all[i]], d)
			}
			marked++
		}
		return marked
	}
	row := j.row(job)
	coalesced := make(map[time.Time]bool)
	for _, r := range j.Runs {
		if r.Key.Job != job || r.Key.Trigger == "" || !r.ScheduledAt.Before(j.Until) {
			continue
		}
		until := r.ScheduledAt
		if r.Coalesced > 1 {
			until = r.CoveredUntil
			for _, at := range all {
				if at.After(r.ScheduledAt) && cluster.RunCovers(r, at) {
					coalesced[at] = true
				}
			}
		}
		if mark(r.ScheduledAt, until, decision{occurrence: r.Occurrence}) == 0 {
			row.Unexplained++
			j.violation("%s has a run for %s, which is no instant of its definitions: %+v", job, r.ScheduledAt.Format(clock), r)
		}
	}
	for _, s := range j.Skips {
		if s.Key.Job == job && s.ScheduledAt.Before(j.Until) {
			mark(s.ScheduledAt, s.CoveredUntil, decision{s.Occurrence, true})
		}
	}
	for _, s := range j.Ranges { // where the ledger was not seen in time
		if s.Key.Job != job || !s.ScheduledAt.Before(j.Until) {
			continue
		}
		for _, at := range all {
			if cluster.SkipCovers(s, at) && !slices.ContainsFunc(decided[at], func(d decision) bool { return d.skipped }) {
				decided[at] = append(decided[at], decision{s.Occurrence, true})
			}
		}
	}
	last := time.Time{} // the last instant that was decided
	for _, at := range all {
		if len(decided[at]) > 0 {
			last = at
		}
	}
	for _, at := range all {
		row.Instants++
		switch d := decided[at]; {
		case len(d) == 0 && of[at].Left && !j.decidedAfter(job, at, of[at].Until):
			row.Left++
		case len(d) == 0:
			row.Unaccounted++
			j.violation("%s: the instant %s is not accounted for (the last decided one is %s)", job, at.Format(clock), last.Format(clock))
		case len(d) > 1:
			row.DecidedTwice++
			j.violation("%s: the instant %s was decided %d times: %v", job, at.Format(clock), len(d), d)
		case d[0].skipped:
			row.Skipped++
		case coalesced[at]:
			row.Coalesced++
		default:
			row.Fired++
		}
	}
}

// grid lists the instants that the versions of a job name, in order, and the segment of each.
func (j *judgment) grid(job string) (all []time.Time, of map[time.Time]segment) {
	of = make(map[time.Time]segment)
	for _, s := range j.segments(job, j.Until) {
		for _, at := range s.instants() {
			if _, named := of[at]; !named {
				all = append(all, at)
			}
			of[at] = s
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all, of
}

// decidedAfter reports whether an instant of a job after at and before until was decided.
func (j *judgment) decidedAfter(job string, at, until time.Time) bool {
	for _, r := range j.Runs {
		if r.Key.Job == job && r.Key.Trigger != "" && r.ScheduledAt.After(at) && r.ScheduledAt.Before(until) {
			return true
		}
	}
	return false
}

// instants lists what a version names, computed without the product's own schedules: its rates
// count from its base, its crons are those of baseJobs.
func (s segment) instants() []time.Time {
	var job config.Job
	if err := json.Unmarshal(s.Version.Definition, &job); err != nil {
		return nil
	}
	var out []time.Time
	for _, t := range job.Triggers {
		var base time.Time
		var interval time.Duration
		switch {
		case t.Schedule.Kind == schedule.KindRate:
			base, interval = s.Version.Bases[t.Name], t.Schedule.Interval
		case t.Schedule.Kind == schedule.KindCron:
			base = s.From.Truncate(time.Minute).Add(-time.Minute)
			interval = map[string]time.Duration{"* * * * * *": time.Second, "*/5 * * * * *": 5 * time.Second}[t.Schedule.Cron]
		}
		if interval == 0 {
			continue
		}
		for at := base.Add(interval); at.Before(s.Until); at = at.Add(interval) {
			if !at.Before(s.From) {
				out = append(out, at)
			}
		}
	}
	return out
}
