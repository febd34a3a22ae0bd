package chaos

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// options are what a run can be told.
type options struct {
	Time     time.Duration // for how long faults happen
	Seed     uint64
	Sidecars int
	// Losses is how often the leader is made to lose afterwards, to see that each sidecar competes.
	Losses int
	// Logs is a folder for the logs of all processes and a list of the faults.
	Logs string
	Out  io.Writer // takes a line now and then
}

// session is one run.
type session struct {
	t        testing.TB
	options  options
	cluster  *cluster.Cluster
	sidecars []*sidecar
	witness  *witness
	document document
	calm     atomic.Bool // the apps behave well

	mu       sync.Mutex
	events   io.Writer
	faults   map[kind]tally
	refusals int
	promised []string // IDs of runs that an API promised
}

// tally counts the faults of a kind: those that were set, and those that hit anything.
type tally struct{ Set, Hit int }

// result is a run's outcome.
type result struct {
	account
	Faults map[kind]tally
	// Refusals counts the times in which a sidecar said that its app, which was down, refuses connections.
	Refusals int
	// Leaderless is the longest time without a leader after the faults had ended.
	Leaderless time.Duration
	// Losses were forced when the faults had ended, by kind; after each, one sidecar, each in its turn,
	// had to lead. SlowestTurn is the longest that this took.
	Losses      map[intrusion]int
	SlowestTurn time.Duration
	// Processes were started, Unordered of them ended without being told to.
	Processes, Unordered int
	// LedgerVersions were watched, LedgerBytes is the largest of them.
	LedgerVersions, LedgerBytes int
}

// torment starts everything, lets faults happen for the time that o names, waits until all is
// settled, and judges. It fails t where it cannot do that, and leaves the judgment to the caller.
func torment(ctx context.Context, t testing.TB, o options) result {
	t.Helper()
	events, err := os.Create(filepath.Join(o.Logs, "faults.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = events.Close() })
	s := &session{t: t, options: o, events: events, faults: make(map[kind]tally)}
	s.cluster = cluster.New(t, controlplane.Start(t), s.document.text())
	s.witness = newWitness(s.cluster, copies(t, filepath.Join(o.Logs, "ledger.gz")))
	for n := range o.Sidecars {
		s.sidecars = append(s.sidecars, newSidecar(t, s.cluster, fmt.Sprintf("shop-%d", n), o.Logs, answer(o.Seed, s.calm.Load)))
	}
	watching, stopWatching := context.WithCancel(ctx)
	began := time.Now().UTC()
	var background sync.WaitGroup
	defer background.Wait()
	defer stopWatching()
	background.Go(func() { s.witness.run(watching) })
	background.Go(func() { s.progress(watching) })
	for _, each := range s.sidecars {
		if err := each.start(); err != nil {
			t.Fatal(err)
		}
	}
	s.say("seed %d: %d sidecars started, faults for %s; logs of the processes come to %s", o.Seed, o.Sidecars, o.Time, o.Logs)

	(&injector{session: s}).inject(ctx, plot(o.Seed, o.Time, o.Sidecars))
	s.alive(ctx)
	ended := time.Now()
	s.calm.Store(true)
	s.say("faults ended; waiting for a leader, then each sidecar has to lead in its turn")

	r := result{Losses: make(map[intrusion]int)}
	r.Leaderless = s.awaitLeader(ctx, ended)
	for n := range o.Losses {
		l := s.forceLoss(ctx, n)
		r.Losses[l.How]++
		r.SlowestTurn = max(r.SlowestTurn, l.Turn)
		if (n+1)%10 == 0 {
			s.say("%d of %d losses forced", n+1, o.Losses)
		}
	}
	last := time.Now()
	s.settle(ctx, last)
	s.say("settled %s after the last forced loss; a quiet stretch of %s", time.Since(last).Round(100*time.Millisecond), quiet)
	calm := s.quietStretch(ctx)
	s.settle(ctx, calm.Until)
	s.say("stopping")
	for _, each := range s.sidecars {
		if p := each.claim(); p != nil {
			each.terminate(p)
		}
	}
	// What the sidecars recorded while they stopped.
	if err := s.witness.read(ctx); err != nil {
		t.Fatalf("read the documents at the end: %v", err)
	}
	s.finish(&r, evidence{Began: began, Until: calm.Until, Calm: calm, Standing: standing})
	return r
}

// copies opens a compressed file: a run writes the ledger some thousand times.
func copies(t testing.TB, path string) io.Writer {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := gzip.NewWriter(file)
	t.Cleanup(func() {
		_ = out.Close()
		_ = file.Close()
	})
	return out
}

// finish judges, and adds what is known of the processes.
func (s *session) finish(r *result, e evidence) {
	e.testimony, e.Arrivals, e.Promised = s.witness.testimony(), s.arrivals(), s.promised
	r.account = judge(e)
	r.Faults, r.Refusals = s.faults, s.refusals
	r.LedgerVersions, r.LedgerBytes = e.Watched, e.Bytes
	for _, each := range s.sidecars {
		each.mu.Lock()
		r.Processes += each.lives
		r.Unordered += len(each.unordered)
		for _, exit := range each.unordered {
			r.Violations = append(r.Violations, "a process ended without being told to: "+exit)
		}
		for _, exit := range each.unclean {
			r.Violations = append(r.Violations, "a process did not end in good order: "+exit)
		}
		each.mu.Unlock()
	}
}

// alive starts the sidecars whose process is gone.
func (s *session) alive(ctx context.Context) {
	if ctx.Err() != nil {
		s.t.Fatalf("interrupted: %v", context.Cause(ctx))
	}
	for _, each := range s.sidecars {
		if err := each.start(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// dump keeps the logs of the processes that still run.
func (s *session) dump() {
	for _, each := range s.sidecars {
		if p := each.running(); p != nil {
			each.mu.Lock()
			each.keepLog(p, each.lives)
			each.mu.Unlock()
		}
	}
}

// arrivals gathers what the apps recorded.
func (s *session) arrivals() []arrival {
	var out []arrival
	for _, each := range s.sidecars {
		each.mu.Lock()
		stopped := slices.Clone(each.stopped)
		each.mu.Unlock()
		for _, c := range cluster.Arrivals("", each.app) {
			a := arrival{
				At: c.At.UTC(), Run: c.Body.ID, Occurrence: c.Body.Occurrence, Attempt: c.Body.Attempt,
				Job: c.Body.Job, ScheduledAt: c.Body.ScheduledAt.UTC(),
			}
			if c.Body.FiredAt != nil {
				a.FiredAt = c.Body.FiredAt.UTC()
			}
			if c.Body.Term != nil {
				a.Term = *c.Body.Term
			}
			a.Frozen = slices.ContainsFunc(stopped, func(s span) bool { return s.overlaps(a.FiredAt, a.At) })
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b arrival) int { return a.At.Compare(b.At) })
	return out
}

// progress says every half minute how it goes.
func (s *session) progress(ctx context.Context) {
	for wait(ctx, 30*time.Second) {
		seen := s.witness.testimony()
		s.mu.Lock()
		faults := 0
		for _, t := range s.faults {
			faults += t.Set
		}
		s.mu.Unlock()
		s.say("%d faults undone, %d callbacks, %d runs recorded, term %d held by %s",
			faults, len(s.arrivals()), len(seen.Runs), seen.Ledger.Term, strings.TrimSpace(seen.Ledger.Holder))
	}
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.options.Out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
