package electionbench_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// queueJobs make runs that wait for a slot: a new leader has something to send at once.
const queueJobs = `
jobs:
- {name: a, path: /work, schedule: rate 1s, overlap: parallel, historyLimit: 5}
- {name: b, path: /work, schedule: rate 1s, overlap: parallel, historyLimit: 5}
- {name: c, path: /work, schedule: rate 1s, overlap: parallel, historyLimit: 5}
`

// What a graceful hand-over may take, beside four writes of the ledger for the median.
const (
	handOverExtra = 20 * time.Millisecond
	handOverMost  = 500 * time.Millisecond
)

// queue is a cluster of three sidecars, each of which has one slot. While it is held up, the apps do
// not answer: one run occupies the leader's slot and others wait in the ledger.
type queue struct {
	cluster *cluster.Cluster
	all     []*cluster.Sidecar
	started int
	hold    atomic.Bool
}

func (q *queue) start(t *testing.T, a *app.App, lease time.Duration) {
	t.Helper()
	q.started++
	settings := q.cluster.Settings(a, fmt.Sprintf("shop-%d", q.started))
	settings["LEASE_DURATION"], settings["MAX_CONCURRENT_RUNS"] = lease.String(), "1"
	q.all = append(q.all, cluster.Start(t, a, settings))
}

func (q *queue) app(t *testing.T) *app.App {
	t.Helper()
	a := cluster.StartApp(t)
	a.Script("/work", func(a *app.App, w http.ResponseWriter, r *http.Request) {
		for q.hold.Load() && r.Context().Err() == nil {
			time.Sleep(2 * time.Millisecond)
		}
		app.Status(http.StatusOK)(a, w, r)
	})
	return a
}

// held waits until the app of the leader holds up a run, and another one waits behind it for the slot.
func (q *queue) held(t *testing.T, leader *cluster.Sidecar) {
	t.Helper()
	since := time.Now()
	q.hold.Store(true)
	cluster.Eventually(t, time.Minute, "a run that waits for a slot", func() bool {
		came := cluster.Arrivals("", leader.App)
		if len(came) == 0 || came[len(came)-1].At.Before(since) {
			return false
		}
		d, err := q.cluster.Documents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(d.Ledger.Runs, func(r run.Run) bool { return r.State == run.StateQueued })
	})
}

// handOver stops the leader of three sidecars as Kubernetes does, again and again, each time with a
// run that waits to be sent: it arrives from the next leader.
func handOver(t *testing.T, table *table) {
	t.Helper()
	s := sizes()
	q := &queue{cluster: cluster.New(t, controlplane.Shared(t), queueJobs)}
	probe := newLedgerProbe(t)
	for range 3 {
		q.start(t, q.app(t), s.lease)
	}
	var won, tookOver, arrived, signal durations
	for trial := range s.handOvers {
		leader := cluster.Leader(t, time.Minute, q.all)
		q.held(t, leader)
		probe.write(t, 5)

		signaled := time.Now()
		if err := leader.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		q.all = slices.DeleteFunc(q.all, func(x *cluster.Sidecar) bool { return x == leader })
		var next cluster.Arrival
		cluster.Eventually(t, time.Minute, "a callback of the next leader", func() bool {
			for _, a := range cluster.Arrivals("", q.all[0].App, q.all[1].App) {
				if a.At.After(signaled) {
					next = a
					return true
				}
			}
			return false
		})
		q.hold.Store(false)
		successor := q.all[slices.IndexFunc(q.all, func(x *cluster.Sidecar) bool { return x.App == next.App })]
		began := logged(t, leader, "term ended")
		won = append(won, logged(t, successor, "term won").Sub(began))
		tookOver = append(tookOver, logged(t, successor, "took over").Sub(began))
		arrived = append(arrived, next.At.Sub(began))
		signal = append(signal, began.Sub(signaled))
		if arrived[trial] > handOverMost {
			t.Logf("a slow hand-over, the old leader:\n%s\nthe next:\n%s", leader.Log(), successor.Log())
		}
		if code := leader.Wait(t, time.Minute); code != 0 {
			t.Errorf("exit code %d after SIGTERM, want 0", code)
		}
		say("hand-over %d of %d: the Lease was won after %s, the next leader could send after %s, its callback arrived after %s",
			trial+1, s.handOvers, ms(won[trial]), ms(tookOver[trial]), ms(arrived[trial]))
		q.start(t, leader.App, s.lease)
	}

	write := probe.took.median()
	most := 4*write + handOverExtra
	table.limit("graceful hand-over to the takeover in the ledger, median", tookOver.median(), most)
	table.limit("graceful hand-over to the takeover in the ledger, max", tookOver.max(), handOverMost)
	table.limit("graceful hand-over to the first callback's arrival, max", arrived.max(), handOverMost)
	table.add(row{0, "a write of the ledger, median / max", probe.took.medianAndMax(), "", ""})
	table.add(row{
		1, fmt.Sprintf("graceful hand-over, %d trials: from the start of the release to the next leader's first possible callback, median / max", s.handOvers),
		tookOver.medianAndMax(), "", ms(most) + " (4 writes + 20 ms) / " + ms(handOverMost),
	})
	table.add(row{1.05, "  to the Lease's next holder", won.medianAndMax(), "", ""})
	table.add(row{1.1, "  to the arrival of its first callback", arrived.medianAndMax(), "", ""})
	table.add(row{1.2, "  from SIGTERM to the start of the release", signal.medianAndMax(), "", ""})
}

