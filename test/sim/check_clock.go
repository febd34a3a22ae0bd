package sim

import (
	"time"

	"github.com/leasecron/leasecron/engine/state"
)

// dateSlack is by how much a clock may be off unnoticed on top of maxSkew: a Date of the API
// server has whole seconds. What is decided ahead of time is within it too.
const dateSlack = time.Second

// possible checks that nobody whose clock is off by too much decides: neither up to a time that
// nobody's clock may show yet, nor with one that stands far back. What was decided may be stored late.
// The caller holds c.mu.
func (c *checker) possible(n *node, prev, next *state.Ledger) {
	now := time.Now()
	if ahead := next.Watermark.Sub(now); next.Watermark.After(prev.Watermark) && ahead > maxSkew+dateSlack {
		c.failLocked("%s writes a watermark that is %s ahead of the true time", n.name, ahead)
	}
	for key, t := range next.Triggers {
		if ahead := t.Cursor.Sub(now); !t.Cursor.Equal(prev.Triggers[key].Cursor) && ahead > maxSkew+dateSlack {
			c.failLocked("%s writes a cursor of %s that is %s ahead of the true time", n.name, key, ahead)
		}
	}
}

// possibleVerdict is possible for when something was decided.
func (c *checker) possibleVerdict(n *node, v verdict) {
	const stored = time.Minute // a process that stands still, and a write that arrives late
	switch off := time.Until(v.at); {
	case off > maxSkew+dateSlack, off < -maxSkew-stored:
		c.failLocked("%s decides %s by a clock that is off by %s", n.name, v.key, off)
	}
}

// possibleCatalog is possible for from when a version decides.
func (c *checker) possibleCatalog(next *state.Catalog) {
	for name, record := range next.Jobs {
		v := record.Newest()
		if ahead := time.Until(v.EffectiveAt); ahead > maxSkew+dateSlack {
			c.failLocked("version %d of %s decides from a time that is %s ahead of the true one", v.Number, name, ahead)
		}
	}
}
