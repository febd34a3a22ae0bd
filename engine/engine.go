package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// maxSleep is how long the loop sleeps at most, so that a clock that was stepped or a machine
// that was suspended is noticed.
const maxSleep = 10 * time.Second

// swapTimeout bounds one swap, with all its attempts, so that the loop never stands still.
const swapTimeout = 10 * time.Second

// Options are what an Engine works with.
type Options struct {
	Namespace, App string
	Node           string // unique to this process
	// Place is the pod, by UID, in which this process runs; empty where there is none.
	Place string
	// Instance makes the engine run the jobs of scope instance: every process for itself, on
	// documents of its own. Its callbacks carry no fencing token.
	Instance bool
	// MaxRuns is how many runs this node may hold at once; default 32.
	MaxRuns int
	// NodeTimeout is how long a node may be silent before its runs are lost; default 30 s.
	NodeTimeout time.Duration
	// LeaseDuration is how long ledger swaps may fail before the leader steps down; default 15 s.
	LeaseDuration time.Duration
	// Target is the base URL of the app beside this node, for jobs that name none.
	Target string
	// MaxLedgerBytes is how large the ledger may be; default 900 KiB, as much as every store takes.
	MaxLedgerBytes int
	// MaxClockSkew bounds how far in the future a stored time may lie; default 1 min.
	MaxClockSkew time.Duration

	Ledger  Ledger
	Catalog Catalog
	History History
	// ClockCheck returns nil while the wall clock may be trusted. While it may not, nothing is
	// decided, so that no watermark runs ahead of the time. It must not block. Default: always.
	ClockCheck func() error
	// MayLeadChanged is called when [Engine.MayLead] may answer differently than before. It must not block.
	MayLeadChanged func()
	// Exclusive: no other process can write these documents while this one lives, so any other
	// node that has a run is dead.
	Exclusive bool
	// TermFloor is the least term of a takeover; for a ledger that forgets. Default 0.
	TermFloor int64

	Invoker  Invoker
	Observer Observer
	Logger   *slog.Logger

	// Now is the wall clock, by which instants fall due; durations are measured by the monotonic
	// one all the same. NewID names runs, Jitter picks a time below the one given. The defaults are
	// the machine's clock and randomness; a simulation that has to repeat itself sets them.
	Now    func() time.Time
	NewID  func() string
	Jitter func(below time.Duration) time.Duration
}

func (o *Options) fill() error {
	if o.Ledger == nil || o.Catalog == nil || o.History == nil || o.Invoker == nil || o.Node == "" {
		return errors.New("engine: ledger, catalog, history, invoker and node are required")
	}
	if o.MaxRuns <= 0 {
		o.MaxRuns = 32
	}
	if o.NodeTimeout <= 0 {
		o.NodeTimeout = 30 * time.Second
	}
	if o.LeaseDuration <= 0 {
		o.LeaseDuration = 15 * time.Second
	}
	if o.MaxLedgerBytes <= 0 {
		o.MaxLedgerBytes = plan.DefaultMaxBytes
	}
	if o.MaxClockSkew <= 0 {
		o.MaxClockSkew = time.Minute
	}
	if o.ClockCheck == nil {
		o.ClockCheck = func() error { return nil }
	}
	if o.MayLeadChanged == nil {
		o.MayLeadChanged = func() {}
	}
	if o.Observer == nil {
		o.Observer = discard{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = run.NewID
	}
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration] // spreads load, guards nothing
	}
	return nil
}

type discard struct{}

func (discard) Observe(Event) {}

