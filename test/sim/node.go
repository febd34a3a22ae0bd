package sim

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/state"
)

// node is one sidecar process with the app beside it.
type node struct {
	world *world
	slot  int
	life  int
	name  string
	place string

	engine  *engine.Engine
	elector elector
	serve   context.CancelFunc
	retreat context.CancelFunc
	served  sync.WaitGroup
	campaig sync.WaitGroup
	dead    chan struct{}

	mu        sync.Mutex
	killed    bool
	resume    chan struct{}        // not nil while the process stands still; closed when it goes on
	since     time.Time            // when it came to stand
	suspend   bool                 // its monotonic clock stands still too
	asleep    time.Duration        // how long the monotonic clock has stood still
	offset    time.Duration        // of the wall clock
	off       map[string]time.Time // until when a group of objects is cut off
	disturbed time.Time            // when something last kept it from its documents
	ids       uint64
	born      time.Time
	asked     map[string]calls // that were last made for each purpose
}

func newNode(w *world, slot, life int, place string) *node {
	n := &node{
		world: w, slot: slot, life: life, place: place, name: fmt.Sprintf("n%d-%d", slot, life),
		dead: make(chan struct{}), off: make(map[string]time.Time), asked: make(map[string]calls),
	}
	r := w.dice.of("clock", life)
	n.offset = between(r, -w.skew, w.skew) + time.Duration(life)*time.Nanosecond
	n.disturbed, n.born = w.start, time.Now()
	jitter := func(below time.Duration) time.Duration {
		return time.Duration(w.dice.roll("jitter", life).Int64N(int64(below)))
	}
	store := &store{n}
	e, err := engine.New(engine.Options{
		Namespace: "sim", App: "app", Node: n.name, Place: place, MaxRuns: w.maxRuns, NodeTimeout: w.nodeTimeout, LeaseDuration: w.lease,
		Target:  "http://127.0.0.1:8080",
		Ledger:  ledger.NewPort[state.Ledger](store, ledger.NameLedger, ledger.WithJitter(jitter)),
		Catalog: ledger.NewPort[state.Catalog](store, ledger.NameCatalog, ledger.WithJitter(jitter)),
		History: ledger.NewPort[state.History](store, ledger.NameHistory, ledger.WithJitter(jitter)),
		Invoker: &invoker{n}, Observer: observer{n}, Logger: slog.New(logs{n}),
		ClockCheck: n.clockCheck, Now: n.wall, NewID: n.newID, Jitter: jitter,
	})
	if err != nil {
		panic(err)
	}
	n.engine = e
	if w.anarchy {
		n.elector = &anarchist{node: n}
	} else {
		n.elector = &candidate{node: n}
	}
	return n
}

// elector campaigns until ctx ends, and returns when the last term has been handed over.
type elector interface{ run(ctx context.Context) }

// run starts what a sidecar consists of.
func (n *node) run() {
	serve, stop := context.WithCancel(context.Background())
	campaign, retreat := context.WithCancel(context.Background())
	n.serve, n.retreat = stop, retreat
	n.engine.Define(n.world.definitions())
	n.served.Go(func() { _ = n.engine.Run(serve) })
	n.campaig.Go(func() { n.elector.run(campaign) })
	n.world.tasks.Go(n.served.Wait)
	n.world.tasks.Go(n.campaig.Wait)
}

// leave ends the process in order: hand over, work off, go. The app may end before it does.
func (n *node) leave(grace time.Duration, withApp bool) {
	n.retreat()
	n.campaig.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := n.engine.Drain(ctx)
	n.world.logf(n.name, "drained: %v", err)
	if withApp {
		n.world.end(n.place)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if r := n.world.dice.of("forsake", n.life); chance(r, 0.5) {
			n.world.logf(n.name, "its app is gone: %v", n.engine.Forsake(ctx))
		}
	}
	n.kill()
}

// kill ends the process: nothing that it does has an effect any more.
func (n *node) kill() {
	n.mu.Lock()
	if n.killed {
		n.mu.Unlock()
		return
	}
	n.killed = true
	close(n.dead)
	n.mu.Unlock()
	n.retreat()
	time.Sleep(time.Nanosecond) // one after the other: which of them ends the term is no matter of chance
	n.serve()
}

