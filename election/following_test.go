package election_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// R095, and the takeover of DESIGN section 6: when the holder's duration is over, not before.
func TestTakeoverComesWhenTheHoldersTimeIsOver(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{1, 3, 5} {
		t.Run(fmt.Sprintf("a holder with %d s", seconds), func(t *testing.T) {
			t.Parallel()
			a := open(t)
			a.patch(t, fmt.Sprintf(`{"spec":{"holderIdentity":"dead_1","leaseDurationSeconds":%d}}`, seconds))
			written := time.Now()
			c, p := a.behindProxy(t, "pod-a")
			took := c.Lead(t).WonAfter(written)
			want := time.Duration(seconds) * time.Second
			// It is seen for the first time when the candidate has started.
			if took < want || took > want+soon {
				t.Errorf("taken over %v after the last renewal, want at %v", took, want)
			}
			t.Logf("taken over %v after the holder's time was over", took-want)
			if n := p.Count(faultproxy.Not(faultproxy.Resource("leases"))); n != 0 {
				t.Errorf("%d requests for other things than the Lease, want none: only the Lease counts", n)
			}
		})
	}
}

// R083
func TestAColdStartWaitsOneLeaseDurationAndSaysWhy(t *testing.T) {
	t.Parallel()
	a := open(t)
	old := time.Now().AddDate(-1, 0, 0).UTC().Format("2006-01-02T15:04:05.000000Z")
	a.patch(t, fmt.Sprintf(`{"spec":{"holderIdentity":"long-gone_1","leaseDurationSeconds":4,"acquireTime":%q,"renewTime":%q,"leaseTransitions":7}}`, old, old))
	began := time.Now()
	c := a.candidate(t, "pod-a")
	electiontest.Until(t, "Status says why it waits", func() bool {
		return strings.Contains(c.Elector.Status().Waiting, "long-gone_1 holds the Lease until it fails to renew it for 4s")
	})
	took := c.Lead(t).WonAfter(began)
	if took < duration || took > duration+soon {
		t.Errorf("leading %v after the start, want after the holder's %v: its times of day prove nothing", took, duration)
	}
	if n := *a.lease(t).Spec.LeaseTransitions; n != 8 {
		t.Errorf("leaseTransitions = %d, want 8", n)
	}
}

// R083, R084: what the holder's clock says is not looked at.
func TestClocksThatAreOffStealNothing(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"10 minutes slow": -10 * time.Minute, "10 minutes fast": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			renew := func() time.Time {
				at := time.Now().Add(off).UTC().Format("2006-01-02T15:04:05.000000Z")
				a.patch(t, fmt.Sprintf(`{"spec":{"holderIdentity":"other_1","leaseDurationSeconds":2,"renewTime":%q}}`, at))
				return time.Now()
			}
			last := renew()
			c := a.candidate(t, "pod-a")
			for range 6 {
				electiontest.Quiet(t, time.Second, c)
				last = renew()
			}
			if took := c.Lead(t).WonAfter(last); took < 2*time.Second-100*time.Millisecond || took > 2*time.Second+soon {
				t.Errorf("taken over %v after the last renewal, want at 2s", took)
			}
		})
	}
}

// observerFunc is a function that is an observer.
type observerFunc func(election.Event)

func (f observerFunc) Observe(event election.Event) { f(event) }

// R082
func TestALeaseOfAnotherWorkloadIsRefused(t *testing.T) {
	t.Parallel()
	for _, label := range []string{election.AppLabel, "app.kubernetes.io/name"} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			a.patch(t, fmt.Sprintf(`{"metadata":{"labels":{%q:"shop"}}}`, label))
			opts := a.options(t, "pod-a", a.cfg)
			var obstructed atomic.Int32
			opts.Observer = observerFunc(func(event election.Event) {
				if e, ok := event.(election.Obstructed); ok && errors.Is(e.Err, election.ErrForeign) {
					obstructed.Add(1)
				}
			})
			c := a.Start(t, elector(t, opts))
			electiontest.Until(t, "Status says so", func() bool {
				return strings.Contains(c.Elector.Status().Waiting, `labelled for "shop", this is "app"`)
			})
			electiontest.Quiet(t, interval, c)
			if obstructed.Load() == 0 {
				t.Error("the observer was not told")
			}
			a.patch(t, fmt.Sprintf(`{"metadata":{"labels":{%q:"app"}}}`, label))
			c.Lead(t)
		})
	}
}

