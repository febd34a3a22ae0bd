package electiontest

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
)

// Harness makes electors of one implementation.
type Harness struct {
	// New returns an elector. Those of one harness compete with one another.
	New func(t testing.TB, opts election.Options) election.Elector
	// Rivals: a second elector does not lead while the first does. Without it each leads by itself.
	Rivals bool
	// Remembers: the fencing term of one leader reaches the next.
	Remembers bool
	// Usurp writes another holder into the record, as whoever has the right could, and whom it names. It
	// holds for a time that ends within seconds. Nil: there is no record that others could write.
	Usurp func(t testing.TB) (name string)
	// Isolate takes the store away from one elector, so that its calls fail or hang, until heal is
	// called. Nil: there is no store that could be away.
	Isolate func(t testing.TB, elector election.Elector) (heal func())
}

// Run shows that an implementation keeps the rules of package election. open is called once for each
// of its tests, which run in parallel.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	type test struct {
		name string
		test func(t *testing.T, h Harness)
	}
	tests := []test{
		{"it leads, and says so", testLeads},
		{"the end of Run hands the term over and gives the cause", testStop},
		{"a lost term stays lost, and a new one follows", testReenters},
		{"work that returns gives its term up", testLeadReturns},
		{"who gives terms up pauses longer each time", testPausesGrow},
		{"who may not lead does not, and says why", testEligible},
		{"work that hangs hides nothing and has no successor in its process", testHangs},
		{"the fencing term only grows", testTermGrows},
		{"who runs again and may not lead follows", testFollowsAfterwards},
		{"what happens is told in order", testEvents},
		{"one leads at a time, and the next follows at once", testRivals},
	}
	// Where nobody else can write the record, or no store can be away, there is nothing to show.
	can := open(t)
	if can.Usurp != nil {
		tests = append(tests, test{"whoever writes itself in ends the term, for a time", testUsurped})
	}
	if can.Isolate != nil {
		tests = append(tests, test{"who cannot reach the store stops before another starts", testIsolated})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, open(t))
		})
	}
}

