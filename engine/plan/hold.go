package plan

import (
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// HoldBy says what a pause was asked for.
type HoldBy string

// What pauses.
const (
	HoldEverything HoldBy = "everything" // the whole app was paused
	HoldJob        HoldBy = "job"
	HoldTrigger    HoldBy = "trigger"
	HoldDefinition HoldBy = "definition" // the job's definition says paused: true
)

// Hold is one pause that is in force. Several may hold the same trigger: it fires when none is left.
type Hold struct {
	By      HoldBy
	Trigger string // of HoldTrigger alone
	Reason  string
	Since   time.Time // of a definition: from when on its versions in a row say so
	Until   time.Time // zero: until it is resumed, or the definition changes
}

// Holds lists the pauses that hold a job, or some of the triggers named, at now: those of the whole job
// first. [Definitions.Paused] goes by the same, and stands still for a definition that cannot be computed
// too, which is no pause.
func (d *Definitions) Holds(job string, triggers []string, now time.Time) []Hold {
	var holds []Hold
	add := func(by HoldBy, key run.Key) {
		if p, ok := d.pauses[state.PauseKey(key)]; ok && p.Active(now) {
			holds = append(holds, Hold{By: by, Trigger: key.Trigger, Reason: p.Reason, Since: p.At, Until: p.Until})
		}
	}
	add(HoldEverything, run.Key{})
	if job == "" {
		return holds
	}
	if j := d.Jobs[job]; j != nil {
		if v, ok := j.Current(); ok && v.Paused {
			holds = append(holds, Hold{By: HoldDefinition, Since: j.pausedSince()})
		}
	}
	add(HoldJob, run.Key{Job: job})
	for _, name := range triggers {
		add(HoldTrigger, run.Key{Job: job, Trigger: name})
	}
	return holds
}

// pausedSince is when the first of the newest versions in a row took effect that all say paused.
func (j *Job) pausedSince() time.Time {
	var since time.Time
	for i := len(j.Versions) - 1; i >= 0 && j.Versions[i].Paused && !j.Versions[i].Removed; i-- {
		since = j.Versions[i].From
	}
	return since
}
