package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

func decode[T any](data []byte) *T {
	v := new(T)
	unmarshal := func(text []byte) error { return json.Unmarshal(text, v) }
	if own, ok := any(v).(json.Unmarshaler); ok {
		unmarshal = own.UnmarshalJSON // the text is gone through once less
	}
	if err := unmarshal(data); err != nil {
		panic(fmt.Sprintf("sim: %v in %.200s", err, data))
	}
	return v
}

func (c *checker) catalogWritten(n *node, next *state.Catalog) {
	c.world.logf(n.name, "  wrote the catalog: revision %d, watermark %s", next.Revision, clock(c.ledger.Watermark))
	for _, name := range slices.Sorted(maps.Keys(next.Jobs)) {
		was := c.catalog.Jobs[name]
		for i, v := range next.Jobs[name].Versions {
			if was == nil || !slices.ContainsFunc(was.Versions, func(w state.Version) bool { return w.Number == v.Number && w.EffectiveAt.Equal(v.EffectiveAt) }) {
				c.world.logf("", "    %s version %d from %s on, %d before it, removed %v", name, v.Number, clock(v.EffectiveAt), i, v.Removed())
			}
		}
	}
	if next.Revision < c.catalog.Revision {
		c.failLocked("the catalog's revision goes back from %d to %d", c.catalog.Revision, next.Revision)
	}
	for name, j := range next.Jobs {
		for _, v := range j.Versions {
			key := version{name, v.Number}
			if _, known := c.jobs[key]; known || v.Removed() {
				continue
			}
			var job config.Job
			if err := json.Unmarshal(v.Definition, &job); err != nil {
				c.failLocked("version %d of %s: %v", v.Number, name, err)
			}
			c.jobs[key] = job
		}
	}
	c.learn(next)
	c.possibleCatalog(next)
	c.catalog = next
}