// Options are those of a candidate in pod name, which logs to the test.
func Options(tb testing.TB, name string) election.Options {
	tb.Helper()
	return election.Options{
		Identity: election.NewIdentity(name),
		HandBack: 300 * time.Millisecond,
		Logger:   slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func testLeads(t *testing.T, h Harness) {
	t.Helper()
	e := h.New(t, Options(t, "pod-a"))
	if s := e.Status(); s.Leading || s.Holder != "" {
		t.Errorf("Status before Run = %+v, want nobody leading", s)
	}
	c := NewField().Start(t, e)
	term := c.Lead(t)
	if err := term.Lease.Check(); err != nil {
		t.Errorf("Check in a fresh term = %v", err)
	}
	s := e.Status()
	if !s.Leading || s.Holder != s.Identity || s.HolderName() != "pod-a" || s.Waiting != "" {
		t.Errorf("Status of the leader = %+v, want it to name itself, as pod-a, and no reason of waiting", s)
	}
	if time.Since(s.LastTurn) > time.Minute || time.Since(s.AcquiredAt) > time.Minute || time.Since(s.SeenAt) > time.Minute {
		t.Errorf("Status of the leader = %+v, want its times to be recent", s)
	}
}

func testStop(t *testing.T, h Harness) {
	t.Helper()
	c := NewField().Start(t, h.New(t, Options(t, "pod-a")))
	term := c.Lead(t)
	c.Stop(t)
	if err := c.Err(); !errors.Is(err, ErrStop) {
		t.Errorf("Run = %v, want the cause of its context's end", err)
	}
	if err := term.Ended(t); !errors.Is(err, ErrStop) {
		t.Errorf("lead's context ended with %v, want the cause of Run's", err)
	}
	if err := term.Lease.Check(); !errors.Is(err, election.ErrNotLeading) || !errors.Is(err, ErrStop) {
		t.Errorf("Check after the end = %v, want ErrNotLeading with the cause", err)
	}
	if s := c.Elector.Status(); s.Leading || s.Holder != "" {
		t.Errorf("Status after the end = %+v, want nobody leading", s)
	}
}

// R075, R076
func testReenters(t *testing.T, h Harness) {
	t.Helper()
	c := NewField().Start(t, h.New(t, Options(t, "pod-a")))
	reason := errors.New("another term is in the ledger")
	var old []*election.Lease
	for range 2 {
		term := c.Lead(t)
		if slices.Contains(old, term.Lease) {
			t.Fatal("a term came back")
		}
		term.Lease.Resign(reason)
		if term.Lease.Valid() {
			t.Error("the lease is valid after Resign")
		}
		if err := term.Ended(t); !errors.Is(err, election.ErrResigned) || !errors.Is(err, reason) {
			t.Errorf("the term ended with %v, want ErrResigned with the reason", err)
		}
		old = append(old, term.Lease)
	}
	c.Lead(t)
	for i, lease := range old {
		if lease.Valid() {
			t.Errorf("lease %d is valid again", i)
		}
	}
}

// R090
func testLeadReturns(t *testing.T, h Harness) {
	t.Helper()
	c := NewField().Start(t, h.New(t, Options(t, "pod-a")))
	failed := errors.New("failed")
	term := c.Lead(t)
	term.Return(failed)
	if err := term.Ended(t); !errors.Is(err, election.ErrResigned) || !errors.Is(err, failed) {
		t.Errorf("the term ended with %v, want ErrResigned with what lead returned", err)
	}
	c.Lead(t)
}

func testPausesGrow(t *testing.T, h Harness) {
	t.Helper()
	c := NewField().Start(t, h.New(t, Options(t, "pod-a")))
	var pauses []time.Duration
	c.Lead(t).Return(nil)
	for range 2 {
		began := time.Now()
		c.Lead(t).Return(nil)
		pauses = append(pauses, time.Since(began))
	}
	if pauses[0] < 500*time.Millisecond || pauses[1] < pauses[0]*3/2 {
		t.Errorf("pauses between terms that were given up at once: %v, want them to begin at about a second and to double", pauses)
	}
}

func testEligible(t *testing.T, h Harness) {
	t.Helper()
	var reason atomic.Pointer[string]
	set := func(s string) { reason.Store(&s) }
	set("the app does not answer")
	changed := make(chan struct{}, 1)
	opts := Options(t, "pod-a")
	opts.Changed = changed
	opts.Eligible = func() error {
		if s := *reason.Load(); s != "" {
			return errors.New(s)
		}
		return nil
	}
	c := NewField().Start(t, h.New(t, opts))
	Until(t, "Status says why it waits", func() bool {
		return strings.Contains(c.Elector.Status().Waiting, "the app does not answer")
	})
	Quiet(t, 200*time.Millisecond, c)

	set("")
	changed <- struct{}{}
	term := c.Lead(t)

	set("the app is gone")
	changed <- struct{}{}
	if err := term.Ended(t); !errors.Is(err, election.ErrIneligible) || !strings.Contains(err.Error(), "the app is gone") {
		t.Errorf("the term ended with %v, want ErrIneligible with the reason", err)
	}
	Until(t, "Status says why it waits again", func() bool {
		return strings.Contains(c.Elector.Status().Waiting, "the app is gone")
	})
	Quiet(t, 200*time.Millisecond, c)

	set("")
	changed <- struct{}{}
	c.Lead(t)
}

func testFollowsAfterwards(t *testing.T, h Harness) {
	t.Helper()
	var leaving atomic.Bool
	opts := Options(t, "pod-a")
	opts.Eligible = func() error {
		if leaving.Load() {
			return errors.New("it is drained")
		}
		return nil
	}
	field, elector := NewField(), h.New(t, opts)
	c := field.Start(t, elector)
	c.Lead(t)
	leaving.Store(true)
	c.Stop(t)

	again := field.Start(t, elector)
	Until(t, "Status says why it does not lead any more", func() bool {
		return strings.Contains(elector.Status().Waiting, "it is drained")
	})
	if h.Rivals {
		field.Start(t, h.New(t, Options(t, "pod-b"))).Lead(t)
		Until(t, "it sees who leads instead", func() bool { return elector.Status().HolderName() == "pod-b" })
	}
	Quiet(t, 200*time.Millisecond, again)
}

// R074, R090
func testHangs(t *testing.T, h Harness) {
	t.Helper()
	field := NewField()
	c := field.Start(t, h.New(t, Options(t, "pod-a")))
	term := c.Lead(t)
	term.Hang(t)
	term.Lease.Resign(nil)
	if term.Lease.Valid() || c.Elector.Status().Leading {
		t.Error("the loss does not show while the work hangs")
	}
	if h.Rivals {
		next := field.Start(t, h.New(t, Options(t, "pod-b")))
		next.Lead(t)
		next.Stop(t)
	}
	stuck := c.Elector.Status().LastTurn
	Quiet(t, 2*time.Second, c)
	if turned := c.Elector.Status().LastTurn; !turned.Equal(stuck) {
		t.Errorf("LastTurn moved by %v while the work hung, want it to show that this process cannot compete", turned.Sub(stuck))
	}
	term.Return(nil)
	c.Lead(t)
}

func testTermGrows(t *testing.T, h Harness) {
	t.Helper()
	field := NewField()
	c := field.Start(t, h.New(t, Options(t, "pod-a")))
	term := c.Lead(t)
	if got := term.Lease.AnnotatedTerm(); got != 0 {
		t.Errorf("AnnotatedTerm of the first leader = %d, want 0", got)
	}
	term.Lease.SetTerm(41)
	term.Lease.SetTerm(7)
	if got := term.Lease.Term(); got != 41 {
		t.Errorf("Term = %d, want 41: it does not shrink", got)
	}
	Until(t, "Status shows the term", func() bool { return c.Elector.Status().Term == 41 })
	if !h.Remembers {
		return
	}
	follower := field.Start(t, h.New(t, Options(t, "pod-b")))
	Until(t, "the follower's Status shows the term and its holder", func() bool {
		s := follower.Elector.Status()
		return s.Term == 41 && s.HolderName() == "pod-a" && !s.Leading
	})
	c.Stop(t)
	next := follower.Lead(t)
	if got := next.Lease.AnnotatedTerm(); got != 41 {
		t.Errorf("AnnotatedTerm of the next leader = %d, want 41", got)
	}
	if got := next.Lease.Term(); got != 0 {
		t.Errorf("Term of the next leader = %d, want 0 until the ledger has said it", got)
	}
}

type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Observe(event election.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := event.(type) {
	case election.TermWon:
		r.events = append(r.events, "won")
	case election.TermEnded:
		if e.Lost {
			r.events = append(r.events, "lost")
		} else {
			r.events = append(r.events, "given up")
		}
	}
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func testEvents(t *testing.T, h Harness) {
	t.Helper()
	rec := new(recorder)
	opts := Options(t, "pod-a")
	opts.Observer = rec
	c := NewField().Start(t, h.New(t, opts))
	c.Lead(t).Lease.Resign(nil)
	c.Lead(t)
	c.Stop(t)
	if got, want := rec.all(), []string{"won", "given up", "won", "given up"}; !slices.Equal(got, want) {
		t.Errorf("events = %v, want %v", got, want)
	}
}

func testRivals(t *testing.T, h Harness) {
	t.Helper()
	if !h.Rivals {
		for _, name := range []string{"pod-a", "pod-b"} {
			NewField().Start(t, h.New(t, Options(t, name))).Lead(t)
		}
		return
	}
	field := NewField()
	var candidates []*Candidate
	for _, name := range []string{"pod-a", "pod-b", "pod-c"} {
		candidates = append(candidates, field.Start(t, h.New(t, Options(t, name))))
	}
	for len(candidates) > 0 {
		leader := First(t, candidates...)
		Quiet(t, 300*time.Millisecond, candidates...)
		candidates = slices.DeleteFunc(candidates, func(c *Candidate) bool { return c == leader.Candidate })
		for _, c := range candidates {
			Until(t, "a follower names the leader", func() bool {
				return c.Elector.Status().Holder == leader.Elector.Status().Identity
			})
		}
		began := time.Now()
		leader.Stop(t)
		if len(candidates) > 0 {
			var c *Candidate
			Until(t, "the next one leads", func() bool {
				i := slices.IndexFunc(candidates, func(c *Candidate) bool { return c.Elector.Status().Leading })
				if i >= 0 {
					c = candidates[i]
				}
				return i >= 0
			})
			t.Logf("%s led %v after the hand-over began", c.Elector.Status().HolderName(), time.Since(began))
			if took := time.Since(began); took > time.Second {
				t.Errorf("the next one led after %v, want well before a lease could run out", took)
			}
		}
	}
}

// R072
func testUsurped(t *testing.T, h Harness) {
	t.Helper()
	c := NewField().Start(t, h.New(t, Options(t, "pod-a")))
	term := c.Lead(t)
	name := h.Usurp(t)
	if err := term.Ended(t); !errors.Is(err, election.ErrTaken) {
		t.Errorf("the term ended with %v, want ErrTaken", err)
	}
	if s := c.Elector.Status(); s.Leading || s.Holder != name {
		t.Errorf("Status = %+v, want it to name %s", s, name)
	}
	next := c.Lead(t)
	if term.Lease.Valid() || !next.Lease.Valid() {
		t.Error("the old term came back, or the new one ended")
	}
}

// R074, R076, R090
func testIsolated(t *testing.T, h Harness) {
	t.Helper()
	field := NewField() // fails the test when two lead
	c := field.Start(t, h.New(t, Options(t, "pod-a")))
	term := c.Lead(t)
	term.Hang(t) // nor does its work stop by itself
	rival := field.Start(t, h.New(t, Options(t, "pod-b")))
	Until(t, "the follower names the leader", func() bool { return rival.Elector.Status().Holder == c.Elector.Status().Identity })

	heal := h.Isolate(t, c.Elector)
	if err := term.Ended(t); !errors.Is(err, election.ErrExpired) {
		t.Errorf("the term ended with %v, want ErrExpired", err)
	}
	if c.Elector.Status().Leading {
		t.Error("Status says that it leads")
	}
	next := rival.Lead(t)
	heal()
	term.Return(nil)
	Quiet(t, time.Second, c)
	if term.Lease.Valid() || !next.Lease.Valid() {
		t.Error("the old term came back, or the new one ended")
	}
	rival.Stop(t)
	c.Lead(t) // it competes again
}
