package state

import (
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// addSkip keeps skips in a row, of one trigger, version and reason, as one range. One that is part of a
// range already changes nothing.
func (j *JobHistory) addSkip(s run.Skip) {
	for i := range j.Skips {
		have := &j.Skips[i]
		if !alike(*have, s) {
			continue
		}
		if have.Occurrence == s.Occurrence || contains(*have, s) {
			return
		}
		older, newer := *have, s
		if s.ScheduledAt.Before(have.ScheduledAt) {
			older, newer = s, *have
		}
		if j.inRow(older, newer) {
			j.Skips = slices.Delete(j.Skips, i, i+1)
			j.addSkip(join(older, newer)) // which may close the gap to another one
			return
		}
	}
	j.Skips = append(j.Skips, s)
}

func alike(a, b run.Skip) bool {
	return a.Key == b.Key && a.Version == b.Version && a.Reason == b.Reason
}

// contains reports whether all of s lies in a range.
func contains(have, s run.Skip) bool {
	if !have.Covers(s.ScheduledAt) {
		return false
	}
	if s.CoveredUntil.IsZero() {
		return have.Covers(lastOf(s))
	}
	return !have.CoveredUntil.IsZero() && !s.CoveredUntil.After(have.CoveredUntil)
}

// inRow reports whether nothing lies between two ranges. Where the older one says where it ends, the
// newer one begins there; a fixed delay does not, and there a run between them tells.
func (j *JobHistory) inRow(older, newer run.Skip) bool {
	if !older.CoveredUntil.IsZero() {
		return older.CoveredUntil.Equal(newer.ScheduledAt)
	}
	from := lastOf(older)
	if !newer.CoveredUntil.IsZero() || !newer.ScheduledAt.After(from) {
		return false
	}
	return !slices.ContainsFunc(j.Runs, func(r run.Run) bool {
		return r.Key == newer.Key && r.ScheduledAt.After(from) && r.ScheduledAt.Before(newer.ScheduledAt)
	})
}

// join makes one range of two in a row. It is called after its first instant.
func join(older, newer run.Skip) run.Skip {
	out := older
	out.CoveredUntil, out.Count = newer.CoveredUntil, older.Count+newer.Count
	out.DecidedAt, out.Last = later(older.DecidedAt, newer.DecidedAt), time.Time{}
	if out.CoveredUntil.IsZero() {
		out.Last = lastOf(newer)
	}
	return out
}

// lastOf is the newest instant of a range that says nowhere where it ends.
func lastOf(s run.Skip) time.Time { return later(s.ScheduledAt, s.Last) }
