package plan

import (
	"time"
)

// fewLag is how many triggers may lag behind the watermark before it is asked whether it would be
// cheaper to leave the watermark behind.
const fewLag = 200

// moveCursors writes down up to where instants are decided now. As a rule the watermark goes to the
// horizon and each trigger that lags behind it gets an entry. Where most lag, as when thousands are
// due at once, the watermark stays at the first undecided instant instead, and those that have
// decided anything beyond it get the entries.
//
// A turn that decided nothing new moves nothing, so that an idle leader writes nothing.
func (p *planner) moveCursors() {
	// What each way costs: how many triggers need an entry.
	usual, left := 0, 0
	var first time.Time // undecided
	for i := range p.looked {
		s := &p.looked[i]
		switch {
		case s.lags && !s.at.Before(p.l.Watermark):
			usual++
			first = earlier(first, s.at)
			if s.advanced || p.l.Triggers[s.key].Lags() {
				left++ // it has decided some already, which the watermark would not tell
			}
		case s.lags: // the watermark has passed it, and never goes back: it keeps its entry
		case s.advanced || p.l.Triggers[s.key].Lags():
			left++
		}
	}
	target := p.ahead()
	behind := usual > fewLag && usual > left
	if behind {
		target = first
	}
	changed := false
	for i := range p.looked {
		s := &p.looked[i]
		changed = p.remember(s, target, behind) || s.advanced || changed
		move := Move{Key: s.key, At: s.at}
		if p.l.Triggers[s.key].Lags() {
			move.At, move.Lags = time.Time{}, true
		}
		p.res.Moves = append(p.res.Moves, move)
	}
	if changed {
		p.res.Changed = true
		if target.After(p.l.Watermark) {
			p.l.Watermark = target
		}
	}
}

// ahead is up to where a turn decides.
func (p *planner) ahead() time.Time { return p.in.Horizon.Add(tick).Truncate(tick) }

// remember stores what the ledger has to know of a trigger and reports whether that is new.
func (p *planner) remember(s *standing, target time.Time, behind bool) bool {
	t := s.remembered
	before := p.l.Triggers[s.key]
	t.Cursor = time.Time{}
	switch {
	case s.lags && (!behind || s.at.Before(p.l.Watermark) || s.advanced || before.Lags()):
		t.Cursor = s.at
	case !s.lags && behind && (s.advanced || before.Lags()):
		t.Cursor = p.ahead()
		if !s.advanced && before.Cursor.After(p.l.Watermark) {
			t.Cursor = before.Cursor // ahead already: nothing new to write
		}
	case !s.lags && before.Cursor.After(target) && before.Cursor.After(p.l.Watermark):
		t.Cursor = before.Cursor // the clock was set back: what is decided stays decided
	}
	if before == t {
		return false
	}
	p.l.SetTrigger(s.key, t)
	return true
}
