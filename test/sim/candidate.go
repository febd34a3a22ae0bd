package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

// leaseRecord is the Lease object.
type leaseRecord struct {
	Holder   string
	Duration time.Duration // of the holder
	Renewal  string        // another one with each write
	Term     int64         // the annotation
}

// candidate is a model of package election on a Lease object: expiry by the observer's monotonic
// clock with the holder's duration, calls with a timeout of their own that count from when they
// were sent, the term ended by whichever clock says so first, release after the hand-back, growing
// pauses after terms that were given up.
type candidate struct {
	node *node

	mu      sync.Mutex
	record  leaseRecord
	version ledger.Version
	known   bool
	changed time.Duration // when the record was last seen to change, by the monotonic clock
	news    chan struct{}
	lost    map[string]instant // renewals without an answer: when they were sent
	writes  int
	owes    time.Duration // until when it pauses, by the monotonic clock
}

// instant is a moment on both clocks of a node.
type instant struct {
	mono time.Duration
	wall time.Time
}

func (n *node) now() instant { return instant{n.mono(), n.wall()} }

func (i instant) add(d time.Duration) instant { return instant{i.mono + d, i.wall.Add(d)} }

func (i instant) reached(limit instant) bool {
	return i.mono >= limit.mono || !i.wall.Before(limit.wall)
}

var (
	errLeaseExpired  = errors.New("the lease was not renewed in time")
	errLeaseTaken    = errors.New("another process took the lease")
	errLeaseResigned = errors.New("the term was given up")
	errRetreat       = errors.New("the candidate retreats")
)

func (c *candidate) interval() time.Duration { return c.node.world.lease / 3 }
func (c *candidate) deadline() time.Duration { return c.node.world.lease * 2 / 3 }
func (c *candidate) timeout() time.Duration  { return (c.deadline() - c.interval()) / 3 }

// run implements [elector].
func (c *candidate) run(ctx context.Context) {
	c.news, c.lost = make(chan struct{}, 1), make(map[string]instant)
	var watching sync.WaitGroup
	watchCtx, stop := context.WithCancel(context.Background())
	watching.Go(func() { c.follow(watchCtx) })
	defer watching.Wait()
	defer stop()
	var pause, last time.Duration
	for ctx.Err() == nil {
		held, ok := c.campaign(ctx, c.node.mono()+pause)
		if !ok {
			c.release()
			return
		}
		since := c.node.mono()
		cause := c.term(ctx, held)
		if !c.node.alive() {
			return
		}
		pause = 0
		if errors.Is(cause, errLeaseResigned) {
			if last == 0 || c.node.mono()-since > last+12*c.interval() {
				last = c.interval()
			} else {
				last = min(2*last, 12*c.interval())
			}
			pause = last
			c.mu.Lock()
			c.owes = c.node.mono() + pause
			c.mu.Unlock()
		}
	}
}

// follow keeps the record in sight through a watch.
func (c *candidate) follow(ctx context.Context) {
	for ctx.Err() == nil && c.node.alive() {
		_ = c.node.watch(ctx, groupLease, objectLease, func(ledger.Version) {
			data, v := c.node.world.server.load(objectLease)
			c.see(data, v)
		})
		sleep(ctx, time.Second)
	}
}

func (c *candidate) see(data []byte, v ledger.Version) {
	var record leaseRecord
	if len(data) > 0 {
		if err := json.Unmarshal(data, &record); err != nil {
			panic(err)
		}
	}
	c.mu.Lock()
	if len(v) > len(c.version) || (len(v) == len(c.version) && v > c.version) {
		if !c.known || record != c.record {
			c.changed = c.node.mono()
		}
		c.known, c.record, c.version = true, record, v
	}
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *candidate) sight() (leaseRecord, time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record, c.changed, c.known
}

// campaign waits until this process holds the Lease, and says since when.
func (c *candidate) campaign(ctx context.Context, from time.Duration) (instant, bool) {
	n := c.node
	for ctx.Err() == nil {
		if n.gate("campaign") != nil {
			return instant{}, false
		}
		record, changed, known := c.sight()
		wait := c.interval()
		if !known || n.mono()-changed > 2*c.interval() {
			_ = c.read()
			record, changed, known = c.sight()
		}
		at := changed
		if record.Holder != "" && record.Holder != n.name {
			at += record.Duration
		}
		at = max(at+between(n.world.dice.of("spread", n.life, int64(changed)), 0, 100*time.Millisecond), from)
		switch left := at - n.mono(); {
		case !known || n.clockCheck() != nil:
		case left <= 0:
			if sent, err := c.hold(true, 0); err == nil && !n.now().reached(sent.add(c.deadline())) {
				return sent, true
			}
			from = n.mono() + between(n.world.dice.roll("back-off", n.life), c.interval()/20, c.interval()/2)
			continue
		default:
			wait = min(wait, left)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-c.news:
		case <-timer.C:
		}
		timer.Stop()
	}
	return instant{}, false
}

