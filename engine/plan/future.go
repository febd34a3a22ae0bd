package plan

import (
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Cut is what lay so far in the future that no clock that may be trusted has written it: left by an older
// bug, a restored backup, or a clock that was ahead and came back.
type Cut struct {
	Watermark time.Time // where it lay; zero: where it may
	Triggers  []run.Key // whose cursors lay there, in their order
	Runs      int       // decided for instants that lie there, and not sent
}

// None reports whether there was nothing to cut.
func (c Cut) None() bool { return c.Watermark.IsZero() && len(c.Triggers) == 0 && c.Runs == 0 }

// CutFuture cuts the watermark and the cursors that lie beyond possible to now, so that nothing stands
// still until then, and takes back what was decided for instants beyond it and nobody was given. Those
// instants are decided again when they come: the one exception to deciding each once, under the same
// occurrence IDs.
func CutFuture(l *state.Ledger, now, possible time.Time) Cut {
	var cut Cut
	if l.Watermark.After(possible) {
		cut.Watermark, l.Watermark = l.Watermark, now
	}
	for key, t := range l.Triggers {
		if t.Cursor.After(possible) {
			t.Cursor = now
			l.SetTrigger(key, t)
			cut.Triggers = append(cut.Triggers, key)
		}
	}
	slices.SortFunc(cut.Triggers, run.Key.Compare)
	l.Runs = slices.DeleteFunc(l.Runs, func(r run.Run) bool {
		if r.State != run.StateQueued || r.Cause != run.CauseSchedule || r.Attempt > 1 || !r.ScheduledAt.After(possible) {
			return false
		}
		if t := l.Triggers[r.Key]; t.Fired > 0 { // it does not count, since it never was
			if t.Fired--; t.Fired == 0 {
				t.FiredOf = ""
			}
			l.SetTrigger(r.Key, t)
		}
		cut.Runs++
		return true
	})
	return cut
}
