package faultproxy

import "sync/atomic"

// Effect is a fault in force. It is safe for concurrent use.
type Effect struct {
	hits atomic.Int64
	end  func()
}

// End ends the fault, and no other; it may have ended. Where several Cuts or Blackholes are in
// force, the last to end lets the traffic through.
func (e *Effect) End() { e.end() }

// Hits is how much it has befallen so far: requests of an injected fault, connections that a Cut
// broke, reads and writes that a Blackhole held up. A fault that nothing met has none.
func (e *Effect) Hits() int { return int(e.hits.Load()) }