func (c *candidate) read() error {
	o, err := call(context.Background(), c.node, groupLease, "read lease", c.timeout(), func() (object, error) {
		data, v := c.node.world.server.load(objectLease)
		return object{data: data, version: v}, nil
	})
	if err == nil {
		c.see(o.data, o.version)
	}
	return err
}

// hold writes this process into the record and returns when the write was sent.
func (c *candidate) hold(anew bool, term int64) (instant, error) {
	n := c.node
	c.mu.Lock()
	next, from := c.record, c.version
	if !anew && next.Holder != n.name {
		c.mu.Unlock()
		return instant{}, errLeaseTaken
	}
	c.writes++
	next.Holder, next.Duration, next.Renewal = n.name, n.world.lease, fmt.Sprintf("%s-%d", n.name, c.writes)
	next.Term = max(next.Term, term)
	sent := n.now()
	c.lost[next.Renewal] = sent
	c.mu.Unlock()
	err := c.put(next, from)
	if err != nil && c.read() == nil {
		if record, _, _ := c.sight(); record.Holder == n.name {
			c.mu.Lock()
			defer c.mu.Unlock()
			if at, ok := c.lost[record.Renewal]; ok && (!anew || record.Renewal == next.Renewal) {
				return at, nil
			}
		}
	}
	return sent, err
}

func (c *candidate) put(next leaseRecord, from ledger.Version) error {
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	v, err := call(context.Background(), c.node, groupLease, "write lease", c.timeout(), func() (ledger.Version, error) {
		return c.node.world.server.replace(c.node, objectLease, from, data)
	})
	if err == nil {
		c.see(data, v)
	}
	return err
}

// release writes that nobody holds the Lease, if this process does.
func (c *candidate) release() {
	for began := c.node.mono(); c.node.mono()-began < 3*c.timeout() && c.node.alive(); {
		if c.read() == nil {
			c.mu.Lock()
			next, from := c.record, c.version
			c.mu.Unlock()
			if next.Holder != c.node.name {
				return
			}
			next.Holder, next.Renewal = "", next.Renewal+" released"
			if c.put(next, from) == nil {
				return
			}
		}
		time.Sleep(between(c.node.world.dice.roll("release", c.node.life), c.timeout()/4, c.timeout()/2))
	}
}

// term leads one term and says why it ended.
func (c *candidate) term(ctx context.Context, held instant) error {
	n := c.node
	record, _, _ := c.sight()
	l := newLease(n, held.add(c.deadline()), record.Term)
	n.world.logf(n.name, "won the lease")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = n.engine.Lead(l.ctx, l)
	}()
	c.keep(ctx, l, held)
	cause := context.Cause(l.ctx)
	n.world.logf(n.name, "lease over: %v", cause)
	patience := time.NewTimer(3 * time.Second)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
	if !errors.Is(cause, errLeaseExpired) && !errors.Is(cause, errLeaseTaken) {
		c.release()
	}
	<-done
	return cause
}

// keep renews the lease until the term is over.
func (c *candidate) keep(ctx context.Context, l *lease, held instant) {
	n := c.node
	due := held.mono + c.interval()
	var calls sync.WaitGroup
	defer calls.Wait() // the record is written by one call at a time
	renewed := make(chan error, 1)
	calling := false
	for l.Check() == nil {
		if err := n.clockCheck(); err != nil {
			l.end(err)
			return
		}
		timer := time.NewTimer(max(due-n.mono(), 0))
		expired, asked := timer.C, l.renew
		if calling {
			expired, asked = nil, nil
		}
		start := func() {
			calling = true
			calls.Go(func() {
				sent, err := c.hold(false, l.term())
				if err == nil {
					err = l.extend(sent.add(c.deadline()))
				}
				renewed <- err
			})
		}
		select {
		case <-l.ctx.Done():
		case <-ctx.Done():
			l.end(n.whyRetreat())
		case <-c.news:
			if record, _, _ := c.sight(); record.Holder != n.name {
				l.end(errLeaseTaken)
			}
		case <-asked:
			start()
		case <-expired:
			start()
		case err := <-renewed:
			calling = false
			due = n.mono() + c.interval()
			if err != nil {
				due = n.mono() + between(n.world.dice.roll("renew", n.life), c.interval()/20, c.interval()/5)
			}
			if record, _, _ := c.sight(); record.Holder != n.name {
				l.end(errLeaseTaken)
			}
		}
		timer.Stop()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