// whyRetreat says why the process campaigns no more.
func (n *node) whyRetreat() error {
	if n.alive() {
		return errRetreat
	}
	return errDead
}

func (n *node) alive() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.killed
}

// gate stands wherever the process touches the world, for one purpose. It holds while the process
// stands still. What it held goes on one after the other, in an order of the dice.
func (n *node) gate(purpose string) error {
	for held := false; ; held = true {
		n.mu.Lock()
		killed, resume := n.killed, n.resume
		n.mu.Unlock()
		switch {
		case killed:
			return errDead
		case resume == nil:
			if held {
				time.Sleep(between(n.world.dice.of("wake", purpose, n.life), 0, time.Millisecond))
			}
			return nil
		}
		select {
		case <-resume:
		case <-n.dead:
		}
	}
}

// pause stops the process, as SIGSTOP does; or suspends its machine.
func (n *node) pause(d time.Duration, suspend bool) {
	n.mu.Lock()
	if n.resume != nil {
		n.mu.Unlock()
		return
	}
	n.resume, n.since, n.suspend = make(chan struct{}), time.Now(), suspend
	n.mu.Unlock()
	n.world.later(d, n.wakeUp)
}

func (n *node) wakeUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resume == nil {
		return
	}
	if n.suspend {
		n.asleep += time.Since(n.since)
	}
	n.disturbed = time.Now()
	close(n.resume)
	n.resume = nil
}

// mono is the process's monotonic clock.
func (n *node) mono() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := time.Since(n.world.start) - n.asleep
	if n.resume != nil && n.suspend {
		t -= time.Since(n.since)
	}
	return t
}

// wall is the process's wall clock. It does not hold while the process stands still, because it is
// read under locks; what is done with the time does.
func (n *node) wall() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Round(0).Add(n.offset)
}

// maxSkew is how far a clock may be off for its node to decide.
const maxSkew = time.Minute

// clockCheck says whether the clock is off by too much, as the dates of the API server's answers
// would tell.
func (n *node) clockCheck() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.offset.Abs() > maxSkew {
		return errClock
	}
	return nil
}

func (n *node) step(to time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.offset = to
}

func (n *node) cut(group string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range groups(group) {
		if until := time.Now().Add(d); until.After(n.off[g]) {
			n.off[g] = until
		}
	}
}

func (n *node) cutOff(group string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !time.Now().Before(n.off[group]) {
		return false
	}
	if group == groupDocs {
		n.disturbed = time.Now()
	}
	return true
}

// disturb notes that something kept this node in particular from its documents.
func (n *node) disturb() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disturbed = time.Now()
}

// heal ends every fault of this node but its skew.
func (n *node) heal() {
	n.wakeUp()
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.off)
	if n.offset.Abs() > maxSkew {
		n.offset = time.Duration(n.life) * time.Nanosecond
	}
}

// define has the node read the document of definitions.
func (n *node) define() {
	if n.gate("define") == nil {
		n.engine.Define(n.world.definitions())
	}
}

// newID names a run: by time like the real ones, and the same in each run of a seed.
func (n *node) newID() string {
	n.mu.Lock()
	n.ids++
	k := n.ids
	n.mu.Unlock()
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(time.Now().UnixMilli())<<16|0x7000)
	r := n.world.dice.of("id", n.life, int64(k))
	binary.BigEndian.PutUint64(id[8:], r.Uint64()>>2|1<<63)
	return hex.EncodeToString(id[:])
}

// observer writes what the engine says into the event log.
type observer struct{ node *node }

// Observe implements [engine.Observer].
func (o observer) Observe(e engine.Event) {
	switch e := e.(type) {
	case engine.TermBegan:
		o.node.world.tally("terms")
	case engine.RunEnded:
		o.node.world.tally("runs: " + string(e.Run.State))
	case engine.Missed:
		o.node.world.tally("missed: " + string(e.Reason))
	}
}

// logs is a slog.Handler that writes into the event log.
type logs struct{ node *node }

func (l logs) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l logs) Handle(_ context.Context, r slog.Record) error {
	var text strings.Builder
	text.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&text, " %s=%v", a.Key, a.Value)
		return true
	})
	if l.node.alive() {
		l.node.world.logf(l.node.name, "%s", text.String())
	}
	return nil
}

func (l logs) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logs) WithGroup(string) slog.Handler      { return l }
