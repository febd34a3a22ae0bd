package election_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// R072
func TestWhoeverWritesItselfInEndsTheTermAtOnce(t *testing.T) {
	t.Parallel()
	a := open(t)
	opts := a.options(t, "pod-a", a.cfg)
	opts.Duration, opts.RenewDeadline = time.Minute, 0 // the next renewal is far away
	c := a.Start(t, elector(t, opts))
	term := c.Lead(t)

	written := time.Now()
	a.patch(t, `{"spec":{"holderIdentity":"someone-else_1","leaseDurationSeconds":2}}`)
	if err := term.Ended(t); !errors.Is(err, election.ErrTaken) {
		t.Errorf("the term ended with %v, want ErrTaken", err)
	}
	if took := time.Since(written); took > soon {
		t.Errorf("the term ended %v after the foreign write, want at once", took)
	}
	if s := c.Elector.Status(); s.Leading || s.HolderName() != "someone-else" {
		t.Errorf("Status = %+v, want it to name someone-else", s)
	}
	// The intruder never renews: the Lease is taken back when the intruder's duration is over.
	next := c.Lead(t)
	if took := time.Since(written); took < 2*time.Second {
		t.Errorf("the Lease was taken back after %v, want not before the intruder's 2s are over", took)
	}
	if term.Lease.Valid() || !next.Lease.Valid() {
		t.Error("the old term came back")
	}
}

