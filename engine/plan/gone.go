package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// maxGone bounds how many triggers that are not defined any more are remembered, so that names that
// change with each release cannot fill the ledger.
const maxGone = 200

// gone is what stays remembered of a trigger that is not defined any more: how often it has fired,
// so that it is not forgiven when the job, or the trigger, comes back.
func gone(remembered state.Trigger, now time.Time) state.Trigger {
	kept := state.Trigger{Fired: remembered.Fired, FiredOf: remembered.FiredOf, Gone: remembered.Gone}
	if kept.Gone.IsZero() || kept.Gone.After(now) {
		kept.Gone = now
	}
	if kept.Fired == 0 || now.Sub(kept.Gone) > state.KeepRemoved {
		return state.Trigger{}
	}
	return kept
}

// forgetGone forgets those that went first where there are too many.
func (p *planner) forgetGone() {
	var keys []run.Key
	for key, t := range p.l.Triggers {
		if !t.Gone.IsZero() {
			keys = append(keys, key)
		}
	}
	if len(keys) <= maxGone {
		return
	}
	slices.SortFunc(keys, func(a, b run.Key) int {
		return cmp.Or(p.l.Triggers[b].Gone.Compare(p.l.Triggers[a].Gone), a.Compare(b))
	})
	for _, key := range keys[maxGone:] {
		p.l.SetTrigger(key, state.Trigger{})
	}
	p.res.Changed = true
}
