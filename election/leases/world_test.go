package leases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNeverTwoHolders lets sidecars whose clocks differ read, swap, lose answers, restart and be late in
// any order, and checks after each step that no two holders of a lease believe in it at one time, and
// that each token is greater than all before.
func TestNeverTwoHolders(t *testing.T) {
	for range 20 { // a clock that is a thousandth faster shows in one of a few hundred
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t)
			for range rapid.IntRange(10, 60).Draw(t, "steps") {
				w.step(t)
			}
		})
	}
}

// The times of the world, in true time.
const (
	worldTTL = 10 * time.Second
	worldLag = 4 * time.Second
)

// world is a table, the sidecars that use it, and what their apps were told.
type world struct {
	now     time.Duration // true time, which nobody knows
	table   *Table
	version int
	tokens  []int64 // that apps were told
	last    int64   // greatest token that was ever stored
	nodes   []*worldNode
	flying  []*worldSwap // sent; answered or not
	reads   []*worldRead
	reading bool
	claims  []*claim
	gaveUp  []int64 // tokens that their apps do not believe in any more, whatever they are told
}

// worldNode is one sidecar with its machine's clocks.
type worldNode struct {
	self Self
	view View
	life int
	// Its monotonic clock is off by offset and runs at 1 + ppm/1e6; its wall clock is anything.
	offset time.Duration
	ppm    int64
	wall   time.Time
}

// claim is what a part of an app believes: that it holds a lease from then until then, in true time.
type claim struct {
	name        string
	holder      string // pod and request
	token       int64
	since, till time.Duration
}

type worldSwap struct {
	node     *worldNode
	life     int
	start    Moment
	from     int
	commands []command
	outcomes []outcome
	table    *Table
	stored   bool
	refused  bool
}

type worldRead struct {
	node  *worldNode
	life  int
	table *Table
}

func newWorld(t *rapid.T) *world {
	w := &world{table: new(Table)}
	for i := range 3 {
		w.nodes = append(w.nodes, &worldNode{
			self:   Self{Node: fmt.Sprintf("shop-%d_0", i), Place: fmt.Sprintf("uid-%d", i)},
			offset: time.Duration(rapid.IntRange(0, 1_000_000).Draw(t, "offset")) * time.Millisecond,
			ppm:    rapid.Int64Range(-500, 500).Draw(t, "ppm"),
			wall:   time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "wall")),
		})
	}
	return w
}

func (n *worldNode) mono(now time.Duration) time.Duration {
	return n.offset + now + now*time.Duration(n.ppm)/1_000_000
}

func (n *worldNode) moment(now time.Duration) Moment {
	return Moment{Mono: n.mono(now), Wall: n.wall.Add(now)}
}

// trueTime is when a node's monotonic clock shows that.
func (n *worldNode) trueTime(mono time.Duration) time.Duration {
	return (mono - n.offset) * 1_000_000 / time.Duration(1_000_000+n.ppm)
}

func (w *world) step(t *rapid.T) {
	n := rapid.SampledFrom(w.nodes).Draw(t, "node")
	switch rapid.IntRange(0, 15).Draw(t, "what") {
	case 0, 1, 2, 3, 4, 5: // undisturbed
		if s := w.send(t, n); s != nil {
			w.arrive(t, s)
			w.answer(t, s)
		}
	case 6:
		w.send(t, n)
	case 7:
		if len(w.flying) > 0 {
			w.arrive(t, rapid.SampledFrom(w.flying).Draw(t, "write"))
		}
	case 8:
		if len(w.flying) > 0 {
			w.answer(t, rapid.SampledFrom(w.flying).Draw(t, "answer"))
		}
	case 9:
		w.reads = append(w.reads, &worldRead{n, n.life, w.table.clone()})
	case 10:
		w.readAnswer(t)
	case 11:
		n.life++
		n.view = View{}
		n.self.Node = fmt.Sprintf("%s_%d", n.self.Place, n.life)
	case 12:
		n.wall = n.wall.Add(time.Duration(rapid.IntRange(-100_000, 100_000).Draw(t, "set")) * time.Second)
	default:
		w.now += rapid.SampledFrom([]time.Duration{
			time.Millisecond, worldLag, worldTTL - 100*time.Millisecond, worldTTL, worldTTL + worldTTL/drift + time.Millisecond,
		}).Draw(t, "pass")
	}
}

