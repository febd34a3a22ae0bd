package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasecron/leasecron/config"
)

// world is one simulated cluster.
type world struct {
	*scenario
	dice  dice
	start time.Time

	server *server
	app    *app
	check  *checker

	mu    sync.Mutex
	nodes []*node // by slot; nil where none runs
	lives int     // nodes ever started
	quiet bool    // the faults have ended
	king  *node   // who has the one Lease of quiet times, where the election is anarchy
	log   []entry
	count map[string]int
	peak  map[string]int // bytes that an object has had at most

	pods map[string]*node // the latest sidecar of each
	gone map[string]bool  // pods that are no more, their apps with them

	tasks sync.WaitGroup
	over  chan struct{} // closed when the cluster has ended
}

// entry is one line of the event log.
type entry struct {
	at     time.Duration
	node   string
	format string
	args   []any
}

func (e entry) String() string {
	return fmt.Sprintf("%10.6fs %-6s %s", e.at.Seconds(), e.node, fmt.Sprintf(e.format, e.args...))
}

// Report is how a simulation went.
type Report struct {
	Seed       uint64
	Simulated  time.Duration
	Violations []string
	// Count tells how often things happened: faults injected, runs, writes.
	Count map[string]int
	// Peak tells how many bytes each object had at most.
	Peak map[string]int
	log  []entry
}

// Log is the event log, a line per event. What happens at the same moment is in no particular order.
func (r Report) Log() []string {
	lines := make([]string, len(r.log))
	for i, e := range r.log {
		lines[i] = e.String()
	}
	return lines
}

// Run plays the cluster that a seed stands for, from its beginning until it has had time to
// recover from the last fault. It has to be called inside a synctest bubble.
func Run(seed uint64) Report {
	time.Sleep(time.Until(began))
	w := &world{scenario: newScenario(seed), dice: dice(seed), start: time.Now(), count: make(map[string]int), peak: make(map[string]int)}
	w.pods, w.gone, w.over = make(map[string]*node), make(map[string]bool), make(chan struct{})
	w.server = newServer(w)
	w.app = &app{world: w}
	w.check = newChecker(w)
	w.nodes = make([]*node, w.slots)
	w.logf("", "%d pods, lease %s, node timeout %s, %d slots, anarchy %v, faulty %.2f %v, slow %s, lag %s, skew %s, flaky %.1f, work %s",
		w.slots, w.lease, w.nodeTimeout, w.maxRuns, w.anarchy, w.faulty, w.kinds, w.slow, w.lag, w.skew, w.flaky, w.work)
	for _, j := range w.jobs.jobs {
		w.logf("", "job %s", describe(j))
	}
	for slot := range w.slots {
		w.launch(slot, "")
	}
	for _, e := range w.events {
		time.Sleep(time.Until(w.start.Add(e.at)))
		w.tally("fault: " + e.what)
		e.do(w)
	}
	time.Sleep(time.Until(w.start.Add(w.trouble)))
	w.calmDown()
	w.awaitLeader(w.start.Add(w.trouble + w.calm))
	time.Sleep(time.Until(w.start.Add(w.trouble + w.calm)))
	w.check.end()
	close(w.over)
	w.stop()
	w.tasks.Wait()
	return Report{
		Seed: seed, Simulated: time.Since(w.start),
		Violations: w.check.violations, Count: w.count, Peak: w.peak, log: w.log,
	}
}

// calmDown ends all faults and leaves a node in every slot.
func (w *world) calmDown() {
	w.mu.Lock()
	w.quiet = true
	nodes := append([]*node(nil), w.nodes...)
	w.mu.Unlock()
	w.logf("", "--- the faults end")
	w.server.heal()
	for _, n := range nodes {
		if n != nil {
			n.heal()
		}
	}
	for slot, n := range nodes {
		if n == nil {
			w.launch(slot, "")
		}
	}
	w.mu.Lock()
	w.jobs.calm()
	w.mu.Unlock()
	w.publish()
	w.tasks.Go(w.tidy)
}

func (w *world) alive() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*node
	for _, n := range w.nodes {
		if n != nil {
			out = append(out, n)
		}
	}
	return out
}

// stop ends every node in order.
func (w *world) stop() {
	for _, n := range w.alive() {
		w.retire(n, time.Second)
		time.Sleep(time.Millisecond)
	}
}

