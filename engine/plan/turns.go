package plan

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// decideAll works off the undecided instants of these triggers up to the horizon, in the order in
// which they have a claim to a slot: what is due takes its turn by priority, then by the instant,
// then by name. A trigger that has had one instant decided stands in line again with its next one,
// so that none with a long backlog keeps those waiting that share its job or the ledger's room.
func (p *planner) decideAll(keys []run.Key) {
	var line waiting
	for _, key := range keys {
		if p.unreadable(key) {
			continue
		}
		if c := p.contender(key); c.due(p.in.Horizon) {
			line = append(line, c)
		} else {
			p.leave(c, false)
		}
	}
	if len(line) == 0 {
		return
	}
	p.takeTurns(line)
}

// unreadable reports whether what is stored of a trigger cannot be read. It is not written over.
func (p *planner) unreadable(key run.Key) bool {
	return p.in.Definitions.Jobs[key.Job].odd() || len(p.l.OddTriggers) > 0 && slices.Contains(p.l.OddTriggers, key.String())
}

// takeTurns decides instant by instant, always the first in line.
func (p *planner) takeTurns(line waiting) {
	heap.Init(&line)
	for len(line) > 0 {
		c := line[0]
		done, blocked := p.step(c.key, c.segment, c.at, &c.remembered)
		if !blocked {
			c.advanced = true
			c.steps++
			c.at, c.segment, c.ok = c.track.first(done, c.remembered)
			c.turn = later(c.at, p.in.Now)
			if c.due(p.in.Horizon) && c.steps < maxPerTurn {
				heap.Fix(&line, 0)
				continue
			}
		}
		heap.Pop(&line)
		p.leave(c, blocked)
	}
}

// contender is a trigger that a turn looks at.
type contender struct {
	key        run.Key
	track      *Track
	remembered state.Trigger
	// at is the first undecided instant, which segment decides; ok says that there is one.
	at      time.Time
	segment *segment
	ok      bool
	// turn is when the instant takes its turn: now, or ahead of time the instant itself. What is
	// only due by the horizon does not go before what falls due earlier, whatever its priority.
	turn     time.Time
	advanced bool
	steps    int
}

func (c *contender) due(horizon time.Time) bool { return c.ok && !c.at.After(horizon) }

// contender finds where a trigger stands.
func (p *planner) contender(key run.Key) *contender {
	c := &contender{key: key}
	track := p.in.Definitions.Tracks[key]
	remembered := p.l.Triggers[key]
	if track == nil || p.in.Definitions.left(key.Job, p.in.Now) {
		// A job that left the document stops: what it had not decided is not decided any more.
		c.remembered = gone(remembered, p.in.Now)
		return c
	}
	remembered.Gone = time.Time{}
	if remembered.AwaitsEnd && !p.unfinished(key) {
		// Its run is gone without a trace: no trigger may stand still for ever (R107).
		remembered.AwaitsEnd, remembered.LastEnd = false, p.in.Now
	}
	remembered = possible(remembered, p.in.Now)
	if remembered.LastEnd.After(p.in.Now) {
		remembered.LastEnd = p.in.Now // by a clock that was ahead of this one
	}
	c.track, c.remembered = track, remembered
	c.at, c.segment, c.ok = track.first(from(remembered, p.l.Watermark), remembered)
	c.turn = later(c.at, p.in.Now)
	return c
}

// leave notes where a trigger stands when the turn is done with it.
func (p *planner) leave(c *contender, blocked bool) {
	now := standing{key: c.key, remembered: c.remembered, advanced: c.advanced}
	if c.ok {
		now.at = c.at
	}
	due := c.due(p.in.Horizon) // blocked, paused, or more than one turn decides
	// An instant that is not due but was when a turn before looked further ahead, or when the clock
	// had not been set back: the watermark has passed it undecided, so it keeps its entry.
	now.lags = due || c.ok && now.at.Before(p.l.Watermark)
	switch {
	case due && !blocked:
		p.res.Next = earlier(p.res.Next, p.in.Now)
	case c.ok && !due:
		p.res.Next = earlier(p.res.Next, now.at)
	}
	if !due {
		now.remembered.NextCatchUp = time.Time{}
	}
	p.looked = append(p.looked, now)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// waiting is a heap of what is due, in the order of [SlotOrder].
type waiting []*contender

func (w waiting) Len() int      { return len(w) }
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

func (w waiting) Less(i, j int) bool {
	a, b := w[i], w[j]
	return cmp.Or(a.turn.Compare(b.turn), cmp.Compare(b.segment.rules.priority, a.segment.rules.priority),
		a.at.Compare(b.at), a.key.Compare(b.key)) < 0
}

func (w *waiting) Push(item any) {
	if c, ok := item.(*contender); ok {
		*w = append(*w, c)
	}
}

func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}
