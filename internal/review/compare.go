package review

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
)

// Horizon is how far ahead Compare looks.
const Horizon = 30 * 24 * time.Hour

const (
	firstInstants      = 3          // of those that appear or disappear
	maxCompareInstants = 100_000    // of one trigger
	maxCompareTotal    = 20_000_000 // of all
)

// The kinds of a Change.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Difference is what one document changes in another.
type Difference struct {
	From, To time.Time
	Triggers []Change // by key
	// Jobs are the names of those, in both documents, of which something else than their
	// triggers' times has changed.
	Jobs []string
}

// Change is a trigger that is not due as before.
type Change struct {
	Key      string
	Kind     string // Added, Removed, Changed
	Old, New *Trigger
	// Gone and Come are the instants that only the old and only the new one has.
	Gone, Come Instants
	// Until is the end of what was compared, earlier than the Difference's for a trigger that is
	// due extremely often.
	Until time.Time
	// Unknown: the instants of one of the two depend on runs or on when it was first seen, and
	// are left out.
	Unknown bool
}

// Instants are a number of instants and the first few of them.
type Instants struct {
	Count int
	First []time.Time
}

func (n *Instants) add(at time.Time) {
	n.Count++
	if len(n.First) < firstInstants {
		n.First = append(n.First, at)
	}
}

// Compare returns what changes for the 30 days after now where the new document replaces the
// old one. A job that is paused has no instants.
func Compare(before, after config.Document, now time.Time) (Difference, error) {
	d := Difference{From: now, To: now.Add(Horizon)}
	was, err := byKey(before, now)
	if err != nil {
		return d, err
	}
	is, err := byKey(after, now)
	if err != nil {
		return d, err
	}
	keys := slices.Collect(maps.Keys(was))
	for key := range is {
		if _, ok := was[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	left := maxCompareTotal
	for _, key := range keys {
		c := Change{Key: key, Old: was[key], New: is[key]}
		switch {
		case c.Old == nil:
			c.Kind = Added
		case c.New == nil:
			c.Kind = Removed
		case sameTimes(*c.Old, *c.New):
			continue
		default:
			c.Kind = Changed
		}
		left -= c.walk(d.From, d.To, min(left, maxCompareInstants))
		d.Triggers = append(d.Triggers, c)
	}
	d.Jobs = changedJobs(before, after)
	return d, nil
}

func byKey(doc config.Document, now time.Time) (map[string]*Trigger, error) {
	triggers, err := Triggers(doc, now)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*Trigger, len(triggers))
	for i := range triggers {
		all[triggers[i].Key.String()] = &triggers[i]
	}
	return all, nil
}

// sameTimes reports whether two triggers are due at the same times because they say the same.
func sameTimes(a, b Trigger) bool {
	s := a.Line.Schedule()
	return s == b.Line.Schedule() && a.Paused == b.Paused && a.Job.Scope == b.Job.Scope &&
		(s.Calendar == "" || reflect.DeepEqual(a.Job.Calendars, b.Job.Calendars))
}

// walk goes through the instants of both side by side and returns how many it took, at most
// the given number.
func (c *Change) walk(from, to time.Time, most int) (steps int) {
	after := from.Add(-time.Microsecond)
	was, is := c.cursor(c.Old, after), c.cursor(c.New, after)
	for ; steps < most; steps++ {
		switch a, b := was.at, is.at; {
		case !a.Before(to) && !b.Before(to):
			c.Until = to
			return steps
		case a.Before(b):
			c.Gone.add(a)
			was.step()
		case b.Before(a):
			c.Come.add(b)
			is.step()
		default:
			was.step()
			is.step()
		}
	}
	c.Until = was.at
	if is.at.Before(c.Until) {
		c.Until = is.at
	}
	if c.Until.After(to) {
		c.Until = to
	}
	return steps
}

// cursor walks through the instants of a trigger, or of none.
type cursor struct {
	trigger *Trigger
	at      time.Time
}

// endless is after every instant.
var endless = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *Change) cursor(t *Trigger, after time.Time) *cursor {
	if t == nil || t.Paused {
		return &cursor{at: endless}
	}
	if !t.foreseeable() {
		c.Unknown = true
		return &cursor{at: endless}
	}
	start := &cursor{trigger: t, at: after}
	start.step()
	return start
}

func (c *cursor) step() {
	next, ok := c.trigger.Line.Next(c.at)
	if !ok {
		next = endless
	}
	c.at = next
}

// changedJobs names the jobs that are in both documents and differ in more than when they are
// due.
func changedJobs(before, after config.Document) []string {
	old := make(map[string]config.Job, len(before.Jobs))
	for _, job := range before.Jobs {
		old[job.Name] = job
	}
	var names []string
	for _, job := range after.Jobs {
		if was, ok := old[job.Name]; ok && !reflect.DeepEqual(withoutTimes(was, job), withoutTimes(job, was)) {
			names = append(names, job.Name)
		}
	}
	return names
}

// withoutTimes returns the job without what Compare tells about its triggers: their schedules,
// and those of them that the other one does not have.
func withoutTimes(job, other config.Job) config.Job {
	names := make(map[string]bool, len(other.Triggers))
	for _, t := range other.Triggers {
		names[t.Name] = true
	}
	var triggers []config.Trigger
	for _, t := range job.Triggers {
		if names[t.Name] {
			t.Schedule = schedule.Schedule{}
			triggers = append(triggers, t)
		}
	}
	slices.SortFunc(triggers, func(a, b config.Trigger) int { return strings.Compare(a.Name, b.Name) })
	if len(triggers) > 0 { // of which Compare says it
		job.Paused, job.Scope = false, ""
	}
	job.Triggers, job.Calendars = triggers, nil
	return job
}