// Nobody took the Lease, so no message says so, and whoever may lead takes it at once.
func TestWhoeverEmptiesTheHolderEndsTheTermAtOnce(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"empty": `{"spec":{"holderIdentity":""}}`, "absent": `{"spec":{"holderIdentity":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			opts := a.options(t, "pod-a", a.cfg)
			opts.Duration, opts.RenewDeadline = time.Minute, 0
			c := a.Start(t, elector(t, opts))
			term := c.Lead(t)

			written := time.Now()
			a.patch(t, patch)
			err := term.Ended(t)
			if !errors.Is(err, election.ErrEmptied) || errors.Is(err, election.ErrTaken) {
				t.Errorf("the term ended with %v, want ErrEmptied alone", err)
			}
			if took := time.Since(written); took > soon {
				t.Errorf("the term ended %v after the holder was emptied, want at once", took)
			}
			next := c.Lead(t)
			if term.Lease.Valid() || !next.Lease.Valid() {
				t.Error("the old term came back, or the new one ended")
			}
		})
	}
}

// R072, without the watch
func TestAForeignWriteIsFoundByTheNextRenewal(t *testing.T) {
	t.Parallel()
	a := open(t)
	c, p := a.behindProxy(t, "pod-a")
	p.Inject(faultproxy.Status(403, 0), faultproxy.Verb("list", "watch"))
	term := c.Lead(t)
	a.patch(t, `{"spec":{"holderIdentity":"someone-else_1"}}`)
	written := time.Now()
	if err := term.Ended(t); !errors.Is(err, election.ErrTaken) {
		t.Errorf("the term ended with %v, want ErrTaken", err)
	}
	if took := time.Since(written); took > interval+soon {
		t.Errorf("the term ended %v after the foreign write, want at the next renewal, within %v", took, interval)
	}
}

func TestAnEditByHandThatLeavesTheHolderAloneChangesNothing(t *testing.T) {
	t.Parallel()
	a := open(t)
	c := a.candidate(t, "pod-a")
	term := c.Lead(t)
	for i := range 3 {
		a.patch(t, fmt.Sprintf(`{"metadata":{"annotations":{"note":"%d"}}}`, i))
		renewed(t, c)
	}
	renewed(t, c)
	if err := term.Lease.Check(); err != nil {
		t.Errorf("Check = %v, want the term to go on", err)
	}
	if got := a.lease(t).Annotations["note"]; got != "2" {
		t.Errorf("the annotation is %q after renewals, want it kept", got)
	}
}

// R074, R076, R095: the API server is away for the leader, in each of the ways in which it can be.
func TestALeaderThatCannotRenewStopsBeforeAnotherStarts(t *testing.T) {
	t.Parallel()
	faults := map[string]func(p *faultproxy.Proxy){
		"packets vanish":             func(p *faultproxy.Proxy) { p.Blackhole() },
		"connections are refused":    func(p *faultproxy.Proxy) { p.Cut() },
		"every call hangs":           func(p *faultproxy.Proxy) { p.Inject(faultproxy.Hang()) },
		"every write is slow to end": func(p *faultproxy.Proxy) { p.Inject(faultproxy.Delay(deadline), writes) },
		"every answer is an error":   func(p *faultproxy.Proxy) { p.Inject(faultproxy.Status(500, 0)) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			c, p := a.behindProxy(t, "pod-a")
			term := c.Lead(t)
			term.Hang(t) // its work does not stop by itself either
			follower := a.candidate(t, "pod-b")
			last := renewed(t, c)
			electiontest.Until(t, "the follower sees the renewal", func() bool {
				return follower.Elector.Status().RenewedAt.Equal(last)
			})
			fault(p)

			err := term.Ended(t)
			ended := time.Now()
			if !errors.Is(err, election.ErrExpired) {
				t.Errorf("the term ended with %v, want ErrExpired", err)
			}
			if took := ended.Sub(last); took > deadline+soon/4 {
				t.Errorf("the term ended %v after the last renewal, want at %v", took, deadline)
			}
			if c.Elector.Status().Leading {
				t.Error("Status says that it leads")
			}
			next := follower.Lead(t) // the field fails the test if both are valid
			t.Logf("stopped %v and succeeded %v after the last renewal was sent", ended.Sub(last), time.Since(last))
			for range 3 { // R095: the old one stays cut off, and only the Lease counts
				electiontest.Quiet(t, interval/2, c)
				if term.Lease.Valid() || !next.Lease.Valid() {
					t.Fatal("the old leader came back")
				}
			}
		})
	}
}

// R076
func TestATermThatIsLostIsOverThoughTheServerIsBackAMomentLater(t *testing.T) {
	t.Parallel()
	a := open(t)
	c, p := a.behindProxy(t, "pod-a")
	term := c.Lead(t)
	p.Blackhole()
	_ = term.Ended(t)
	p.Heal() // and all that was under way arrives now
	next := c.Lead(t)
	renewed(t, c)
	if term.Lease.Valid() {
		t.Error("the old term came back")
	}
	if !next.Lease.Valid() {
		t.Error("the new term ended")
	}
}

// R087
func TestAShortOutageChangesNothing(t *testing.T) {
	t.Parallel()
	a := open(t)
	p := faultproxy.Start(t, a.cfg)
	opts := a.options(t, "pod-a", p.Config())
	opts.Duration, opts.RenewDeadline = 6*time.Second, 4*time.Second // renewed every 2
	c := a.Start(t, elector(t, opts))
	term := c.Lead(t)
	follower := a.candidate(t, "pod-b")
	for range 3 {
		renewed(t, c)
		p.Cut()
		electiontest.Quiet(t, 1500*time.Millisecond, follower)
		p.Heal()
		renewed(t, c)
	}
	if err := term.Lease.Check(); err != nil {
		t.Errorf("Check = %v, want the term to go on", err)
	}
}

// R087, R089, R090
func TestALongOutageIsSurvived(t *testing.T) {
	t.Parallel()
	a := open(t)
	p := faultproxy.Start(t, a.cfg) // the API server is away for all
	one := a.Start(t, elector(t, a.options(t, "pod-a", p.Config())))
	two := a.Start(t, elector(t, a.options(t, "pod-b", p.Config())))
	for range 2 {
		won := electiontest.First(t, one, two)
		p.Cut()
		if err := won.Ended(t); !errors.Is(err, election.ErrExpired) {
			t.Errorf("the term ended with %v, want ErrExpired", err)
		}
		p.ResetRequests()
		electiontest.Quiet(t, 2*duration, one, two)
		healed := time.Now()
		p.Heal()
		electiontest.Until(t, "one of them leads again", func() bool {
			return one.Elector.Status().Leading || two.Elector.Status().Leading
		})
		if took := time.Since(healed); took > duration+soon {
			t.Errorf("it took %v from the API server's return to the next term, want at most %v", took, duration)
		}
	}
}

// R090: each of three loses the Lease in turn, and competes again.
func TestALoserCompetesAgainForEver(t *testing.T) {
	t.Parallel()
	a := open(t)
	proxies := map[*electiontest.Candidate]*faultproxy.Proxy{}
	var all []*electiontest.Candidate
	for _, pod := range []string{"pod-a", "pod-b", "pod-c"} {
		c, p := a.behindProxy(t, pod)
		proxies[c] = p
		all = append(all, c)
	}
	lost := map[*electiontest.Candidate]int{}
	for range 6 {
		leader := electiontest.First(t, all...)
		p := proxies[leader.Candidate]
		p.Blackhole()
		_ = leader.Ended(t)
		began := time.Now()
		electiontest.Until(t, "another one leads", func() bool {
			for _, c := range all {
				if c.Elector.Status().Leading {
					return true
				}
			}
			return false
		})
		if took := time.Since(began); took > duration+interval {
			t.Errorf("nobody led for %v, want at most %v", took, duration+interval)
		}
		p.Heal()
		lost[leader.Candidate]++
	}
	if len(lost) < 2 {
		t.Errorf("only %d of three ever led", len(lost))
	}
	for _, c := range all { // each of them still can
		for _, other := range all {
			if other != c {
				proxies[other].Blackhole()
			}
		}
		electiontest.Until(t, c.Elector.Status().Identity+" leads when the others cannot", func() bool {
			return c.Elector.Status().Leading
		})
		for _, p := range proxies {
			p.Heal()
		}
	}
}

// R094
func TestClosedConnectionsNeverCostTheLease(t *testing.T) {
	t.Parallel()
	a := open(t)
	c, p := a.behindProxy(t, "pod-a")
	term := c.Lead(t)
	for range 12 {
		p.Cut()
		p.Heal()
		electiontest.Quiet(t, 300*time.Millisecond, c)
	}
	if err := term.Lease.Check(); err != nil {
		t.Errorf("Check = %v, want the term to go on", err)
	}
}

func TestLostAndHangingAnswersOfRenewalsCostNothing(t *testing.T) {
	t.Parallel()
	faults := map[string]faultproxy.Fault{
		"one renewal hangs":                 faultproxy.Hang().Times(1),
		"one answer hangs":                  faultproxy.HangAnswer().Times(1),
		"one answer is lost":                faultproxy.DropAnswer().Times(1),
		"two answers in a row are lost":     faultproxy.DropAnswer().Times(2),
		"every answer to a renewal is lost": faultproxy.DropAnswer(),
		"one renewal breaks":                faultproxy.Reset().Times(1),
		"two renewals get an error":         faultproxy.Status(500, 0).Times(2),
		"one is told to come back later":    faultproxy.Status(429, time.Second).Times(1),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			c, p := a.behindProxy(t, "pod-a")
			term := c.Lead(t)
			renewed(t, c)
			p.Inject(fault, writes)
			electiontest.Quiet(t, 2*duration, c)
			if err := term.Lease.Check(); err != nil {
				t.Errorf("Check = %v, want the term to go on", err)
			}
		})
	}
}

func TestALeaseThatDisappearsEndsTheTerm(t *testing.T) {
	t.Parallel()
	a := open(t)
	c := a.candidate(t, "pod-a")
	term := c.Lead(t)
	kubetest.DeleteLease(t, a.admin, a.ns, leaseName)
	if err := term.Ended(t); !errors.Is(err, election.ErrMissing) {
		t.Errorf("the term ended with %v, want ErrMissing", err)
	}
	kubetest.Lease(t, a.admin, a.ns, leaseName, nil)
	c.Lead(t)
}

func TestTheTermIsWrittenToTheLeaseAtOnce(t *testing.T) {
	t.Parallel()
	a := open(t)
	opts := a.options(t, "pod-a", a.cfg)
	opts.Duration, opts.RenewDeadline = time.Minute, 0 // the next renewal is far away
	term := a.Start(t, elector(t, opts)).Lead(t)
	term.Lease.SetTerm(12)
	set := time.Now()
	electiontest.Until(t, "the annotation", func() bool { return a.lease(t).Annotations[election.TermAnnotation] == "12" })
	if took := time.Since(set); took > soon {
		t.Errorf("the annotation came after %v, want it at once", took)
	}
}

// R096
func TestAfterAllKindsOfErrorsSomeoneLeadsAgain(t *testing.T) {
	t.Parallel()
	a := open(t)
	p := faultproxy.Start(t, a.cfg)
	var all []*electiontest.Candidate
	for _, pod := range []string{"pod-a", "pod-b", "pod-c"} {
		all = append(all, a.Start(t, elector(t, a.options(t, pod, p.Config()))))
	}
	faults := []faultproxy.Fault{
		faultproxy.Status(500, 0), faultproxy.Status(429, time.Second), faultproxy.Status(403, 0), faultproxy.Status(410, 0),
		faultproxy.Hang(), faultproxy.HangAnswer(), faultproxy.Reset(), faultproxy.DropAnswer(), faultproxy.Delay(300 * time.Millisecond),
	}
	verbs := []string{"get", "update", "list", "watch"}
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	wait := time.NewTimer(0)
	for range 60 {
		<-wait.C
		fault := faults[random.IntN(len(faults))].Times(1 + random.IntN(3))
		p.Inject(fault, faultproxy.Verb(verbs[random.IntN(len(verbs))]))
		if random.IntN(10) == 0 {
			p.Cut()
			p.Heal() // all connections end, and what hangs too
		}
		wait.Reset(150 * time.Millisecond)
	}
	p.Heal()
	healed := time.Now()
	electiontest.Until(t, "one of them leads", func() bool {
		return slices.ContainsFunc(all, func(c *electiontest.Candidate) bool { return c.Elector.Status().Leading })
	})
	if took := time.Since(healed); took > duration+interval {
		t.Errorf("it took %v from the end of the errors to a leader, want at most %v", took, duration+interval)
	}
}

// Whoever replaces all objects of an app replaces the Lease too. Those who have seen its term do not forget
// it, and write it into the new one at once, for those who have not.
func TestANewLeaseObjectGetsTheTermThatTheOldOneHad(t *testing.T) {
	t.Parallel()
	a := open(t)
	c := a.candidate(t, "pod-a")
	c.Lead(t).Lease.SetTerm(12)
	electiontest.Until(t, "the annotation", func() bool { return a.lease(t).Annotations[election.TermAnnotation] == "12" })
	follower := a.candidate(t, "pod-b")
	electiontest.Until(t, "the follower has seen it", func() bool { return follower.Elector.Status().Term == 12 })
	c.Stop(t)
	term := follower.Lead(t)
	kubetest.DeleteLease(t, a.admin, a.ns, leaseName)
	_ = term.Ended(t)
	kubetest.Lease(t, a.admin, a.ns, leaseName, nil)
	if got := follower.Lead(t).Lease.AnnotatedTerm(); got != 12 {
		t.Errorf("AnnotatedTerm under the new object = %d, want 12", got)
	}
	electiontest.Until(t, "the annotation of the new object", func() bool { return a.lease(t).Annotations[election.TermAnnotation] == "12" })
}
