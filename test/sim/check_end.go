package sim

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// stuck is how late something may be at the end, when nothing has been wrong for a while.
const stuck = 100 * time.Second

// end checks what can only be seen when everything is over: that nothing is missing, and that
// nothing stands still.
func (c *checker) end() {
	leaders := 0
	for _, n := range c.world.alive() {
		if n.engine.Status().Leading {
			leaders++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaders != 1 {
		c.failLocked("%d nodes lead at the end", leaders)
	}
	now := time.Now()
	for i := range c.ledger.Runs {
		r := &c.ledger.Runs[i]
		if late := now.Sub(r.DueAt); late > stuck && r.State != run.StateNeedsReview {
			c.failLocked("run %s of %s, attempt %d, stands still: %s at %s, due %s ago", r.ID, r.Key, r.Attempt, r.State, r.Node, late)
		}
	}
	for id, r := range c.seen {
		if c.ledger.Run(id) == nil && !c.ends[id].Ended() {
			c.failLocked("run %s of %s has vanished", id, r.Key)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.catalog.Jobs)) {
		c.accountJob(name, c.model.versions[name], now)
	}
}

// accountJob checks that every instant of every trigger of a job was decided exactly once.
func (c *checker) accountJob(name string, versions []state.Version, now time.Time) {
	triggers := make(map[run.Key]bool)
	for _, v := range versions {
		for _, t := range c.jobs[version{name, v.Number}].Triggers {
			triggers[run.Key{Job: name, Trigger: t.Name}] = true
		}
	}
	keys := slices.SortedFunc(maps.Keys(triggers), run.Key.Compare)
	for _, key := range keys {
		c.account(key, versions, now)
	}
}

// account checks one trigger.
func (c *checker) account(key run.Key, versions []state.Version, now time.Time) {
	remembered := c.ledger.Triggers[key]
	cursor := c.ledger.Watermark
	if !remembered.Cursor.IsZero() {
		cursor = remembered.Cursor
	}
	var mine []decision
	for _, d := range c.decisions {
		if d.key == key {
			mine = append(mine, d)
		}
	}
	slices.SortStableFunc(mine, func(a, b decision) int { return a.at.Compare(b.at) })
	for i := 1; i < len(mine); i++ {
		if mine[i].at.Equal(mine[i-1].at) {
			c.failLocked("the instant %s of %s is decided twice: %s, and %s", mine[i].at, key, mine[i-1].what, mine[i].what)
		}
	}
	for i, v := range versions {
		if v.Removed() {
			continue
		}
		until := cursor.Add(24 * time.Hour)
		for _, after := range versions[i+1:] {
			if after.EffectiveAt.Before(until) {
				until = after.EffectiveAt
			}
		}
		job := c.jobs[version{key.Job, v.Number}]
		for _, t := range job.Triggers {
			if t.Name != key.Trigger {
				continue
			}
			s := span{key: key, job: job, trigger: t, version: v, until: until, cursor: cursor, last: i == len(versions)-1}
			s.left = left(versions, i+1)
			if t.Schedule.Kind == schedule.KindEvery {
				c.accountDelayed(s, mine, now)
			} else {
				c.accountInstants(s, mine, now)
			}
		}
	}
}

// left is when a job has left first, from a version on: what was undecided then is not decided any
// more.
func left(versions []state.Version, from int) time.Time {
	for _, v := range versions[from:] {
		if v.Removed() {
			return v.EffectiveAt
		}
	}
	return time.Time{}
}

// dropped reports whether an instant was undecided when the job left: so was all that comes after it.
func (s span) dropped(at time.Time, mine []decision) bool {
	return !s.left.IsZero() && !slices.ContainsFunc(mine, func(d decision) bool { return d.at.After(at) && d.at.Before(s.left) })
}

// span is the part of a trigger's life that one version decides.
type span struct {
	key     run.Key
	job     config.Job
	trigger config.Trigger
	version state.Version
	until   time.Time
	cursor  time.Time
	last    bool      // the version in force
	left    time.Time // when the job has left after it; zero: it has not
}

func (c *checker) accountInstants(s span, mine []decision, now time.Time) {
	line := c.model.line(s.key, s.version.Number)
	var instants []time.Time
	horizon := now.Add(10 * time.Minute)
	for at, ok := line.Next(s.version.EffectiveAt.Add(-time.Nanosecond)); ok && at.Before(s.until) && at.Before(horizon); at, ok = line.Next(at) {
		instants = append(instants, at)
	}
	covered := make([]int, len(instants))
	where := fmt.Sprintf("%s version %d (%s, %s)", s.key, s.version.Number, s.trigger.Schedule, s.trigger.Misfire.Policy)
	for _, d := range mine {
		if d.version != s.version.Number {
			continue
		}
		until := d.until
		if until.IsZero() {
			until = s.until
		}
		from := sort.Search(len(instants), func(i int) bool { return !instants[i].Before(d.at) })
		if from == len(instants) || !instants[from].Equal(d.at) {
			c.failLocked("%s: %s is no instant of it, and was %s", where, d.at, d.what)
			continue
		}
		n := 0
		for i := from; i < len(instants) && instants[i].Before(until); i++ {
			covered[i]++
			n++
		}
		if n != d.count && !(d.until.IsZero() && s.until.After(horizon)) {
			c.failLocked("%s: %s at %s says that it covers %d instants, up to %s there are %d", where, d.what, d.at, d.count, until, n)
		}
	}
	for i, at := range instants {
		switch decided := at.Before(s.cursor); {
		case covered[i] > 1:
			c.failLocked("%s: the instant %s is decided %d times", where, at, covered[i])
		case covered[i] == 0 && decided && !s.dropped(at, mine):
			c.failLocked("%s: the instant %s was never decided; all before %s are said to be", where, at, s.cursor)
		case covered[i] == 1 && !decided && s.left.IsZero():
			c.failLocked("%s: the instant %s is decided, only those before %s are said to be", where, at, s.cursor)
		case covered[i] == 0 && !decided && s.last && now.Sub(at) > stuck:
			c.failLocked("%s: the instant %s is undecided, %s late", where, at, now.Sub(at))
			return
		}
	}
}

// accountDelayed checks a fixed delay, whose instants follow from when its runs ended.
func (c *checker) accountDelayed(s span, mine []decision, now time.Time) {
	if limit := s.trigger.Schedule.Count; !s.last || (limit > 0 && c.model.firedBy(s.key, s.trigger.Schedule).times >= limit) {
		return
	}
	open := slices.ContainsFunc(c.ledger.Runs, func(r run.Run) bool { return r.Key.Job == s.key.Job })
	lately := s.version.EffectiveAt
	for _, d := range mine {
		if d.at.After(lately) {
			lately = d.at
		}
	}
	if idle := now.Sub(lately); !open && idle > s.trigger.Schedule.Interval+stuck {
		c.failLocked("%s version %d: nothing decided for %s, interval %s", s.key, s.version.Number, idle, s.trigger.Schedule.Interval)
	}
}
