package plan

import (
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Paused reports whether a trigger stands still at now: by its job's definition or because that
// cannot be computed, or by a pause of the trigger, the job or the app. Until is when the pauses
// that have an end are over, zero where something has none. While it stands still its instants
// stay undecided and are not missed.
func (d *Definitions) Paused(key run.Key, now time.Time) (paused bool, until time.Time) {
	endless := false
	if j := d.Jobs[key.Job]; j != nil {
		v, ok := j.Current()
		endless = j.Err != nil || (ok && v.Paused)
	}
	for _, name := range pauseKeys(key) {
		p, ok := d.pauses[name]
		if !ok || !p.Active(now) {
			continue
		}
		paused = true
		endless = endless || p.Until.IsZero()
		if p.Until.After(until) {
			until = p.Until
		}
	}
	if endless {
		return true, time.Time{}
	}
	return paused, until
}

// waived is up to when a resume has waived the instants of a trigger.
func (d *Definitions) waived(key run.Key) time.Time {
	var latest time.Time
	for _, name := range pauseKeys(key) {
		if at := d.skips[name]; at.After(latest) {
			latest = at
		}
	}
	return latest
}

// resumed is when a trigger that fires now was last let go on: by a resume that waived instants, or by
// the end of a pause; zero where nothing tells.
func (d *Definitions) resumed(key run.Key) time.Time {
	latest := d.waived(key)
	for _, name := range pauseKeys(key) {
		if until := d.pauses[name].Until; until.After(latest) {
			latest = until
		}
	}
	return latest
}

func pauseKeys(key run.Key) [3]string {
	return [3]string{state.PauseAll, state.PauseKey(run.Key{Job: key.Job}), state.PauseKey(key)}
}
