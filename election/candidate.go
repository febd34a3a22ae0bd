package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
)

// candidate is what every elector is made of: who it is, whether it may lead, the term that it has,
// and how it tells the world.
type candidate struct {
	opts  Options
	log   *slog.Logger
	lease atomic.Pointer[Lease] // the latest term's, also after its end; nil: none yet
	turn  atomic.Int64          // Unix nanoseconds of the loop's last progress

	mu      sync.Mutex
	waiting string // for Status

	// Only the loop uses these.
	told   string // the last reason that was logged
	nags   map[complaint]*nag
	pauses pauses
}

func newCandidate(opts Options) *candidate {
	return &candidate{
		opts: opts,
		log:  opts.Logger.With(slog.String(logkey.Component, "election")),
		nags: make(map[complaint]*nag),
	}
}

// turned notes that the loop makes progress.
func (c *candidate) turned() { c.turn.Store(time.Now().UnixNano()) }

func (c *candidate) lastTurn() time.Time {
	if n := c.turn.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (c *candidate) leading() *Lease {
	if l := c.lease.Load(); l != nil && l.Valid() {
		return l
	}
	return nil
}

func (c *candidate) observe(event Event) {
	if c.opts.Observer != nil {
		c.opts.Observer.Observe(event)
	}
}

// wait notes why this process does not lead, for Status and, once per reason, for the log.
func (c *candidate) wait(ctx context.Context, reason string, attrs ...slog.Attr) {
	c.waitAt(ctx, slog.LevelInfo, reason, attrs...)
}

// ineligible is wait for what Options.Eligible says.
func (c *candidate) ineligible(ctx context.Context, err error) {
	level := slog.LevelInfo
	if errors.Is(err, ErrUndecided) {
		level = slog.LevelDebug
	}
	c.waitAt(ctx, level, fmt.Errorf("%w: %w", ErrIneligible, err).Error())
}

func (c *candidate) waitAt(ctx context.Context, level slog.Level, reason string, attrs ...slog.Attr) {
	c.setWaiting(reason)
	if c.told != reason {
		c.told = reason
		c.log.LogAttrs(ctx, level, "waiting to lead", append(attrs, slog.String(logkey.Reason, reason))...)
	}
}

// complain is wait for what should not be: logged at once and then at growing intervals, as an error
// if someone has to do something about it.
func (c *candidate) complain(ctx context.Context, about complaint, err error) {
	c.setWaiting(err.Error())
	n := c.nags[about]
	if n == nil {
		n = new(nag)
		c.nags[about] = n
	}
	if n.due(time.Now()) {
		level := slog.LevelError
		if about == aboutServer {
			level = slog.LevelWarn
		}
		c.log.LogAttrs(ctx, level, "cannot compete for leadership", logkey.Err(err))
		if about == aboutObject || about == aboutRights {
			c.observe(Obstructed{Err: err})
		}
	}
}

// settled ends a complaint: the next of its kind is logged at once again.
func (c *candidate) settled(about complaint) { delete(c.nags, about) }

func (c *candidate) setWaiting(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = reason
}

func (c *candidate) waitingFor() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// begin starts lead under lease and returns a channel that is closed once it has returned.
func (c *candidate) begin(ctx context.Context, lease *Lease, lead Lead) <-chan struct{} {
	c.setWaiting("")
	c.told = ""
	clear(c.nags)
	c.lease.Store(lease)
	c.log.LogAttrs(ctx, slog.LevelInfo, "term won")
	c.observe(TermWon{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease.Resign(lead(lease.ctx, lease)) // no effect if the term has ended already
	}()
	return done
}

// ended tells the world that lease's term is over, and how long to stay out of the next.
func (c *candidate) ended(ctx context.Context, lease *Lease) (pause time.Duration) {
	err := lease.cause()
	level := slog.LevelInfo
	if lost(err) {
		level = slog.LevelWarn
	}
	c.log.LogAttrs(ctx, level, "term ended", slog.Int64(logkey.Term, lease.Term()), slog.String(logkey.Reason, err.Error()))
	c.observe(TermEnded{Err: err, Lost: lost(err)})
	if errors.Is(err, ErrResigned) {
		return c.pauses.next(time.Since(lease.began))
	}
	return 0
}

// handedBack waits for lead to return, but no longer than agreed, and reports whether it did.
func (c *candidate) handedBack(done <-chan struct{}) bool {
	timer := time.NewTimer(c.opts.HandBack)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// await waits for lead to return, however long that takes: two terms must not run at once. The loop
// makes no progress meanwhile, which is for the liveness probe to see.
func (c *candidate) await(ctx context.Context, done <-chan struct{}) {
	err := errors.New("the work of the last term has not returned")
	for {
		c.complain(ctx, aboutLead, err)
		timer := time.NewTimer(5 * time.Second)
		select {
		case <-done:
			timer.Stop()
			c.settled(aboutLead)
			return
		case <-timer.C:
		}
	}
}

// pausing is why a sidecar waits that gave its term up.
const pausing = "pausing after a term that was given up"

// pauses keeps a sidecar that gave its terms up from taking each next one at once.
type pauses struct {
	first, max time.Duration
	last       time.Duration
}

// next answers with the pause after a term that was given up after held. A term that lasted well
// beyond the pause before it starts anew.
func (p *pauses) next(held time.Duration) time.Duration {
	if p.last == 0 || held > p.last+12*p.first {
		p.last = p.first
	} else {
		p.last = min(2*p.last, p.max)
	}
	return p.last
}

// complaint is a kind of trouble. Errors of one kind may read differently each time.
type complaint int

const (
	aboutObject complaint = iota // the Lease object is not there, or not ours
	aboutServer                  // the API server does not answer as it should
	aboutRights                  // the API server refuses what this process has no right to
	aboutLead                    // the last term's work goes on
)

// nag says when to repeat a complaint: after 10 s, then at intervals that double up to 10 min.
type nag struct {
	next  time.Time
	pause time.Duration
}

func (n *nag) due(now time.Time) bool {
	if now.Before(n.next) {
		return false
	}
	n.pause = min(max(2*n.pause, 10*time.Second), 10*time.Minute)
	n.next = now.Add(n.pause)
	return true
}
