package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

// scenario is what a seed stands for.
type scenario struct {
	slots       int // pods
	lease       time.Duration
	nodeTimeout time.Duration
	maxRuns     int
	// anarchy: the Lease means nothing; any number of nodes hold it at any time.
	anarchy bool
	// trouble is how long faults go on, calm how long the cluster then has to recover.
	trouble, calm time.Duration
	// faulty is the share of calls to the API server that go wrong, by the kinds that may.
	faulty float64
	kinds  []callFault
	slow   time.Duration       // a call takes up to that long
	lag    time.Duration       // what watches tell comes up to that late
	skew   time.Duration       // clocks of nodes are off by up to that
	flaky  float64             // share of the callbacks that go wrong
	work   time.Duration       // how long the app works at most
	room   map[ledger.Name]int // bounds of objects that are scaled down
	wordy  int                 // bytes of what the app says of each run beside the word
	jobs   *jobSet
	events []event
}

// event is something that happens to the cluster at a time given in advance.
type event struct {
	at   time.Duration
	what string
	do   func(*world)
}

// callFault is what becomes of one call to the API server.
type callFault int

const (
	callPasses  callFault = iota
	callRefused           // surely never reaches the server
	callDropped           // lost on its way there, unknown to the caller
	callUnheard           // reaches it, the answer is lost
	callLate              // reaches it seconds after the caller has given up
	callHangs             // lost, and the caller is left waiting
	callFails             // the server says that it failed, before it did anything or after
)

var callFaultNames = [...]string{"passes", "refused", "dropped", "answer lost", "late", "hangs", "fails"}

func (f callFault) String() string { return callFaultNames[f] }

// newScenario draws a scenario. Each seed has some kinds of fault and not others: with all of them
// at once little of what is planned would ever happen.
func newScenario(seed uint64) *scenario {
	r := dice(seed).of("scenario")
	s := &scenario{
		slots:       pick(r, 1, 2, 2, 3, 3, 3, 4),
		lease:       pick(r, 6*time.Second, 9*time.Second, 15*time.Second),
		nodeTimeout: pick(r, 6*time.Second, 12*time.Second, 20*time.Second, 30*time.Second),
		maxRuns:     pick(r, 1, 3, 32, 32),
		anarchy:     chance(r, 0.3),
		trouble:     between(r, 60*time.Second, 180*time.Second),
		calm:        150 * time.Second,
		slow:        pick(r, 5*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 300*time.Millisecond, 1500*time.Millisecond),
		lag:         pick(r, 10*time.Millisecond, 10*time.Millisecond, time.Second),
		flaky:       pick(r, 0, 0.1, 0.4),
		work:        pick(r, 100*time.Millisecond, 2*time.Second, 8*time.Second, 40*time.Second, 40*time.Second),
	}
	if chance(r, 0.6) {
		s.faulty = pick(r, 0.02, 0.1, 0.3)
		for _, f := range []callFault{callRefused, callDropped, callUnheard, callLate, callHangs, callFails} {
			if chance(r, 0.5) {
				s.kinds = append(s.kinds, f)
			}
		}
	}
	if chance(r, 0.5) {
		s.skew = pick(r, 100*time.Millisecond, 2*time.Second, 20*time.Second)
	}
	if s.lease == 15*time.Second && chance(r, 0.5) {
		s.nodeTimeout = 6 * time.Second // an outage that a term outlives can be longer than that
	}
	s.jobs = newJobSet(r)
	s.plan(r)
	s.crowd(dice(seed).of("room"))
	slices.SortStableFunc(s.events, func(a, b event) int { return int(a.at - b.at) })
	return s
}

// plan draws the events.
func (s *scenario) plan(r *rand.Rand) {
	often := func(p float64, upTo int, draw func(slot int) (string, func(*world))) {
		if !chance(r, p) {
			return
		}
		for range 1 + r.IntN(upTo) {
			what, do := draw(r.IntN(s.slots))
			s.events = append(s.events, event{at: between(r, time.Second, s.trouble), what: what, do: do})
		}
	}
	short := func() time.Duration {
		return pick(r, between(r, 50*time.Millisecond, 2*time.Second), between(r, 2*time.Second, 12*time.Second),
			between(r, 10*time.Second, 45*time.Second))
	}
	often(0.4, 4, func(slot int) (string, func(*world)) {
		back, same := between(r, 0, 40*time.Second), chance(r, 0.6)
		if same && chance(r, 0.6) {
			back = between(r, 0, 4*time.Second)
		}
		return "crash", func(w *world) {
			if same {
				slot = w.atWork(slot)
			}
			w.crash(slot, back, same)
		}
	})
	often(0.4, 4, func(slot int) (string, func(*world)) {
		surge, grace := chance(r, 0.5), pick(r, time.Second, 25*time.Second)
		return "roll-out", func(w *world) { w.rollOut(slot, surge, grace) }
	})
	often(0.3, 3, func(slot int) (string, func(*world)) {
		grace, back := pick(r, time.Second, 25*time.Second), between(r, 0, 10*time.Second)
		return "restart", func(w *world) { w.restart(w.atWork(slot), grace, back) }
	})
	often(0.4, 5, func(slot int) (string, func(*world)) {
		d, suspend := short(), chance(r, 0.3)
		return "pause", func(w *world) { w.pause(slot, d, suspend) }
	})
	often(0.4, 5, func(slot int) (string, func(*world)) {
		d, group := short(), pick(r, "", "", groupDocs, groupLease)
		return "partition", func(w *world) { w.cut(slot, group, d) }
	})
	often(0.35, 4, func(int) (string, func(*world)) {
		// Whoever leads cannot renew, and goes on with its runs under another leader; often the
		// documents cannot be reached soon after that.
		outage := pick(r, 0, between(r, s.nodeTimeout/2, s.nodeTimeout), between(r, s.nodeTimeout, s.nodeTimeout+6*time.Second))
		after := s.lease + between(r, 0, 4*time.Second)
		return "deposed", func(w *world) { w.depose(after, outage) }
	})
	often(0.35, 3, func(int) (string, func(*world)) {
		d, group := short(), pick(r, "", groupDocs, groupDocs, groupLease)
		return "outage", func(w *world) { w.outage(group, d) }
	})
	often(0.3, 4, func(slot int) (string, func(*world)) {
		to := between(r, -25*time.Second, 25*time.Second)
		if chance(r, 0.2) { // nobody with such a clock may decide
			to = between(r, 2*maxSkew, time.Hour)
			if chance(r, 0.5) {
				to = -to
			}
		}
		return whatClockStep, func(w *world) { w.step(slot, to) }
	})
	often(0.5, 5, func(int) (string, func(*world)) {
		change := r.Uint64()
		return "edit", func(w *world) { w.edit(change) }
	})
	often(0.3, 3, func(slot int) (string, func(*world)) {
		o := order{slot: slot, job: r.IntN(100), number: r.IntN(1e6), lasts: between(r, 2*time.Second, 60*time.Second), skip: chance(r, 0.3)}
		if chance(r, 0.2) {
			o.job = everything
		}
		return "pause and resume", func(w *world) { w.hold(o) }
	})
	often(0.5, 8, func(slot int) (string, func(*world)) {
		job, number := r.IntN(100), r.IntN(1e6)
		return "manual run", func(w *world) { w.enqueue(slot, job, number) }
	})
}
