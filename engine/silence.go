package engine

import (
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// silence measures, on this node's own monotonic clock, for how long the nodes that have runs
// have said nothing of each of them. It counts only while this node leads and its own reads
// succeed: a gap in them starts every count anew, so that an outage that hit both sides kills
// nobody.
type silence struct {
	heard map[string]heard // by run
	last  time.Time        // when a read or a swap last succeeded
}

type heard struct {
	beat  int64
	since time.Time
}

func newSilence() silence { return silence{heard: make(map[string]heard), last: time.Now()} }

// read notes that the ledger was read or written.
func (s *silence) read(now time.Time, timeout time.Duration) {
	s.forgive(now, timeout)
	s.last = now
}

// forgive starts every count anew after a gap in this node's own reads.
func (s *silence) forgive(now time.Time, timeout time.Duration) {
	if now.Sub(s.last) <= timeout/2 {
		return
	}
	for id, h := range s.heard {
		s.heard[id] = heard{beat: h.beat, since: now}
	}
}

// observe notes what the ledger shows of other nodes' runs.
func (s *silence) observe(l *state.Ledger, self string, now time.Time, timeout time.Duration) {
	s.forgive(now, timeout)
	open := make(map[string]bool, len(l.Runs))
	for i := range l.Runs {
		r := &l.Runs[i]
		if !r.State.Claimed() || r.Node == self {
			continue
		}
		open[r.ID] = true
		if have, ok := s.heard[r.ID]; !ok || have.beat != r.Beat {
			// What leaders before this one did not hear either counts as well: those that flap would
			// otherwise never find the lost.
			s.heard[r.ID] = heard{beat: r.Beat, since: now.Add(-silentFor(r))}
		}
	}
	for id := range s.heard {
		if !open[id] {
			delete(s.heard, id)
		}
	}
}

// silentFor is what leaders before this one have counted, as far as it can be true.
func silentFor(r *run.Run) time.Duration {
	const most = 365 * 24 * time.Hour
	return time.Duration(min(max(r.Silent, 0), most.Milliseconds())) * time.Millisecond
}

// carry writes the silence counted so far beside the runs, for the leader after this one. It is no
// reason for a swap of its own.
func (s *silence) carry(l *state.Ledger, now time.Time) {
	for i := range l.Runs {
		r := &l.Runs[i]
		if have, ok := s.heard[r.ID]; ok && have.beat == r.Beat && r.State.Claimed() {
			r.Silent = now.Sub(have.since).Milliseconds()
		}
	}
}

// of returns how long nothing was heard of a run.
func (s *silence) of(r run.Run, now time.Time) time.Duration {
	have, ok := s.heard[r.ID]
	if !ok || have.beat != r.Beat {
		return 0
	}
	return now.Sub(have.since)
}

// due reports whether the ledger has to be read for the sake of other nodes' runs.
func (s *silence) due(now time.Time, timeout time.Duration) bool {
	return len(s.heard) > 0 && now.Sub(s.last) >= timeout/4
}

// next is when to look again, by the monotonic clock; zero where no other node has a run.
func (s *silence) next(now time.Time, timeout time.Duration) time.Time {
	if len(s.heard) == 0 {
		return time.Time{}
	}
	at := s.last.Add(timeout / 4)
	for _, h := range s.heard {
		if verdict := h.since.Add(timeout); verdict.Before(at) {
			at = verdict
		}
	}
	if at.Before(now) {
		at = now
	}
	return at
}
