package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// evidence is what a run has left to be judged by.
type evidence struct {
	testimony
	Arrivals []arrival // in the order of their arrival
	Promised []string  // the IDs of the runs that an API has promised
	// Began is when the first sidecar was started. The instants before Until have to be accounted for.
	Began, Until time.Time
	// Calm is a stretch in which nothing went wrong: what was due in it has to have fired.
	Calm span
	// Standing are jobs that were never taken out of the document or given another schedule, and their intervals.
	Standing map[string]time.Duration
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
	// Reasons counts the instants that got no run of their own, by reason. Unreached counts the attempts
	// that failed and surely never reached the app.
	Reasons   map[run.Reason]int
	Unreached int
	// CalmInstants were due in the calm stretch, CalmFired of them got a run that arrived.
	CalmInstants, CalmFired int
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
	// And: an attempt that nothing called for, none where one was called for, a skipped or coalesced instant
	// whose reason does not hold.
	Extra, Missing, Groundless int
	// And: what was decided, recorded or sent without a reason in the definitions or in the ledger.
	Unexplained int
	WorstLate   time.Duration // of first attempts, instant to arrival
}

// share is how many of a hundred instants got a run of their own.
func (j *jobAccount) share() int {
	if j.Instants == 0 {
		return 100
	}
	return 100 * j.Fired / j.Instants
}

// judge compares what was due, what was decided, and what arrived.
func judge(e evidence) account {
	j := judgment{evidence: e, rows: make(map[string]*jobAccount)}
	j.Reasons = make(map[run.Reason]int)
	j.define()
	j.arrivals()
	for _, job := range slices.Sorted(maps.Keys(e.Versions)) {
		j.instants(job)
		j.bases(job)
	}
	j.runs()
	j.attempts()
	j.decisions()
	j.promises()
	j.terms()
	j.calm()
	j.shares()
	for _, name := range slices.Sorted(maps.Keys(j.rows)) {
		j.Jobs = append(j.Jobs, *j.rows[name])
	}
	return j.account
}

type judgment struct {
	evidence
	account
	rows        map[string]*jobAccount
	definitions map[version]config.Job
}

// version is one of a job.
type version struct {
	job    string
	number int
}

// define reads the definitions of all versions.
func (j *judgment) define() {
	j.definitions = make(map[version]config.Job)
	for job, versions := range j.Versions {
		for number, v := range versions {
			var definition config.Job
			if json.Unmarshal(v.Definition, &definition) == nil {
				j.definitions[version{job, number}] = definition
			}
		}
	}
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
		if recorded && r.DueAt.After(due) {
			due = r.DueAt
		}
		if recorded && !r.ScheduledAt.Equal(a.ScheduledAt) {
			row.Unexplained++
			j.violation("%s: run %s arrived for the instant %s and is recorded for %s", a.Job, a.Run, a.ScheduledAt.Format(clock), r.ScheduledAt.Format(clock))
		}
		switch {
		case a.At.Before(due):
			row.Early++
			j.violation("%s of %s: attempt %d arrived %s before its time", a.Job, a.ScheduledAt.Format(clock), a.Attempt, due.Sub(a.At))
		case recorded && !r.FiredAt.IsZero() && r.FiredAt.Before(due):
			row.Early++
			j.violation("%s of %s: attempt %d started %s before its time", a.Job, a.ScheduledAt.Format(clock), a.Attempt, due.Sub(r.FiredAt))
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