// logged is when a process first logged a message.
func logged(t *testing.T, s *cluster.Sidecar, msg string) time.Time {
	t.Helper()
	text, _ := s.WaitLog(t, msg, time.Minute)["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// clientGoHandOver does the same with three of client-go's candidates. They have no ledger: being told
// to lead is what stands for a first possible callback.
func clientGoHandOver(t *testing.T, table *table) {
	t.Helper()
	s := sizes()
	cp := controlplane.Shared(t)
	namespace := cp.Namespace(t)
	var all []*rival
	for i := range 3 {
		all = append(all, startRival(t, cp.AdminConfig(), namespace, "rivals", fmt.Sprintf("rival-%d", i), s))
	}
	leader, _ := firstRival(t, time.Minute, all...)
	var took durations
	for trial := range s.handOvers {
		released := time.Now()
		leader.stop()
		all = slices.DeleteFunc(all, func(r *rival) bool { return r == leader })
		next, at := firstRival(t, time.Minute, all...)
		took = append(took, at.Sub(released))
		if (trial+1)%10 == 0 {
			say("client-go, hand-over %d of %d: %s", trial+1, s.handOvers, ms(took[trial]))
		}
		all = append(all, startRival(t, cp.AdminConfig(), namespace, "rivals", fmt.Sprintf("rival-%d", trial+3), s))
		leader = next
	}
	table.clientGo(1, took.medianAndMax())
}

// ledgerProbe writes a ledger of its own as a leader does, to tell what a write takes meanwhile.
type ledgerProbe struct {
	port ledger.Port[state.Ledger]
	took durations
}

func newLedgerProbe(t *testing.T) *ledgerProbe {
	t.Helper()
	c := cluster.New(t, controlplane.Shared(t), "jobs: []\n")
	client, err := kube.New(c.Access, "probe")
	if err != nil {
		t.Fatal(err)
	}
	store, err := ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: c.Namespace, App: cluster.AppName})
	if err != nil {
		t.Fatal(err)
	}
	p := &ledgerProbe{port: ledger.NewPort[state.Ledger](store, ledger.NameLedger)}
	p.write(t, 3) // connects
	p.took = nil
	return p
}

// write writes now and then, as a leader does, not in a row.
func (p *ledgerProbe) write(t *testing.T, n int) {
	t.Helper()
	for range n {
		wait(30 * time.Millisecond)
		began := time.Now()
		if _, err := p.port.Swap(context.WithoutCancel(t.Context()), func(l *state.Ledger) error {
			l.Term++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p.took = append(p.took, time.Since(began))
	}
}