func TestALeaseThatDoesNotExistIsWaitedFor(t *testing.T) {
	t.Parallel()
	a := openWithoutLease(t, leastRole())
	c := a.candidate(t, "pod-a")
	electiontest.Until(t, "Status says so", func() bool {
		return strings.Contains(c.Elector.Status().Waiting, "Lease "+a.ns+"/"+leaseName+": the lease object does not exist")
	})
	kubetest.Lease(t, a.admin, a.ns, leaseName, nil)
	c.Lead(t)
}

func TestFollowersPollWhenTheyCannotWatch(t *testing.T) {
	t.Parallel()
	role := leastRole()
	role.Verbs = []string{"get", "update"}
	a := openWithoutLease(t, role)
	kubetest.Lease(t, a.admin, a.ns, leaseName, nil)
	a.patch(t, `{"spec":{"holderIdentity":"other_1","leaseDurationSeconds":60}}`)
	c, p := a.behindProxy(t, "pod-a")
	electiontest.Until(t, "the holder is found by reading", func() bool { return c.Elector.Status().HolderName() == "other" })
	a.patch(t, `{"spec":{"holderIdentity":""}}`)
	released := time.Now()
	if took := c.Lead(t).WonAfter(released); took > interval+soon {
		t.Errorf("taken %v after the release, want at the next look, within %v", took, interval)
	}
	if n := p.Count(faultproxy.Verb("list", "watch")); n == 0 {
		t.Error("the watch was not even tried")
	}
}

func TestFollowersWatchAgainWhenTheyCan(t *testing.T) {
	t.Parallel()
	a := open(t)
	a.patch(t, `{"spec":{"holderIdentity":"other_1","leaseDurationSeconds":60}}`)
	p := faultproxy.Start(t, a.cfg)
	p.Inject(faultproxy.Status(500, 0), faultproxy.Verb("list", "watch"))
	c := a.Start(t, elector(t, a.options(t, "pod-a", p.Config())))
	p.WaitFor(t, 20*time.Second, 2, faultproxy.Verb("get"))
	p.Heal()
	p.WaitFor(t, 20*time.Second, 1, faultproxy.Verb("watch"))
	p.ResetRequests()
	electiontest.Quiet(t, 3*interval, c)
	if got := p.Requests(); len(got) > 1 {
		t.Errorf("requests while the watch is up: %v, want none", got)
	}
}

// R092
func TestReleaseIsAValidObjectAndKeepsTheCount(t *testing.T) {
	t.Parallel()
	a := open(t)
	for i := range int32(3) {
		c := a.candidate(t, "pod-a")
		c.Lead(t)
		c.Stop(t)
		spec := a.lease(t).Spec
		if *spec.HolderIdentity != "" || *spec.LeaseDurationSeconds != 1 || *spec.LeaseTransitions != i+1 || spec.RenewTime == nil {
			t.Errorf("after release %d: holder %q, duration %d, transitions %d, renewed %v; want nobody, 1, %d, a time",
				i, *spec.HolderIdentity, *spec.LeaseDurationSeconds, *spec.LeaseTransitions, spec.RenewTime, i+1)
		}
	}
}

func TestReleaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	faults := map[string]faultproxy.Fault{
		"its answer is lost":  faultproxy.DropAnswer().Times(1),
		"it hangs":            faultproxy.Hang().Times(1),
		"its answer hangs":    faultproxy.HangAnswer().Times(1),
		"it gets an error":    faultproxy.Status(500, 0).Times(1),
		"its connection ends": faultproxy.Reset().Times(1),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			c, p := a.behindProxy(t, "pod-a")
			c.Lead(t)
			p.Inject(fault, writes)
			c.Stop(t)
			if holder := *a.lease(t).Spec.HolderIdentity; holder != "" {
				t.Errorf("the Lease is held by %q after the hand-over, want nobody", holder)
			}
		})
	}
}

