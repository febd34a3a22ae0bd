package engine_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
)

// observed keeps the events of an engine.
type observed struct {
	mu     sync.Mutex
	events []engine.Event
}

func (o *observed) Observe(e engine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

// eventsOf returns the events of one type so far.
func eventsOf[T engine.Event](o *observed) []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []T
	for _, e := range o.events {
		if e, ok := e.(T); ok {
			out = append(out, e)
		}
	}
	return out
}

// empty makes the documents what they are when their objects were deleted and made anew.
func empty(t *testing.T, store ledger.Store, names ...ledger.Name) {
	t.Helper()
	for _, name := range names {
		_, version, err := store.Load(t.Context(), name)
		if err == nil {
			_, err = store.Replace(t.Context(), name, version, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever has led, or has seen a term anywhere, knows that an empty ledger was not always empty: no
// instant is decided again, and the token goes on, although Lease, ledger and catalog are all new.
func TestAllObjectsAreReplacedWhileTheProcessesLive(t *testing.T) {
	tests := map[string]func(n *node){
		"the next leader has led itself": func(*node) {},
		"it has read the ledger":         func(n *node) { _, _ = n.engine.Jobs(n.t.Context()) },
		"it has seen it on the Lease":    func(n *node) { n.annotated = 1 },
	}
	for name, learn := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, a := ledger.NewSharedMemory(), &app{}
				up := job("replay", "cron 0 0 * * * ?")
				up.Triggers[0].Misfire = config.Misfire{Policy: config.MisfireCatchUp, Grace: time.Minute, Limit: 10, Window: 24 * time.Hour}
				jobs := []config.Job{job("daily", "cron 0 0 3 * * ?"), up, job("often", "cron 0 * * * * ?")}
				events := &observed{}
				first, next := start(t, store, "a", a), start(t, store, "b", a, func(o *engine.Options) { o.Observer = events })
				first.engine.Define(jobs)
				next.engine.Define(jobs)
				_, leave := first.lead()
				time.Sleep(30*time.Hour + 5*time.Second)
				learn(next)
				leave()
				before, term := a.Calls(), ledgerOf(t, store).Term
				if name == "the next leader has led itself" {
					_, leave = next.lead()
					time.Sleep(time.Second)
					leave()
					term = ledgerOf(t, store).Term
				}
				empty(t, store, ledger.NameLedger, ledger.NameCatalog, ledger.NameHistory)
				_, leave = next.lead()
				time.Sleep(10 * time.Minute)
				again := 0
				for _, c := range a.Calls()[len(before):] {
					if slices.ContainsFunc(before, func(b call) bool { return b.Run.Occurrence == c.Run.Occurrence }) {
						again++
					}
				}
				if again > 0 {
					t.Errorf("%d occurrences were run once more", again)
				}
				if got := ledgerOf(t, store).Term; got <= term {
					t.Errorf("the term went from %d to %d, want it to grow", term, got)
				}
				if got := len(eventsOf[engine.LedgerGone](events)); got != 1 {
					t.Errorf("the loss of the ledger was told %d times, want once", got)
				}
				if n := len(a.Calls()) - len(before); n < 9 {
					t.Errorf("%d calls within ten minutes of a job for each", n)
				}
				leave()
				first.close()
				next.close()
			})
		})
	}
}

// Who knows of no leader may count the first instants from when it knew the jobs, but not for days.
func TestTheFirstInstantsReachBackMinutesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewSharedMemory(), "a", &app{})
		up := job("replay", "cron 0 * * * * ?")
		up.Triggers[0].Misfire = config.Misfire{Policy: config.MisfireCatchUp, Grace: time.Minute, Limit: 100, Window: 24 * time.Hour}
		n.engine.Define([]config.Job{up})
		time.Sleep(5 * time.Hour)
		_, leave := n.lead()
		time.Sleep(time.Second)
		if calls := n.app.Calls(); len(calls) < 9 || len(calls) > 11 {
			t.Errorf("%d calls after five hours without a leader, want those of the last ten minutes", len(calls))
		}
		leave()
		n.close()
	})
}

// Ledger and Lease are gone together, and so is every process that had seen them: the catalog knows the
// term of each leadership that lasted, not only of those that changed definitions.
func TestTheCatalogKnowsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		for range 3 {
			n := start(t, store, "a", &app{})
			n.engine.Define([]config.Job{job("hourly", "rate 1h")})
			_, leave := n.lead()
			time.Sleep(30 * time.Second)
			leave()
			n.close()
		}
		empty(t, store, ledger.NameLedger)
		n := start(t, store, "b", &app{})
		_, leave := n.lead()
		time.Sleep(time.Second)
		if got := ledgerOf(t, store).Term; got != 4 {
			t.Errorf("the term after three is %d, want 4", got)
		}
		leave()
		n.close()
	})
}