// ledgerWritten checks one step of the ledger.
func (c *checker) ledgerWritten(n *node, prev, next *state.Ledger) {
	c.world.logf(n.name, "  wrote the ledger: term %d, watermark %s, %d open, %d ended, %d skipped", next.Term, clock(next.Watermark), len(next.Runs), len(next.Finished), len(next.Skipped))
	for _, key := range slices.SortedFunc(maps.Keys(next.Triggers), run.Key.Compare) {
		t := next.Triggers[key]
		if was := prev.Triggers[key]; was != t {
			c.world.logf("", "    %s: cursor %s, awaits end %v, last end %s, fired %d, next catch-up %s", key, clock(t.Cursor), t.AwaitsEnd, clock(t.LastEnd), t.Fired, clock(t.NextCatchUp))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(prev.Triggers), run.Key.Compare) {
		if _, kept := next.Triggers[key]; !kept {
			c.world.logf("", "    %s: no exception any more", key)
		}
	}
	if next.Term < prev.Term {
		c.failLocked("%s sets the term back from %d to %d", n.name, prev.Term, next.Term)
	}
	if next.Term == prev.Term && next.Holder != prev.Holder {
		c.failLocked("term %d goes from %s to %s", next.Term, prev.Holder, next.Holder)
	}
	if next.Watermark.Before(prev.Watermark) {
		c.failLocked("%s sets the watermark back by %s", n.name, prev.Watermark.Sub(next.Watermark))
	}
	open := make(map[string]*run.Run, len(next.Runs))
	for i := range next.Runs {
		r := &next.Runs[i]
		if open[r.ID] != nil {
			c.failLocked("run %s of %s is in the ledger twice", r.ID, r.Key)
		}
		open[r.ID] = r
	}
	finished := make(map[string]*run.Run, len(next.Finished))
	for i := range next.Finished {
		r := &next.Finished[i]
		if finished[r.ID] != nil {
			c.failLocked("run %s of %s has ended twice", r.ID, r.Key)
		}
		finished[r.ID] = r
	}
	before := make(map[string]*run.Run, len(prev.Runs))
	for i := range prev.Runs {
		r := &prev.Runs[i]
		before[r.ID] = r
		switch {
		case open[r.ID] != nil:
			c.moved(n, next, r, open[r.ID])
		case finished[r.ID] != nil:
			c.ended(n, next, r, finished[r.ID])
		default:
			c.failLocked("%s makes run %s of %s vanish, which was %s", n.name, r.ID, r.Key, r.State)
		}
	}
	for i := range next.Runs {
		if r := &next.Runs[i]; before[r.ID] == nil {
			c.appeared(n, next, r)
		}
	}
	for i := range next.Finished {
		r := &next.Finished[i]
		id := r.ID
		was, known := c.ends[id]
		if !known && before[id] == nil {
			c.unborn(n, next, r)
		}
		if known && was != r.State {
			c.failLocked("%s turns run %s of %s from %s into %s", n.name, id, r.Key, was, r.State)
		}
		c.ends[id] = r.State
	}
	for i := range prev.Finished {
		if r := &prev.Finished[i]; finished[r.ID] == nil {
			c.droppedRun(n, r)
		}
	}
	for i := range next.Skipped {
		s := &next.Skipped[i]
		if name := skipName(s); !c.decided[name] {
			c.archive.skipped(s)
			c.decide(decision{s.Key, s.Version, s.ScheduledAt, s.CoveredUntil, s.Count, "skipped (" + string(s.Reason) + ")"}, name)
		}
	}
	c.skipsWritten(n, prev, next)
	c.judge(n, prev, next)
	c.idle(n, prev, next)
	c.possible(n, prev, next)
	c.alone(n, prev, next)
	c.again(n, prev, next)
	c.crowding(n, next)
}

// appeared checks a run that was not open before.
func (c *checker) appeared(n *node, l *state.Ledger, r *run.Run) {
	if was, ended := c.ends[r.ID]; ended {
		c.failLocked("%s revives run %s of %s, which was %s", n.name, r.ID, r.Key, was)
		return
	}
	key := attempt{r.Occurrence, r.Attempt}
	if other, taken := c.attempts[key]; taken && other != r.ID {
		c.failLocked("%s makes run %s attempt %d of %s at %s, which is run %s", n.name, r.ID, r.Attempt, r.Key, r.ScheduledAt, other)
	}
	c.attempts[key] = r.ID
	c.seen[r.ID] = *r
	c.firstDue(n, r)
	c.further(n, l, r)
	c.world.tally("decided: " + string(r.Cause))
	c.world.logf("", "    %s attempt %d of %s, run %s: %s by %s, due %s", r.Key, r.Attempt, clock(r.ScheduledAt), r.ID[14:], r.State, r.Cause, clock(r.DueAt))
	switch {
	case r.Cause == run.CauseSchedule:
		c.decide(decision{r.Key, r.Version, r.ScheduledAt, r.CoveredUntil, max(r.Coalesced, 1), "fired"}, "run "+r.ID)
	case r.Attempt > 1 && c.attempts[attempt{r.Occurrence, r.Attempt - 1}] == "":
		c.failLocked("attempt %d of %s at %s has no attempt before it", r.Attempt, r.Key, r.ScheduledAt)
	}
	if r.State.Claimed() {
		c.claimed(n, l, r)
	}
}

// unborn checks a run that was decided and has ended in one write: replaced before it was sent.
func (c *checker) unborn(n *node, l *state.Ledger, r *run.Run) {
	if r.State != run.StateCanceled || r.Node != "" {
		c.failLocked("run %s of %s has ended as %s and was never open", r.ID, r.Key, r.State)
	}
	c.appeared(n, l, r)
}

// moved checks what became of a run that stays open.
func (c *checker) moved(n *node, l *state.Ledger, was, is *run.Run) {
	if was.Occurrence != is.Occurrence || was.Attempt != is.Attempt || was.Key != is.Key || !was.ScheduledAt.Equal(is.ScheduledAt) ||
		was.Version != is.Version && !c.premature(l, was, is) {
		c.failLocked("%s makes another run of %s", n.name, is.ID)
	}
	c.seen[is.ID] = *is
	c.sameDue(n, was, is)
	if was.State != is.State || was.Cancel != is.Cancel || was.Node != is.Node {
		c.world.logf("", "    %s attempt %d of %s: %s, cancel %v, at %s", is.Key, is.Attempt, clock(is.ScheduledAt), is.State, is.Cancel, is.Node)
	}
	same := was.Node == is.Node && was.Term == is.Term
	switch {
	case was.State == run.StateQueued && is.State == run.StateQueued:
	case was.State == run.StateQueued && is.State == run.StatePending:
		c.claimed(n, l, is)
	case was.State.Claimed() && is.State == run.StateQueued:
		c.handedBack(n, was)
	case was.State.Claimed() && is.State == run.StatePending && !same:
		c.handedBack(n, was) // and taken again in the same write
		c.claimed(n, l, is)
	case was.State.Claimed() && is.State.Claimed() && same && (was.State == is.State || is.State == run.StateRunning):
	case was.State == run.StateRunning && is.State == run.StateRunning && was.Async && is.Async && was.Term == is.Term && heir(n, was) && is.Node == n.name:
		c.world.tally("adopted")
	case was.State.Claimed() && is.State == run.StateNeedsReview:
		c.lost(n, was)
	case was.State == run.StateNeedsReview && is.State == run.StateNeedsReview:
	default:
		c.failLocked("%s moves run %s of %s from %s (%s, term %d) to %s (%s, term %d)",
			n.name, is.ID, is.Key, was.State, was.Node, was.Term, is.State, is.Node, is.Term)
	}
}

// premature reports whether a run was asked for by a version that is not in force yet, and is given to a node
// by one before it.
func (c *checker) premature(l *state.Ledger, was, is *run.Run) bool {
	asked := slices.IndexFunc(c.model.versions[was.Key.Job], func(v state.Version) bool { return v.Number == was.Version })
	return was.Cause != run.CauseSchedule && was.State == run.StateQueued && is.State.Claimed() && is.Version < was.Version &&
		asked >= 0 && c.model.versions[was.Key.Job][asked].Revision > l.CatalogRevision
}

// handedBack checks a run that a node gives up, because it has not sent it and never will.
func (c *checker) handedBack(n *node, r *run.Run) {
	c.world.tally("handed back")
	if r.Node != n.name {
		c.failLocked("%s hands back run %s of %s, which is %s's", n.name, r.ID, r.Key, r.Node)
	}
	if by, sent := c.starts[attempt{r.Occurrence, r.Attempt}]; sent {
		c.failLocked("%s hands back run %s of %s, which %s has sent", n.name, r.ID, r.Key, by)
	}
}

// claimed checks a run that a write gives to a node.
func (c *checker) claimed(n *node, l *state.Ledger, r *run.Run) {
	if r.Node != n.name || r.Node != l.Holder || r.Term != l.Term {
		c.failLocked("%s gives run %s of %s to %s under term %d; the ledger is %s's, term %d", n.name, r.ID, r.Key, r.Node, r.Term, l.Holder, l.Term)
	}
	c.claims[claim{r.ID, r.Node, r.Term}] = true
}

// ended checks a run that ends with this write.
func (c *checker) ended(n *node, l *state.Ledger, was, is *run.Run) {
	if !is.State.Ended() {
		c.failLocked("run %s of %s is %s among the ended ones", is.ID, is.Key, is.State)
	}
	c.world.tally("ended: " + string(is.State))
	c.world.logf("", "    %s attempt %d of %s: %s %s", is.Key, is.Attempt, clock(is.ScheduledAt), is.State, is.Message)
	c.asHeard(n, was, is)
	job := c.jobs[version{is.Key.Job, is.Version}]
	again := false
	for i := range l.Runs {
		again = again || l.Runs[i].Occurrence == is.Occurrence && l.Runs[i].Attempt == is.Attempt+1
	}
	switch is.State {
	case run.StateLost:
		c.lost(n, was)
		if job.Recovery == config.RecoveryRerun && c.tries[is.Occurrence].recovered == 0 && !again {
			c.failLocked("%s declares run %s of %s lost without its recovery", n.name, is.ID, is.Key)
		}
	case run.StateFailed:
		due := c.mustRetry(is) && c.tries[is.Occurrence].retried < job.Retry.MaxRetries && job.Deadline == 0
		if due && !again {
			c.failLocked("%s ends run %s of %s without the retry that is due", n.name, is.ID, is.Key)
		}
	case run.StateSucceeded, run.StateCanceled, run.StateQueued, run.StatePending, run.StateRunning, run.StateNeedsReview:
	}
}

// triesAgain is how long after a failure whoever failed may still be waiting, for a call that hangs and then
// to try again.
const triesAgain = 15 * time.Second

// lost checks a verdict about a node that says nothing any more. One that is alive must have been
// kept from speaking by something of its own: an outage that hit everybody proves nothing.
func (c *checker) lost(n *node, r *run.Run) {
	if heir(n, r) {
		c.failLocked("%s declares run %s of %s lost, which the app beside it has accepted from %s", n.name, r.ID, r.Key, r.Node)
	}
	if c.world.anarchy || r.Node == n.name {
		return
	}
	for _, other := range c.world.alive() {
		if other.name != r.Node && !heir(other, r) {
			continue
		}
		other.mu.Lock()
		calm := time.Since(other.disturbed)
		if other.name != r.Node { // it has not been here for longer
			calm = min(calm, time.Since(other.born))
		}
		stopped := other.resume != nil
		other.mu.Unlock()
		timeout := c.world.nodeTimeout
		if stopped || calm <= timeout+triesAgain {
			continue
		}
		switch outage, ago := c.world.server.lastOutage(groupDocs); {
		case ago > timeout+triesAgain:
			c.failLocked("%s declares run %s of %s lost, whose node %s is well and had nothing against it for %s", n.name, r.ID, r.Key, r.Node, calm)
		case outage > timeout*3/4 && ago < timeout/2:
			c.failLocked("%s declares run %s of %s lost, whose node %s is well, %s after nobody could say anything for %s", n.name, r.ID, r.Key, r.Node, ago, outage)
		}
	}
}

// crowding checks how much is in flight at once.
func (c *checker) crowding(n *node, l *state.Ledger) {
	byJob, byNode := make(map[string]int), make(map[string]int)
	for i := range l.Runs {
		r := &l.Runs[i]
		if !r.State.Claimed() {
			continue
		}
		byJob[r.Key.Job]++
		byNode[r.Node]++
	}
	for i := range l.Runs {
		r := &l.Runs[i]
		if !r.State.Claimed() {
			continue
		}
		job, known := c.jobs[version{r.Key.Job, r.Version}]
		limit := 1
		if job.Overlap == config.OverlapParallel {
			if limit = job.MaxParallel; limit == 0 {
				continue
			}
		}
		if known && byJob[r.Key.Job] > limit && !c.redefined(r.Key.Job) {
			c.failLocked("%s has %d runs of %s in flight, which is %s", n.name, byJob[r.Key.Job], r.Key.Job, job.Overlap)
			break
		}
	}
	for node, held := range byNode {
		if held > c.world.maxRuns {
			c.failLocked("%s gives %d runs to %s, which has %d slots", n.name, held, node, c.world.maxRuns)
		}
	}
}

// redefined reports whether the versions of a job differ in what they allow beside each other.
func (c *checker) redefined(job string) bool {
	first := true
	var overlap config.Overlap
	var limit int
	for v, j := range c.jobs {
		if v.job != job {
			continue
		}
		if !first && (overlap != j.Overlap || limit != j.MaxParallel) {
			return true
		}
		first, overlap, limit = false, j.Overlap, j.MaxParallel
	}
	return false
}

// decide notes a decision, once.
func (c *checker) decide(d decision, id string) {
	if c.decided[id] {
		return
	}
	c.decided[id] = true
	if d.what != "fired" {
		c.world.logf("", "    %s: %d instants from %s, %s", d.key, d.count, clock(d.at), d.what)
	}
	c.decisions = append(c.decisions, d)
}

// clock is a time as the event log shows it.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format("15:04:05.000000")
}