// Engine is one node: it plans while it leads, and works off and reports the runs that it holds
// for as long as it lives. Its methods are safe for concurrent use.
type Engine struct {
	o       Options
	log     *slog.Logger
	wake    chan struct{}
	ended   chan struct{} // what is to be reported has grown, and may wait for more
	started time.Time

	mu      sync.Mutex
	term    *term            // nil while another node leads
	held    map[string]*held // runs that the ledger shows, or may show, as this node's
	desired desired
	// greatest is the floor of the next term; it has its own synchronisation.
	greatest greatest
	// formats and unreadable are of what is stored; they have theirs too.
	formats    formats
	unreadable unreadable
	abandon    error // set when the grace is over: what is still held is lost
	// forsaken: the app is gone, and with it what it had accepted.
	forsaken bool

	draining  atomic.Bool  // Drain was called
	abandoned atomic.Int64 // runs that were recorded as lost because the grace was over
	noting    atomic.Int64 // late results that are on their way to the history
	doubtful  atomic.Bool  // a swap may claim runs that this node does not know of

	view     atomic.Pointer[view]
	onlooker onlooker
	lastTurn atomic.Int64 // Unix nanoseconds

	watch        *documentWatch // of the ledger
	catalogWatch *documentWatch

	// Of the loop's goroutine alone:
	backoff  backoff
	flush    flush
	latency  time.Duration // what commits lately took
	lastBeat time.Time
	wrote    time.Time // when the ledger was last written
	settled  int64     // grows with each run that this node has reported as ended, and with what leaves the ledger
	// unreported: since when a node without a term cannot write its reports; zero: it can.
	unreported time.Time
	doubt      doubt // of a swap that was not answered
	// inherited: what the process before this one has left is settled; heirloom are the definitions
	// that its runs were decided by.
	inherited bool
	heirloom  *plan.Definitions
}

// desired is the set of jobs that the definitions' source last published.
type desired struct {
	jobs     []config.Job
	sequence int       // 0: nothing was published yet
	since    time.Time // when it was published, by the monotonic clock
}

// view is what the loop last knew; it is replaced as a whole and never changed.
type view struct {
	ledger      *state.Ledger
	definitions *plan.Definitions
	latest      map[string]state.Latest // by job
	leading     bool
	term        int64
	failing     string // why the last turn failed, empty: it did not
	refused     string // why the newest definitions are not in force, empty: they are
}

// New checks the options and returns an engine that does nothing until it runs.
func New(o Options) (*Engine, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	e := &Engine{
		o: o, log: o.Logger.With(slog.String(logkey.Component, "engine")),
		wake: make(chan struct{}, 1), ended: make(chan struct{}, 1), held: make(map[string]*held), started: time.Now(),
		onlooker: onlooker{reading: make(chan struct{}, 1)},
	}
	e.watchDocuments()
	e.watch = &documentWatch{engine: e, name: "ledger", watch: o.Ledger.Watch}
	e.catalogWatch = &documentWatch{engine: e, name: "catalog", watch: o.Catalog.Watch}
	e.view.Store(&view{ledger: &state.Ledger{}, definitions: plan.Compile(&state.Catalog{})})
	e.lastTurn.Store(time.Now().UnixNano())
	return e, nil
}

// Run is the loop of the node. It returns soon after ctx ends: what the app still works on then is
// not waited for any more, and stays open in the ledger, as does what ctx left no time to report. Call
// [Engine.Drain] before ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	attempts := &attempts{engine: e, ctx: ctx}
	defer attempts.stop()
	for _, w := range []*documentWatch{e.watch, e.catalogWatch} {
		w.begin(ctx)
		defer w.stop()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due time.Time // when the timer fires
	for {
		select {
		case <-ctx.Done():
			e.closeTerm(context.Cause(ctx))
			return context.Cause(ctx)
		case <-timer.C:
		case <-e.wake:
			if wait := time.Until(e.backoff.until); wait > 0 && !e.leaving() {
				due = time.Now().Add(wait)
				timer.Reset(wait)
				continue
			}
		case <-e.ended:
			if wait := e.gather(); wait > 0 && !e.leaving() {
				due = earliest(due, time.Now().Add(wait))
				timer.Reset(time.Until(due))
				continue
			}
		}
		next := e.turn(ctx, attempts)
		e.watch.want(e.leading())
		e.catalogWatch.want(e.leading())
		e.lastTurn.Store(time.Now().UnixNano())
		wait := sleep(next, e.wall())
		due = time.Now().Add(wait)
		timer.Reset(wait)
	}
}

