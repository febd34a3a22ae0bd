package sim

import (
	"slices"
	"sort"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// model is what the definitions ask for, worked out from the versions alone: where each trigger
// counts from, how often a limited one has fired, when a fixed delay began. It takes nothing from
// what the engine remembers of a trigger.
type model struct {
	catalogs map[int64]*state.Catalog   // by revision
	versions map[string][]state.Version // of each job all there ever were, as they were seen last, oldest first
	lines    map[lineKey]*line
	fired    map[run.Key]fired // of limited triggers
	ends     map[run.Key]time.Time
	judged   map[string]bool       // runs and skips
	closed   map[string]bool       // runs that have ended
	sent     map[attempt]time.Time // by the clock of who sent it
	begun    map[attempt]time.Time // when they began, before they were sent
	heard    map[string]bool       // runs of which the ledger knows that they were sent
	followed map[string]bool       // runs that have ended, of which what follows was checked
	idle     map[string]ending     // since when a job has nothing open
	claimed  map[string]time.Time  // when a run was given to a node
	clocks   bool                  // those of all nodes agree
}

// ending is when a job came to have nothing open, and who wrote it.
type ending struct {
	at time.Time
	by string
}

// lineKey names a trigger as one version of its job defines it.
type lineKey struct {
	version
	trigger string
}

// line is a trigger of one version.
type line struct {
	job     config.Job
	trigger config.Trigger
	base    time.Time // what rates and fixed delays count from
	from    time.Time // what the version decides begins here, as it was first written
	*schedule.Timeline
}

// fired is how often a limited trigger has fired by schedules of the same interval, start and limit,
// whatever else was edited meanwhile, and whether or not the job was away.
type fired struct {
	interval time.Duration
	start    time.Time
	limit    int
	times    int
}

// firedBy is how often a trigger has fired of what its schedule allows.
func (m *model) firedBy(key run.Key, s schedule.Schedule) fired {
	f := m.fired[key]
	if f.interval != s.Interval || !f.start.Equal(s.Start) || f.limit != s.Count {
		f = fired{interval: s.Interval, start: s.Start, limit: s.Count}
	}
	return f
}

func newModel(s *scenario) *model {
	m := &model{
		catalogs: make(map[int64]*state.Catalog), versions: make(map[string][]state.Version), lines: make(map[lineKey]*line), fired: make(map[run.Key]fired),
		ends: make(map[run.Key]time.Time), judged: make(map[string]bool),
		idle: make(map[string]ending), claimed: make(map[string]time.Time),
		sent: make(map[attempt]time.Time), begun: make(map[attempt]time.Time), heard: make(map[string]bool), followed: make(map[string]bool),
		closed: make(map[string]bool), clocks: s.skew == 0,
	}
	for _, e := range s.events {
		m.clocks = m.clocks && e.what != whatClockStep
	}
	return m
}

// whatClockStep is what the event is called that sets a clock.
const whatClockStep = "clock step"

// learn takes in what a catalog has that is new, and checks that a trigger goes on counting where
// it did. The caller holds c.mu.
func (c *checker) learn(next *state.Catalog) {
	c.model.catalogs[next.Revision] = next
	for name, record := range next.Jobs {
		for _, v := range record.Versions {
			id := version{name, v.Number}
			c.model.note(name, v)
			if v.Removed() {
				continue
			}
			job := c.jobs[id]
			for _, t := range job.Triggers {
				key := lineKey{id, t.Name}
				if c.model.lines[key] != nil {
					continue
				}
				c.model.lines[key] = c.newLine(key, v, job, t)
			}
		}
	}
}

// note keeps a version, also for when the catalog does not have it any more.
func (m *model) note(job string, v state.Version) {
	all := m.versions[job]
	i := sort.Search(len(all), func(i int) bool { return all[i].Number >= v.Number })
	if i < len(all) && all[i].Number == v.Number {
		all[i] = v // it may be raised until it is in force
		return
	}
	m.versions[job] = slices.Insert(all, i, v)
}

func (c *checker) newLine(key lineKey, v state.Version, job config.Job, t config.Trigger) *line {
	l := &line{job: job, trigger: t, base: v.EffectiveAt, from: v.EffectiveAt}
	s := t.Schedule
	// The version before, though a full catalog may have lost it by now; a removal has no lines.
	if last := c.model.lines[lineKey{version{key.job, v.Number - 1}, t.Name}]; last != nil {
		old := last.trigger.Schedule
		if old.Kind == s.Kind && old.Interval == s.Interval && old.Start.Equal(s.Start) {
			l.base = last.base // an edit keeps the base unless interval or start change
		}
	}
	of := run.Key{Job: key.job, Trigger: t.Name}
	switch s.Kind {
	case schedule.KindRate, schedule.KindEvery:
		if is := v.Bases[t.Name]; !is.Equal(l.base) {
			c.failLocked("%s version %d counts from %s, and should from %s", of, v.Number, is, l.base)
		}
	case schedule.KindCron, schedule.KindOnce, schedule.KindManual:
	}
	timeline, err := s.Compile(schedule.Env{Key: of.String(), FirstSeen: l.base, Calendars: job.Calendars})
	if err != nil {
		c.failLocked("%s: %v", of, err)
		return nil
	}
	l.Timeline = timeline
	return l
}

// line is the trigger that has decided something, nil where the version does not define it.
func (m *model) line(key run.Key, number int) *line {
	return m.lines[lineKey{version{key.Job, number}, key.Trigger}]
}

// until is where what a version decides ends, by the catalog of that revision; zero: nowhere.
func (m *model) until(revision int64, job string, number int) (end time.Time) {
	c := m.catalogs[revision]
	if c == nil || c.Jobs[job] == nil {
		return time.Time{}
	}
	for _, v := range c.Jobs[job].Versions {
		at := v.EffectiveAt
		if v.Number == number {
			at = v.Until // of one that is kept longer than what follows it
		}
		if v.Number >= number && !at.IsZero() && (end.IsZero() || at.Before(end)) {
			end = at
		}
	}
	return end
}

// paused says by what a trigger stood still at a time, by the catalog of that revision; empty: it did
// not. The caller holds c.mu.
func (c *checker) paused(revision int64, key run.Key, at time.Time) string {
	catalog := c.model.catalogs[revision]
	if catalog == nil {
		return ""
	}
	if j := catalog.Jobs[key.Job]; j != nil && c.jobs[version{key.Job, j.Newest().Number}].Paused {
		return "its definition"
	}
	for _, name := range pauseNames(key) {
		if p, ok := catalog.Pauses[name]; ok && p.Active(at) {
			return "the pause " + name
		}
	}
	return ""
}

func pauseNames(key run.Key) [3]string {
	return [3]string{state.PauseAll, key.Job, key.String()}
}