func TestAnAttemptWithoutAnAnswerLeavesNoLeaseBehind(t *testing.T) {
	t.Parallel()
	faults := map[string]faultproxy.Fault{
		"its answer is lost": faultproxy.DropAnswer().Times(1),
		"its answer hangs":   faultproxy.HangAnswer().Times(1),
		"it hangs":           faultproxy.Hang().Times(1),
		"it gets an error":   faultproxy.Status(503, 0).Times(1),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := open(t)
			p := faultproxy.Start(t, a.cfg)
			p.Inject(fault, writes)
			began := time.Now()
			c := a.Start(t, elector(t, a.options(t, "pod-a", p.Config())))
			if took := c.Lead(t).WonAfter(began); took > duration {
				t.Errorf("leading after %v, want before its own lost attempt would have run out", took)
			}
		})
		t.Run(name+" and the process stops", func(t *testing.T) {
			t.Parallel()
			a := open(t)
			p := faultproxy.Start(t, a.cfg)
			p.Inject(fault, writes)
			c := a.Start(t, elector(t, a.options(t, "pod-a", p.Config())))
			p.WaitFor(t, 20*time.Second, 1, writes)
			c.Stop(t)
			if holder := a.lease(t).Spec.HolderIdentity; holder != nil && *holder != "" {
				t.Errorf("the Lease is held by %q after the stop, want nobody", *holder)
			}
		})
	}
}

// Two pods of one name, one after the other or side by side, are two candidates.
func TestPodsOfOneNameAreTwo(t *testing.T) {
	t.Parallel()
	a := open(t)
	one, two := a.candidate(t, "pod-0"), a.candidate(t, "pod-0")
	leader := electiontest.First(t, one, two)
	electiontest.Quiet(t, duration+interval, one, two)
	leader.Stop(t)
	electiontest.Until(t, "the other leads", func() bool {
		return one.Elector.Status().Leading || two.Elector.Status().Leading
	})
}

// R077, R088
func TestManyCandidates(t *testing.T) { //nolint:paralleltest // 50 of them need the machine to themselves
	a := open(t)
	p := faultproxy.Start(t, a.cfg)
	var all []*electiontest.Candidate
	for i := range 50 {
		all = append(all, a.Start(t, elector(t, a.options(t, fmt.Sprintf("pod-%d", i), p.Config()))))
	}
	for range 5 { // the field fails the test if two lead at once
		leader := electiontest.First(t, all...)
		leader.Stop(t)
	}
	leader := electiontest.First(t, all...)
	p.WaitFor(t, 20*time.Second, 50, faultproxy.Verb("watch"))
	renewed(t, leader.Candidate)
	p.ResetRequests()
	electiontest.Quiet(t, 3*interval, all...)
	if n := p.Count(); n > 5 {
		t.Errorf("50 candidates sent %d requests in %v of quiet, want about 3: the leader's renewals", n, 3*interval)
	}
	if !leader.Lease.Valid() {
		t.Error("the leader lost its term")
	}
}

// R088
func TestQuietTimesCostFewRequests(t *testing.T) {
	t.Parallel()
	a := open(t)
	leader, leaderProxy := a.behindProxy(t, "pod-a")
	leader.Lead(t)
	follower, followerProxy := a.behindProxy(t, "pod-b")
	followerProxy.WaitFor(t, 20*time.Second, 1, faultproxy.Verb("watch"))
	leaderProxy.WaitFor(t, 20*time.Second, 1, faultproxy.Verb("watch"))
	electiontest.Quiet(t, interval/2, follower)
	leaderProxy.ResetRequests()
	followerProxy.ResetRequests()
	electiontest.Quiet(t, 5*interval, follower)
	if n := followerProxy.Count(); n != 0 {
		t.Errorf("a follower sent %d requests in %v, want none: %v", n, 5*interval, followerProxy.Requests())
	}
	if n := leaderProxy.Count(); n > 8 {
		t.Errorf("a leader sent %d requests in %v, want one for each renewal", n, 5*interval)
	}
}
