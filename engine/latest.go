package engine

import (
	"maps"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// setLedger takes over a ledger and what its runs tell, whichever node reported them and although
// they leave it again for the history.
func (v *view) setLedger(l *state.Ledger) {
	v.ledger = l
	copied := false
	for _, runs := range [2][]run.Run{l.Finished, l.Runs} {
		for i := range runs {
			job := runs[i].Key.Job
			before := v.latest[job]
			after := before
			if after.Note(runs[i]); after == before {
				continue
			}
			if !copied { // others read the old one
				if v.latest, copied = maps.Clone(v.latest), true; v.latest == nil {
					v.latest = make(map[string]state.Latest)
				}
			}
			v.latest[job] = after
		}
	}
}

// latestOf is what the history remembers of the jobs.
func latestOf(h *state.History) map[string]state.Latest {
	m := make(map[string]state.Latest, len(h.Jobs))
	for name, j := range h.Jobs {
		if j != nil {
			m[name] = j.Latest
		}
	}
	return m
}
