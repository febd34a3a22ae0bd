package leases

import (
	"maps"
	"time"
)

// op is what a command does.
type op int

const (
	opAcquire op = iota
	opRenew
	opRelease
)

// command is one request as the core sees it.
type command struct {
	op      op
	name    string
	holder  string        // acquire
	ttl     time.Duration // acquire
	request string        // acquire: the same again is the same acquisition
	token   int64         // renew, release
}

// outcome is what became of a command.
type outcome struct {
	entry    Entry
	granted  bool // the holder may act on it, a time to live long from before the swap
	repeated bool // an acquisition that had been made before
	err      error
}

// Self is who decides.
type Self struct {
	Node  string // this process
	Place string // UID of its pod, empty if it is not known
	// Exclusive: nobody else can have written the table, so that whatever is in it is from here.
	Exclusive bool
}

// owns reports whether an entry was written in this pod.
func (s *Self) owns(e *Entry) bool {
	return e.unreadable == "" && (s.Exclusive || e.Node == s.Node || (s.Place != "" && e.Place == s.Place))
}

// apply carries out commands on a table, in their order, and reports whether it changed it. It is a
// function of its arguments: v has observed the table, and is not altered.
func apply(t *Table, commands []command, self Self, v *View, now Moment) (outcomes []outcome, changed bool) {
	outcomes = make([]outcome, len(commands))
	for i := range commands {
		c := &commands[i]
		e, held := t.Leases[c.name]
		var wrote bool
		switch c.op {
		case opAcquire:
			outcomes[i], wrote = acquire(t, c, e, held, self, v, now)
		case opRenew:
			outcomes[i], wrote = renew(t, c, e, held, self, v, now)
		case opRelease:
			// The token is enough, from wherever: it is how people end the lease of a pod that is gone.
			if wrote = held && e.unreadable == "" && e.Token == c.token; wrote {
				delete(t.Leases, c.name)
			}
		}
		changed = changed || wrote
	}
	return outcomes, changed
}

func acquire(t *Table, c *command, e Entry, held bool, self Self, v *View, now Moment) (outcome, bool) {
	if held && !v.expired(c.name, &e, now.Mono) {
		switch {
		case !self.owns(&e) || e.Request != c.request || v.ended(c.name, e.Token, now):
			return outcome{entry: e, err: &HeldError{
				Name: c.name, Holder: e.holder(), Node: e.Node, Token: e.Token, TTL: e.TTL(), FreeIn: v.FreeIn(c.name, &e, now.Mono),
			}}, false
		case e.Holder != c.holder || e.TTL() != c.ttl:
			return outcome{entry: e, err: ErrKeyReused}, false
		}
		// Renewed, because only from this swap on it is known until when it is valid.
		e = prolong(t, c.name, e, now)
		return outcome{entry: e, granted: true, repeated: true}, true
	}
	if !held && len(t.Leases) >= MaxLeases {
		maps.DeleteFunc(t.Leases, func(name string, e Entry) bool { return v.expired(name, &e, now.Mono) })
		if len(t.Leases) >= MaxLeases {
			return outcome{err: ErrFull}, false
		}
	}
	token, ok := t.nextToken(now.Wall)
	if !ok {
		return outcome{err: ErrTokensUsedUp}, false
	}
	e = Entry{
		Token: token, Holder: c.holder, Node: self.Node, Place: self.Place, TTLSeconds: int(c.ttl / time.Second),
		Request: c.request, AcquiredAt: stored(now.Wall),
	}
	if t.Leases == nil {
		t.Leases = make(map[string]Entry)
	}
	t.LastToken, t.Leases[c.name] = token, e
	return outcome{entry: e, granted: true}, true
}

func renew(t *Table, c *command, e Entry, held bool, self Self, v *View, now Moment) (outcome, bool) {
	lost := &LostError{Name: c.name, Token: c.token}
	switch {
	case !held:
		return outcome{err: lost}, false
	case e.unreadable != "" || e.Token != c.token:
		lost.Holder, lost.Node, lost.HolderToken = e.holder(), e.Node, e.Token
	case !self.owns(&e):
		lost.Elsewhere, lost.Holder, lost.Node, lost.HolderToken = true, e.Holder, e.Node, e.Token
	case v.ended(c.name, c.token, now) || v.expired(c.name, &e, now.Mono):
		lost.Expired = true
	default:
		e = prolong(t, c.name, e, now)
		return outcome{entry: e, granted: true}, true
	}
	return outcome{entry: e, err: lost}, false
}

// prolong changes an entry so that every observer sees it anew.
func prolong(t *Table, name string, e Entry, now Moment) Entry {
	e.Renewals++
	e.RenewedAt = stored(now.Wall)
	t.Leases[name] = e
	return e
}

// stored is a time as it is written, for people.
func stored(wall time.Time) time.Time { return wall.UTC().Truncate(time.Millisecond) }