// sleep is how long the loop may wait for next, a wall time, of which zero means that nothing is
// known.
func sleep(next, now time.Time) time.Duration {
	if next.IsZero() {
		return maxSleep
	}
	return min(max(next.Sub(now), time.Millisecond), maxSleep)
}

// poke makes the loop take a turn.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Define publishes the set of jobs that shall be in force. The leader brings it into the
// catalog; the other nodes keep it for the day that they lead. The very first jobs of an app count from
// here on, not from when somebody led: until then only the app was late.
func (e *Engine) Define(jobs []config.Job) {
	e.mu.Lock()
	e.desired = desired{jobs: jobs, sequence: e.desired.sequence + 1, since: time.Now()}
	e.mu.Unlock()
	e.poke()
}

// Drain waits until this node's runs are reported. What is still open when ctx ends is recorded
// as lost, so that recovery applies, its requests are ended, and [Status] counts it as abandoned; but
// runs that the app has accepted stay with this node for as long as it lives, and open when it ends,
// since the app may be heard by the next process in this place. No leadership may be taken up any more
// when it is called. The engine goes on until Run ends: it still writes down what it is asked for
// others, and reports what it could not report in time.
func (e *Engine) Drain(ctx context.Context) error {
	e.draining.Store(true)
	e.poke()
	if e.awaitIdle(ctx, e.holds) == nil {
		return nil
	}
	e.mu.Lock()
	e.abandon = errors.New("the shutdown grace ended")
	e.mu.Unlock()
	e.poke()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return e.awaitIdle(last, e.holdsBesideOpen)
}

// Forsake declares the runs that the app has accepted as lost, because the app is gone and nobody will
// say how they ended. It waits until that is recorded, or ctx ends.
func (e *Engine) Forsake(ctx context.Context) error {
	e.mu.Lock()
	e.forsaken = true
	e.mu.Unlock()
	e.poke()
	return e.awaitIdle(ctx, e.holds)
}

// forsakes reports whether accepted runs are lost with this process; those of an instance's own jobs
// are, since nobody else knows of them. The caller holds Engine.mu.
func (e *Engine) forsakes() bool { return e.forsaken || e.abandon != nil && e.o.Instance }

// awaitIdle waits until this node is not busy any more.
func (e *Engine) awaitIdle(ctx context.Context, busy func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for busy() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// holds reports whether there is something left to report.
func (e *Engine) holds() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held) > 0 || e.noting.Load() > 0 || e.doubtful.Load()
}

func (e *Engine) holdsBesideOpen() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.held {
		if h.stage != stageOpen || e.forsakes() {
			return true
		}
	}
	return false
}

func (e *Engine) leading() bool { return e.currentTerm() != nil }

// leaving reports whether a term has ended and the loop has not dealt with that: it never waits.
func (e *Engine) leaving() bool {
	t := e.currentTerm()
	return t != nil && t.ctx.Err() != nil
}

func (e *Engine) currentTerm() *term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term
}

func (e *Engine) emit(events ...Event) {
	for _, event := range events {
		e.o.Observer.Observe(event)
	}
}

// wall is the wall clock as planning and the ledger use it.
func (e *Engine) wall() time.Time { return e.o.Now().Round(0).UTC().Truncate(time.Microsecond) }

// wallAt is what the wall clock, as it goes now, will show when the monotonic one shows at.
func (e *Engine) wallAt(at time.Time) time.Time { return e.wall().Add(time.Until(at)) }

// backoff spaces out attempts that fail.
type backoff struct {
	until time.Time
	wait  time.Duration
}

const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// fail returns when to try again, by the monotonic clock: later each time, with jitter.
func (b *backoff) fail(jitter func(time.Duration) time.Duration) time.Time {
	b.wait = min(max(2*b.wait, firstBackoff), maxBackoff)
	b.until = time.Now().Add(b.wait/2 + jitter(b.wait/2+1))
	return b.until
}

func (b *backoff) succeed() { *b = backoff{} }