// launch starts a node in a slot. Place is the pod that it runs in; empty: a new one.
func (w *world) launch(slot int, place string) {
	w.mu.Lock()
	if w.nodes[slot] != nil {
		w.mu.Unlock()
		return
	}
	w.lives++
	life := w.lives
	if place == "" {
		place = fmt.Sprintf("pod-%d-%d", slot, life)
	}
	n := newNode(w, slot, life, place)
	w.nodes[slot] = n
	w.pods[place] = n
	w.mu.Unlock()
	w.logf(n.name, "started, clock off by %s", n.offset)
	n.run()
}

func (w *world) take(slot int) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.nodes[slot]
	w.nodes[slot] = nil
	return n
}

func (w *world) at(slot int) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[slot]
}

// crash kills a node; another starts in its place later.
func (w *world) crash(slot int, back time.Duration, samePod bool) {
	n := w.take(slot)
	if n == nil {
		return
	}
	w.logf(n.name, "CRASHES, back in %s", back)
	n.kill()
	place := ""
	if samePod {
		place = n.place
	} else {
		w.end(n.place)
	}
	w.later(back, func() {
		if !w.isQuiet() {
			w.launch(slot, place)
		}
	})
}

// rollOut replaces a node in order; with surge the new one comes first.
func (w *world) rollOut(slot int, surge bool, grace time.Duration) {
	n := w.take(slot)
	if n == nil {
		return
	}
	w.logf(n.name, "is rolled out, grace %s, surge %v", grace, surge)
	if surge {
		w.launch(slot, "")
	}
	w.tasks.Go(func() { n.leave(grace, true) })
	if !surge {
		w.later(3*time.Second, func() {
			if !w.isQuiet() {
				w.launch(slot, "")
			}
		})
	}
}

// restart ends a node in order, and starts another one in the same pod: its container alone is
// replaced, the app goes on.
func (w *world) restart(slot int, grace, back time.Duration) {
	n := w.take(slot)
	if n == nil {
		return
	}
	w.logf(n.name, "is restarted in its pod, grace %s, back in %s", grace, back)
	w.tasks.Go(func() {
		n.leave(grace, false)
		time.Sleep(back)
		if !w.isQuiet() {
			w.launch(slot, n.place)
		}
	})
}

// atWork is a slot whose node has runs in flight, that one if no node has.
func (w *world) atWork(slot int) int {
	for _, n := range w.alive() {
		if n.engine.Status().InFlight > 0 {
			return n.slot
		}
	}
	return slot
}

// end notes that a pod is gone, and its app with it.
func (w *world) end(place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[place] = true
}

func (w *world) retire(n *node, grace time.Duration) {
	w.tasks.Go(func() { n.leave(grace, true) })
}

func (w *world) pause(slot int, d time.Duration, suspend bool) {
	if n := w.at(slot); n != nil {
		w.logf(n.name, "STOPS for %s, suspended %v", d, suspend)
		n.pause(d, suspend)
	}
}

func (w *world) cut(slot int, group string, d time.Duration) {
	if n := w.at(slot); n != nil {
		w.logf(n.name, "CUT OFF from %s for %s", groupName(group), d)
		n.cut(group, d)
	}
}

func (w *world) outage(group string, d time.Duration) {
	w.logf("", "OUTAGE of %s for %s", groupName(group), d)
	w.server.outage(group, d)
}

// depose cuts whoever leads off from the Lease until somebody else leads, and then everybody from
// the documents for a while.
func (w *world) depose(after, outage time.Duration) {
	for _, n := range w.alive() {
		if n.engine.Status().Leading {
			w.cut(n.slot, groupLease, after)
		}
	}
	if outage > 0 {
		w.later(after, func() {
			if !w.isQuiet() {
				w.outage(groupDocs, outage)
			}
		})
	}
}

func (w *world) step(slot int, to time.Duration) {
	if n := w.at(slot); n != nil {
		w.logf(n.name, "CLOCK set, now off by %s", to)
		n.step(to)
	}
}

func (w *world) edit(change uint64) {
	w.mu.Lock()
	what := w.jobs.edit(w.dice.of("edit", int64(change)))
	w.mu.Unlock()
	w.logf("", "EDIT %s", what)
	w.publish()
}

// publish brings the definitions to every node, to each after a while of its own.
func (w *world) publish() {
	for _, n := range w.alive() {
		w.later(between(w.dice.roll("publish", n.life), 0, 3*time.Second), n.define)
	}
}

// definitions are the jobs as the document has them now.
func (w *world) definitions() []config.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs.jobs
}

// later does something after a while, unless the cluster has ended.
func (w *world) later(d time.Duration, do func()) {
	w.tasks.Go(func() {
		time.Sleep(d)
		do()
	})
}

func (w *world) isQuiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quiet
}

func (w *world) logf(node, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, entry{time.Since(w.start), node, format, args})
}

func (w *world) tally(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[what]++
}
