package sim

import (
	"reflect"
	"slices"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// archive is what the history was ever seen to have, beside what the ledger has given up to it.
type archive struct {
	runs    map[string]*run.Run // as the history had them last
	now     *state.History
	skips   map[skipKind]skipCount
	trimmed map[string]bool // jobs of which the history could not keep all skips
}

// skipKind is what skipped ranges have in common that the history may keep as one.
type skipKind struct {
	key     run.Key
	version int
	reason  run.Reason
}

// skipCount counts instants that were skipped.
type skipCount struct {
	decided, dropped int // in the ledger, and from it
	kept             int // in the history, as it is now
}

func newArchive() *archive {
	return &archive{runs: make(map[string]*run.Run), now: &state.History{}, skips: make(map[skipKind]skipCount), trimmed: make(map[string]bool)}
}

// skipped notes a decision to skip.
func (a *archive) skipped(s *run.Skip) {
	count := a.skips[kindOf(s)]
	count.decided += s.Count
	a.skips[kindOf(s)] = count
}

func kindOf(s *run.Skip) skipKind { return skipKind{s.Key, s.Version, s.Reason} }

// mostSkips is how many skipped ranges of a job the history keeps.
const mostSkips = 50

// historyWritten checks one step of the history.
func (c *checker) historyWritten(n *node, next *state.History) {
	a := c.archive
	a.now = next
	kept := make(map[skipKind]int)
	for name, j := range next.Jobs {
		for i := range j.Runs {
			r := &j.Runs[i]
			if was := a.runs[r.ID]; was != nil && !onlyNoted(was, r) {
				c.failLocked("%s writes another end of run %s of %s into the history: %s (%s), which was %s (%s)", n.name, r.ID, r.Key, r.State, r.Message, was.State, was.Message)
			}
			a.runs[r.ID] = r
		}
		a.trimmed[name] = a.trimmed[name] || len(j.Skips) >= mostSkips
		for i := range j.Skips {
			kept[kindOf(&j.Skips[i])] += j.Skips[i].Count
		}
	}
	for kind, s := range a.skips {
		s.kept = kept[kind]
		if s.kept > s.decided {
			c.failLocked("%s writes %d instants of %s as skipped (%s) into the history, %d were", n.name, s.kept, kind.key, kind.reason, s.decided)
		}
		a.skips[kind] = s
	}
}

// keeps reports whether the history has a run now.
func (a *archive) keeps(r *run.Run) bool {
	j := a.now.Jobs[r.Key.Job]
	return j != nil && slices.ContainsFunc(j.Runs, func(kept run.Run) bool { return kept.ID == r.ID })
}

// onlyNoted reports whether a record says what it said, apart from a late result.
func onlyNoted(was, is *run.Run) bool {
	if was.State != is.State || was.Code != is.Code || !was.EndedAt.Equal(is.EndedAt) || was.Node != is.Node {
		return false
	}
	return was.Message == is.Message || is.Noted()
}

// droppedRun checks the record of a run that a write takes out of the ledger: the history has it, as it is.
func (c *checker) droppedRun(n *node, r *run.Run) {
	has := c.archive.runs[r.ID]
	if c.world.tight() && !c.archive.keeps(r) {
		return // there was no room for it, or none any more
	}
	if has == nil {
		c.failLocked("%s drops the record of run %s of %s, which the history does not have", n.name, r.ID, r.Key)
		return
	}
	had := *r
	had.Data = nil
	if same := *has; !reflect.DeepEqual(had, same) {
		c.failLocked("%s drops the record of run %s of %s, of which the history has another: %s (%s), not %s (%s)", n.name, r.ID, r.Key, same.State, same.Message, had.State, had.Message)
	}
}

// skipsWritten checks the skipped ranges that a write takes out of the ledger: each is in the history, and
// counted there.
func (c *checker) skipsWritten(n *node, prev, next *state.Ledger) {
	if len(prev.Skipped) == 0 {
		return
	}
	waits := make(map[string]bool, len(next.Skipped))
	for i := range next.Skipped {
		waits[skipName(&next.Skipped[i])] = true
	}
	for i := range prev.Skipped {
		s := &prev.Skipped[i]
		if waits[skipName(s)] {
			continue
		}
		count := c.archive.skips[kindOf(s)]
		count.dropped += s.Count
		c.archive.skips[kindOf(s)] = count
		if c.archive.trimmed[s.Key.Job] || c.world.tight() {
			continue
		}
		switch j := c.archive.now.Jobs[s.Key.Job]; {
		case j == nil || !slices.ContainsFunc(j.Skips, standsFor(s)):
			c.failLocked("%s drops the record of a skip of %s at %s (%s), which the history does not have", n.name, s.Key, s.ScheduledAt, s.Reason)
		case count.dropped > count.kept:
			c.failLocked("%s has dropped %d instants of %s, skipped (%s), the history has %d", n.name, count.dropped, s.Key, s.Reason, count.kept)
		}
	}
}

// standsFor reports whether a range in the history stands for s.
func standsFor(s *run.Skip) func(run.Skip) bool {
	return func(has run.Skip) bool {
		return kindOf(&has) == kindOf(s) && has.Covers(s.ScheduledAt)
	}
}

// skipName tells one decision to skip from others.
func skipName(s *run.Skip) string {
	return "skip " + s.Occurrence + string(s.Reason) + s.ScheduledAt.String()
}