// send lets a node decide, by what is stored now or by what is stored when its read is answered.
func (w *world) send(t *rapid.T, n *worldNode) *worldSwap {
	s := &worldSwap{node: n, life: n.life, start: n.moment(w.now)}
	if !w.reading && rapid.Bool().Draw(t, "slow read") { // meanwhile the world goes on
		w.reading = true
		w.now += rapid.SampledFrom([]time.Duration{time.Millisecond, worldLag}).Draw(t, "reading")
		w.step(t)
		w.reading = false
		s.life = n.life
	}
	s.from, s.table = w.version, w.table.clone()
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "commands") {
		c := command{
			op:   rapid.SampledFrom([]op{opAcquire, opAcquire, opRenew, opRenew, opRelease}).Draw(t, "op"),
			name: rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "name"),
		}
		if c.op == opAcquire {
			c.holder, c.ttl = "worker", worldTTL
			c.request = rapid.SampledFrom([]string{"same", "other", fmt.Sprint(len(w.flying))}).Draw(t, "request")
		} else if c.token = MaxToken; len(w.tokens) > 0 {
			c.token = rapid.SampledFrom(w.tokens[max(0, len(w.tokens)-3):]).Draw(t, "token")
			if c.op == opRelease {
				w.stop(c.name, c.token)
			}
		}
		s.commands = append(s.commands, c)
	}
	n.view.Observe(s.table, n.mono(w.now))
	var changed bool
	if s.outcomes, changed = apply(s.table, s.commands, n.self, &n.view, s.start); !changed {
		return nil
	}
	w.flying = append(w.flying, s)
	return s
}

// stop ends the belief of an app that gives up a lease.
func (w *world) stop(name string, token int64) {
	if slices.ContainsFunc(w.claims, func(c *claim) bool { return c.name == name && c.token == token }) {
		w.gaveUp = append(w.gaveUp, token)
	}
	for _, c := range w.claims {
		if c.name == name && c.token == token {
			c.till = min(c.till, w.now)
		}
	}
}

// arrive lets one write reach the store.
func (w *world) arrive(t *rapid.T, s *worldSwap) {
	if s.stored || s.refused {
		return
	}
	if s.refused = s.from != w.version; s.refused {
		return
	}
	s.stored = true
	w.table, w.version = s.table, w.version+1
	for i, o := range s.outcomes {
		if s.commands[i].op == opAcquire && o.granted && !o.repeated {
			if o.entry.Token <= w.last {
				t.Fatalf("token %d was stored after %d", o.entry.Token, w.last)
			}
			w.last = o.entry.Token
		}
	}
}

// answer lets one node know what became of its write, unless it has forgotten it.
func (w *world) answer(t *rapid.T, s *worldSwap) {
	if !s.stored && !s.refused {
		return // it is still under way
	}
	w.flying = slices.DeleteFunc(w.flying, func(other *worldSwap) bool { return other == s })
	if s.refused || s.life != s.node.life {
		return
	}
	n := s.node
	n.view.Observe(s.table, n.mono(w.now))
	for i, o := range s.outcomes {
		c := s.commands[i]
		switch {
		case o.granted:
			until := s.start.Add(o.entry.TTL())
			n.view.granted(c.name, o.entry.Token, until)
			if left, ok := n.view.Remaining(c.name, o.entry.Token, n.moment(w.now)); ok && left > 0 {
				w.tokens = append(w.tokens, o.entry.Token)
				w.claim(t, &claim{c.name, w.holder(n, &c), o.entry.Token, w.now, n.trueTime(until.Mono)})
			}
		case c.op == opRelease:
			n.view.gaveUp(c.name, c.token)
		}
	}
}

// holder is which part of an app a command is of.
func (w *world) holder(n *worldNode, c *command) string {
	if c.op == opRenew { // whoever was granted the token there
		for _, known := range w.claims {
			if known.token == c.token && strings.HasPrefix(known.holder, n.self.Place) {
				return known.holder
			}
		}
	}
	return n.self.Place + " " + c.request
}

// claim adds a belief, which must overlap with no other's.
func (w *world) claim(t *rapid.T, c *claim) {
	if slices.Contains(w.gaveUp, c.token) {
		return
	}
	for _, other := range w.claims {
		if other.name == c.name && (other.token != c.token || other.holder != c.holder) && max(other.since, c.since) < min(other.till, c.till) {
			t.Fatalf("two holders of %s: %s with token %d from %s to %s, %s with token %d from %s to %s",
				c.name, other.holder, other.token, other.since, other.till, c.holder, c.token, c.since, c.till)
		}
	}
	w.claims = append(w.claims, c)
}

func (w *world) readAnswer(t *rapid.T) {
	if len(w.reads) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.reads)-1).Draw(t, "read")
	r := w.reads[i]
	w.reads = slices.Delete(w.reads, i, i+1)
	if r.life == r.node.life {
		r.node.view.Observe(r.table, r.node.mono(w.now))
	}
}
