package review

import (
	"cmp"
	"slices"
	"time"
)

// CrowdSize is how many other jobs due in the same minute make a crowd.
const CrowdSize = 20

const (
	crowdDays     = 7
	maxCrowdSteps = 5_000_000 // after which no further day is looked at
	minutesPerDay = 24 * 60
)

// Crowd is a minute in which more than CrowdSize jobs are due.
type Crowd struct {
	At   time.Time // the minute's begin
	Jobs int       // how many are due then
	// Triggers are those that meet their first crowd here, by key.
	Triggers []string
}

// Crowds returns the crowded minutes of the seven days after now, fewer for documents of tens
// of thousands of frequent triggers. Each trigger is named in its first one only. Jobs that are
// paused do not count, nor do triggers with jitter, which are spread already, and those whose
// instants are not known ahead.
func Crowds(triggers []Trigger, now time.Time) []Crowd {
	counted := slices.DeleteFunc(slices.Clone(triggers), func(t Trigger) bool {
		return t.Paused || !t.foreseeable() || t.Line.Schedule().Jitter > 0
	})
	if len(counted) <= CrowdSize {
		return nil
	}
	found := make(map[int64]*Crowd) // by minute
	placed := make([]bool, len(counted))
	first := now.Truncate(time.Minute).Add(time.Minute)
	steps := 0
	for day := 0; day < crowdDays && steps < maxCrowdSteps; day++ {
		begin := first.AddDate(0, 0, day)
		minutes := make([][]int16, len(counted)) // of each trigger
		var jobs, last [minutesPerDay]int        // how many are due, and the number of the last one
		number := 0
		for i, t := range counted {
			if i == 0 || counted[i-1].Job != t.Job {
				number++
			}
			minutes[i] = dueMinutes(t, begin)
			steps += len(minutes[i])
			for _, m := range minutes[i] {
				if last[m] != number {
					last[m] = number
					jobs[m]++
				}
			}
		}
		for i, t := range counted {
			if placed[i] {
				continue
			}
			for _, m := range minutes[i] {
				if jobs[m] <= CrowdSize {
					continue
				}
				at := begin.Add(time.Duration(m) * time.Minute)
				c := found[at.Unix()]
				if c == nil {
					c = &Crowd{At: at.UTC(), Jobs: jobs[m]}
					found[at.Unix()] = c
				}
				c.Triggers = append(c.Triggers, t.Key.String())
				placed[i] = true
				break
			}
		}
	}
	crowds := make([]Crowd, 0, len(found))
	for _, c := range found {
		crowds = append(crowds, *c)
	}
	slices.SortFunc(crowds, func(a, b Crowd) int {
		return cmp.Or(-cmp.Compare(len(a.Triggers), len(b.Triggers)), a.At.Compare(b.At))
	})
	return crowds
}

// dueMinutes returns the minutes of the day that begins then in which the trigger is due, in
// order. What else it is due in the same minute is jumped over.
func dueMinutes(t Trigger, begin time.Time) []int16 {
	var minutes []int16
	end := begin.AddDate(0, 0, 1)
	for after := begin.Add(-time.Microsecond); ; {
		at, ok := t.Line.Next(after)
		if !ok || !at.Before(end) {
			return minutes
		}
		m := int(at.Sub(begin).Minutes())
		minutes = append(minutes, int16(m)) //nolint:gosec // less than the minutes of a day
		after = begin.Add(time.Duration(m+1)*time.Minute - time.Microsecond)
	}
}
