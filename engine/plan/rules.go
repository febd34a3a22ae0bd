package plan

import (
	"fmt"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// rules are what a version says of a trigger, as far as planning needs it.
type rules struct {
	kind        schedule.Kind
	overlap     config.Overlap
	maxParallel int
	priority    int
	interval    time.Duration
	limit       int    // of a limited trigger, 0: none
	counted     string // what the count of a limited trigger belongs to
	misfire     config.Misfire
}

func rulesOf(j *config.Job, t *config.Trigger) rules {
	r := rules{
		kind: t.Schedule.Kind, overlap: j.Overlap, maxParallel: j.MaxParallel,
		priority: t.Priority, interval: t.Schedule.Interval, limit: t.Schedule.Count, misfire: t.Misfire,
	}
	if r.limit > 0 {
		r.counted = fmt.Sprintf("%s x%d", r.interval, r.limit)
		if start := t.Schedule.Start; !start.IsZero() {
			r.counted += " " + start.UTC().Format(time.RFC3339Nano)
		}
	}
	return r
}

// usedUp reports whether a limited trigger has fired as often as it may. The count outlives every
// edit that leaves interval, start and limit as they are, and the job's absence: an edit never
// starts a run by itself.
func (r *rules) usedUp(remembered state.Trigger) bool {
	return r.limit > 0 && remembered.FiredOf == r.counted && remembered.Fired >= r.limit
}

// count counts a fired occurrence of a limited trigger.
func (r *rules) count(remembered *state.Trigger) {
	if r.limit == 0 {
		return
	}
	if remembered.FiredOf != r.counted {
		remembered.FiredOf, remembered.Fired = r.counted, 0
	}
	remembered.Fired++
}
