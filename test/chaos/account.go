package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/test/cluster"
)

// evidence is what a run has left to be judged by.
type evidence struct {
	testimony
	Arrivals []arrival // in the order of their arrival
	Promised []string  // the IDs of the runs that an API has promised
	// Until: the instants before it have to be accounted for.
	Until time.Time
}

// arrival is one callback.
type arrival struct {
	At      time.Time // when its header had arrived
	FiredAt time.Time // when its sender began it, before the last check
	Run     string
	// Occurrence and Attempt may arrive together only once.
	Occurrence  string
	Attempt     int
	Job         string
	ScheduledAt time.Time
	Term        int64
	// Frozen: its sender stood still between FiredAt and At.
	Frozen bool
}

// account is the judgment.
type account struct {
	Jobs []jobAccount
	// LateSends started, by the sender's last check, after a callback of a later term was committed.
	// FrozenSends did so from a process that stood still between that check and the send.
	LateSends, FrozenSends int
	// Leaders counts the terms under which a callback was committed.
	Leaders int
	// Violations say what must not be, in words; each is counted in Jobs or above as well.
	Violations []string
}

// jobAccount is the judgment of one job: Instants = Fired + Coalesced + Skipped + Left +
// Unaccounted, where nothing was decided twice.
type jobAccount struct {
	Job string
	// Instants are those that its definitions name; for a job without any, the runs promised by
	// hand; for a fixed delay, its runs.
	Instants int
	// Fired got a run, Coalesced share one, Skipped were passed over with a reason. Left were not
	// decided when the job left the document, which ends it.
	Fired, Coalesced, Skipped, Left int
	// Lost are runs whose sidecar was gone; Retried and Recovered are further attempts.
	Lost, Retried, Recovered int
	Arrived                  int
	// What must not be: the same attempt of an occurrence arrived twice, an instant was decided
	// twice or not at all, a callback came before its time.
	Duplicates, DecidedTwice, Unaccounted, Early int
	// And: what was decided, recorded or sent without a reason in the definitions or in the ledger.
	Unexplained int
	WorstLate   time.Duration // of first attempts, instant to arrival
}

// judge compares what was due, what was decided, and what arrived.
func judge(e evidence) account {
	j := judgment{evidence: e, rows: make(map[string]*jobAccount)}
	j.arrivals()
	for _, job := range slices.Sorted(maps.Keys(e.Versions)) {
		j.instants(job)
	}
	j.runs()
	j.promises()
	j.terms()
	for _, name := range slices.Sorted(maps.Keys(j.rows)) {
		j.Jobs = append(j.Jobs, *j.rows[name])
	}
	return j.account
}

type judgment struct {
	evidence
	account
	rows map[string]*jobAccount
}

func (j *judgment) row(job string) *jobAccount {
	if j.rows[job] == nil {
		j.rows[job] = &jobAccount{Job: job}
	}
	return j.rows[job]
}

func (j *judgment) violation(format string, args ...any) {
	j.Violations = append(j.Violations, fmt.Sprintf(format, args...))
}

const clock = "15:04:05.000000"

// arrivals judges the callbacks by themselves and by the record of their runs.
func (j *judgment) arrivals() {
	type attempt struct {
		occurrence string
		number     int
	}
	seen := make(map[attempt]arrival)
	for _, a := range j.Arrivals {
		row := j.row(a.Job)
		row.Arrived++
		key := attempt{a.Occurrence, a.Attempt}
		if first, again := seen[key]; again {
			row.Duplicates++
			j.violation("%s of %s: attempt %d arrived twice, at %s as run %s and at %s as run %s",
				a.Job, a.ScheduledAt.Format(clock), a.Attempt, first.At.Format(clock), first.Run, a.At.Format(clock), a.Run)
		}
		seen[key] = a
		r, recorded := j.Runs[a.Run]
		due := a.ScheduledAt
		if recorded {
			due = r.DueAt
		}
		if a.At.Before(due) {
			row.Early++
			j.violation("%s of %s: attempt %d arrived %s before its time", a.Job, a.ScheduledAt.Format(clock), a.Attempt, due.Sub(a.At))
		}
		if a.Attempt == 1 {
			row.WorstLate = max(row.WorstLate, a.At.Sub(due))
		}
		if !recorded || r.Occurrence != a.Occurrence || r.Attempt != a.Attempt || r.Term != a.Term {
			row.Unexplained++
			j.violation("%s of %s: attempt %d arrived under term %d as run %s, which is recorded as %+v",
				a.Job, a.ScheduledAt.Format(clock), a.Attempt, a.Term, a.Run, r)
		}
	}
}

// instants judges whether each instant that the versions of a job name was decided once.
func (j *judgment) instants(job string) {
	type decision struct {
		occurrence string
		skipped    bool
	}
	decided := make(map[time.Time][]decision)
	segments := j.segments(job, j.Until)
	grid := make(map[time.Time]bool)
	var all []time.Time
	lastOf := make(map[time.Time]segment)
	for _, s := range segments {
		for _, at := range s.instants() {
			if !grid[at] {
				all = append(all, at)
			}
			grid[at] = true
			lastOf[at] = s
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, time.Time.Compare)
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
		case len(d) == 0 && lastOf[at].Left && !j.decidedAfter(job, at, lastOf[at].Until):
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

// promises judges whether each run that an API promised is there.
func (j *judgment) promises() {
	for _, id := range j.Promised {
		row := j.row("manual")
		row.Instants++
		if _, ok := j.Runs[id]; ok {
			row.Fired++
			continue
		}
		row.Unaccounted++
		j.violation("manual: run %s was promised and is not recorded", id)
	}
}

// terms judges whether a callback started after one of a later term was committed.
func (j *judgment) terms() {
	committed := make(map[int64]time.Time) // by term: when a run of it or of a later one was first committed
	var earliest time.Time
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(j.Terms))) {
		if at := j.Terms[number].Claimed; !at.IsZero() {
			if earliest.IsZero() || at.Before(earliest) {
				earliest = at
			}
			j.Leaders++
		}
		committed[number] = earliest
	}
	numbers := slices.Sorted(maps.Keys(committed))
	for _, a := range j.Arrivals {
		i, ok := slices.BinarySearch(numbers, a.Term)
		if ok {
			i++
		}
		if i >= len(numbers) {
			continue
		}
		later := committed[numbers[i]]
		started := a.FiredAt
		if r, recorded := j.Runs[a.Run]; recorded && r.FiredAt.After(started) {
			started = r.FiredAt // when the last check had passed
		}
		switch {
		case later.IsZero() || !a.At.After(later):
		case a.Frozen:
			j.FrozenSends++
		case started.After(later):
			j.LateSends++
			j.violation("%s of %s started at %s under term %d, %s after a callback of term %d was committed",
				a.Job, a.ScheduledAt.Format(clock), started.Format(clock), a.Term, started.Sub(later), numbers[i])
		}
	}
}
