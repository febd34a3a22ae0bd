package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// maxViolations bounds what is reported of one run: one broken promise breaks others.
const maxViolations = 20

// checker holds the cluster to its promises. It sees every write as it is stored and every request
// as it reaches the app.
type checker struct {
	world *world

	mu         sync.Mutex
	violations []string

	ledger  *state.Ledger // as stored last
	catalog *state.Catalog
	archive *archive
	jobs    map[version]config.Job

	claims    map[claim]bool       // every claim that was ever stored
	attempts  map[attempt]string   // the run that is that attempt
	ends      map[string]run.State // of each run that has ended
	seen      map[string]run.Run   // every run, as last seen open
	starts    map[attempt]string   // what was sent, and by whom
	outcomes  map[answered]run.Outcome
	tries     map[string]tries // by occurrence
	decisions []decision
	decided   map[string]bool // what is in decisions
	terms     int64           // the greatest term under which something was sent
	model     *model
}

type version struct {
	job    string
	number int
}

type claim struct {
	run, node string
	term      int64
}

type attempt struct {
	occurrence string
	number     int
}

// decision is one occurrence: what became of the instants in [at, until).
type decision struct {
	key       run.Key
	version   int
	at, until time.Time
	count     int
	what      string
}

func newChecker(w *world) *checker {
	return &checker{
		world: w, ledger: &state.Ledger{}, catalog: &state.Catalog{},
		archive: newArchive(), jobs: make(map[version]config.Job),
		claims: make(map[claim]bool), attempts: make(map[attempt]string), ends: make(map[string]run.State),
		seen: make(map[string]run.Run), starts: make(map[attempt]string), outcomes: make(map[answered]run.Outcome), tries: make(map[string]tries),
		decided: make(map[string]bool),
		model:   newModel(w.scenario),
	}
}

// fail notes a violation.
func (c *checker) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(format, args...)
}

func (c *checker) failLocked(format string, args ...any) {
	if len(c.violations) < maxViolations {
		c.violations = append(c.violations, fmt.Sprintf(format, args...))
		c.world.logf("", "VIOLATION "+format, args...)
	}
}

// written is told each write, in the order in which they are stored.
func (c *checker) written(n *node, name ledger.Name, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name {
	case ledger.NameLedger:
		if len(data) > 256<<10 {
			c.failLocked("the ledger has %d bytes", len(data))
		}
		if !strings.Contains(string(data), `"fromTheFuture":{"a":[1,2]}`) {
			c.failLocked("a member of a newer version was lost")
		}
		next := decode[state.Ledger](data)
		c.ledgerWritten(n, c.ledger, next)
		c.ledger = next
	case ledger.NameCatalog:
		c.catalogWritten(n, decode[state.Catalog](data))
	case ledger.NameHistory:
		c.historyWritten(n, decode[state.History](data))
	case ledger.NameLeases, objectLease:
	}
}

// maySend is told that the engine has allowed the start of an attempt, and answers with the
// greatest term under which something was sent before.
func (c *checker) maySend(n *node, a run.Attempt) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.permitted(n, &a.Run, n.wall())
	if a.FencingTerm < c.terms && !c.world.anarchy {
		c.failLocked("%s was allowed to send under term %d after something was sent under %d", n.name, a.FencingTerm, c.terms)
	}
	return c.terms
}

// started is told that the first byte of an attempt is on its way.
func (c *checker) started(n *node, a run.Attempt, asked int64) {
	sent := n.wall()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inTime(n, a, sent)
	r := a.Run
	c.world.tally("starts")
	if a.FencingTerm < c.terms && asked < c.terms {
		c.world.tally("starts: late, by a process that stood still before the send")
	}
	c.terms = max(c.terms, a.FencingTerm)
	key := attempt{r.Occurrence, r.Attempt}
	if by, twice := c.starts[key]; twice {
		c.failLocked("attempt %d of %s at %s is started twice: by %s, and now by %s", r.Attempt, r.Key, r.ScheduledAt, by, n.name)
	}
	c.starts[key] = n.name
	if !c.claims[claim{r.ID, n.name, a.FencingTerm}] {
		c.failLocked("%s sends run %s of %s under term %d, which no write of the ledger gave to it", n.name, r.ID, r.Key, a.FencingTerm)
	}
}

// outcome is told how an attempt ended for the node that was to send it.
func (c *checker) outcome(n *node, a run.Attempt, o run.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[answered{a.Run.ID, n.name}] = o
}

// accepted is told of a manual run that was promised.
func (c *checker) accepted(r run.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[r.ID]; !ok {
		c.failLocked("manual run %s of %s was accepted and never stored", r.ID, r.Key)
	}
}

// waiting lists what waits for a person: names of pauses, and runs that need review.
func (c *checker) waiting() (paused, review []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.ledger.Runs {
		if r := &c.ledger.Runs[i]; r.State == run.StateNeedsReview {
			review = append(review, r.ID)
		}
	}
	return slices.Sorted(maps.Keys(c.catalog.Pauses)), review
}
