package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
	"github.com/leasecron/leasecron/engine/run"
)

// summary is what a replica tells of the jobs, without the definitions in full.
func summary(t *testing.T, n *node) []string {
	t.Helper()
	jobs, err := n.engine.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, j := range jobs {
		out = append(out, fmt.Sprintf("%s %s next %s first seen %s paused %v last start %s success %s in flight %d",
			j.Job.Name, j.Job.Fingerprint(), j.Next, j.FirstSeen, j.Paused, j.LastStart, j.LastSuccess, j.InFlight))
	}
	return out
}

// R143, R200: every replica tells the same of the jobs, after an edit, a pause and a change of leader.
func TestR143EveryReplicaTellsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		nodes := []*node{start(t, store, "a", &app{}), start(t, store, "b", &app{}), start(t, store, "c", &app{})}
		define := func(jobs ...config.Job) {
			for _, n := range nodes {
				n.engine.Define(jobs)
			}
		}
		same := func(when string, jobs int) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			want := summary(t, nodes[0])
			if len(want) != jobs {
				t.Errorf("%s: %d jobs, want %d", when, len(want), jobs)
			}
			for _, n := range nodes[1:] {
				if diff := cmp.Diff(want, summary(t, n)); diff != "" {
					t.Errorf("%s: replicas differ (-first +other):\n%s", when, diff)
				}
			}
		}
		define(job("tick", "rate 10s"), job("hourly", "rate 1h"))
		if _, err := nodes[1].engine.Jobs(t.Context()); codeOf(err) != run.CodeNoScheduler {
			t.Errorf("before the first leader: %v, want %s", err, run.CodeNoScheduler)
		}
		_, leave := nodes[0].lead()
		time.Sleep(time.Minute)
		same("after a minute", 2)
		define(job("tick", "rate 20s"), job("hourly", "rate 1h"), job("new", "* * * * *"))
		same("after an edit", 3)
		if _, err := nodes[2].engine.Pause(t.Context(), run.Key{Job: "new"}, "maintenance", time.Time{}); err != nil {
			t.Fatal(err)
		}
		same("after a pause", 3)
		leave()
		same("while nobody leads", 3)
		_, leave = nodes[1].lead()
		same("after a change of leader", 3)
		leave()
		for _, n := range nodes {
			n.close()
		}
	})
}

// However many ask a replica that does not lead, it reads each document once a second.
func TestAFollowerReadsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := ledger.NewSharedMemory()
		leader := start(t, shared, "a", &app{})
		leader.engine.Define([]config.Job{job("hourly", "rate 1h")})
		_, leave := leader.lead()
		time.Sleep(time.Second)
		way := ledgertest.NewFaults(shared)
		follower := start(t, way, "b", &app{})
		time.Sleep(time.Second)
		before, _ := way.Asked()
		for range 100 {
			for range 5 {
				go func() {
					if _, err := follower.engine.Jobs(t.Context()); err != nil {
						t.Error(err)
					}
				}()
			}
			time.Sleep(100 * time.Millisecond)
		}
		if after, _ := way.Asked(); after-before > 3*10 {
			t.Errorf("%d reads for 500 questions in 10 seconds, want 3 a second at most", after-before)
		}
		leave()
		leader.close()
		follower.close()
	})
}

// In an outage those who ask together get one answer together: nobody waits for the look of another
// and then for one of its own, and who has no time to wait waits no longer.
func TestThoseWhoAskInAnOutageShareItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := slowReads{ledger.NewSharedMemory(), 5 * time.Second}
		n := start(t, way, "b", &app{})
		const callers = 20
		errs := make(chan error, callers)
		began := time.Now()
		for range callers {
			go func() {
				_, err := n.engine.Jobs(t.Context())
				errs <- err
			}()
		}
		synctest.Wait()
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.engine.Jobs(hurried); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("who has a second: %v after %s, want %v after 1s", err, time.Since(began), context.DeadlineExceeded)
		}
		for range callers {
			if err := <-errs; !errors.Is(err, errNoRoute) {
				t.Errorf("Jobs() = %v, want %v", err, errNoRoute)
			}
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the last answer came after %s, want all of them after 5s", took)
		}
		time.Sleep(lookAgain)
		if _, err := n.engine.Jobs(t.Context()); !errors.Is(err, errNoRoute) || time.Since(began) != 11*time.Second {
			t.Errorf("a second later: %v after %s, want another look", err, time.Since(began))
		}
		n.close()
	})
}

// The look of a caller who gave up is no answer for the others.
func TestALookThatWasGivenUpIsNobodysAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := ledger.NewSharedMemory()
		leader := start(t, shared, "a", &app{})
		leader.engine.Define([]config.Job{job("hourly", "rate 1h")})
		_, leave := leader.lead()
		time.Sleep(time.Second)
		way := ledgertest.NewFaults(shared)
		n := start(t, way, "b", &app{})
		way.Delay(time.Minute)
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.engine.Jobs(hurried); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Jobs() = %v, want %v", err, context.DeadlineExceeded)
		}
		way.Delay(0)
		if jobs, err := n.engine.Jobs(t.Context()); err != nil || len(jobs) != 1 {
			t.Errorf("Jobs() right after it = %d jobs, %v, want 1", len(jobs), err)
		}
		leave()
		leader.close()
		n.close()
	})
}

var errNoRoute = errors.New("no route to host")

const lookAgain = time.Second

// slowReads fails each read, after a while.
type slowReads struct {
	ledger.Store
	after time.Duration
}

func (s slowReads) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	select {
	case <-time.After(s.after):
		return nil, "", errNoRoute
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
}
