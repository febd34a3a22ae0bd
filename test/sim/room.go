package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

// crowd makes of some scenarios one in which an object is as good as full: its bound is scaled down, and
// what fills it comes often. Nothing that is promised elsewhere is excused by that, but records of what
// ended may have to go.
func (s *scenario) crowd(r *rand.Rand) {
	if !chance(r, 0.1) {
		return
	}
	s.room = make(map[ledger.Name]int)
	often := func(n int, what string, do func(r *rand.Rand) func(*world)) {
		for range n {
			s.events = append(s.events, event{at: between(r, time.Second, s.trouble), what: what, do: do(r)})
		}
	}
	switch r.IntN(3) {
	case 0: // many jobs that are edited all the time
		for len(s.jobs.jobs) < 8 {
			s.jobs.jobs = append(s.jobs.jobs, newJob(r, "more-"+string(rune('a'+len(s.jobs.jobs)))))
		}
		s.jobs.maxEdits = 100
		s.room[ledger.NameCatalog] = 16<<10 + r.IntN(16<<10)
		often(20+r.IntN(40), "edit where the catalog is nearly full", func(r *rand.Rand) func(*world) {
			change := r.Uint64()
			return func(w *world) { w.edit(change) }
		})
	case 1: // large messages
		s.room[ledger.NameHistory] = 12<<10 + r.IntN(16<<10)
		s.wordy = 200 + r.IntN(800)
	default: // many runs asked for by hand, in a crowd
		s.room[ledger.NameLedger] = 24<<10 + r.IntN(16<<10)
		s.wordy = r.IntN(200)
		at := between(r, time.Second, s.trouble)
		for range 40 + r.IntN(60) {
			slot, job, number := r.IntN(s.slots), r.IntN(100), r.IntN(1e6)
			s.events = append(s.events, event{
				at: at + between(r, 0, 10*time.Second), what: "manual run where the ledger is nearly full",
				do: func(w *world) { w.enqueue(slot, job, number) },
			})
		}
	}
}

// bound is how many bytes an object may have.
func (s *scenario) bound(name ledger.Name) int {
	if n := s.room[name]; n > 0 {
		return n
	}
	if name == objectLease {
		return ledger.NameLeases.MaxBytes()
	}
	return name.MaxBytes()
}

// tight reports whether records of what ended may have to go for want of room.
func (s *scenario) tight() bool {
	return s.room[ledger.NameHistory] > 0 || s.room[ledger.NameLedger] > 0
}

// words are what an app says in a scenario where it says much.
func (s *scenario) words(said string) string {
	if s.wordy == 0 {
		return said
	}
	return said + strings.Repeat(".", s.wordy)
}

// sized notes how large an object has become.
func (w *world) sized(name ledger.Name, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := string(name)
	if len(w.room) > 0 {
		what += ", scaled down"
	}
	w.peak[what] = max(w.peak[what], bytes)
}
