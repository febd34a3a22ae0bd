package telemetry

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

var (
	runsDesc = desc("runs_total", "Runs that ended on this sidecar, or whose end it recorded, by outcome.",
		labelJob, labelOutcome)
	missedDesc = desc("missed_triggers_total", "Instants that got no run of their own, by reason.",
		labelJob, labelReason)
)

// jobCounts collects the counters that have a job's name. Two numbers for each label value and
// job take a tenth of what as many counters of a vector would, and a sidecar may know two
// thousand jobs.
type jobCounts struct {
	reasons  []run.Reason
	outcomes []string

	mu      sync.Mutex
	jobs    map[string]*jobCount
	loaded  []string // by this sidecar's definitions
	inForce []string // by those of the cluster, as far as this sidecar has planned by them
	leading bool
}

type jobCount struct {
	runs   []float64 // by outcome
	missed []float64 // by reason
}

func (c *jobCounts) init() {
	c.reasons = run.Reasons()
	for _, s := range outcomes {
		c.outcomes = append(c.outcomes, outcomeLabel(s))
	}
	c.jobs = map[string]*jobCount{}
}

// load takes note of the definitions of a sidecar that may not lead yet: what it counts in its first
// second as the leader is an increase only of series that were scraped before.
func (c *jobCounts) load(jobs []config.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded = names(jobs)
	if !c.leading { // what it knows of the cluster's is old
		c.inForce = nil
	}
	c.set()
}

// force takes note of the jobs that are in force.
func (c *jobCounts) force(jobs []config.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inForce = names(jobs)
	c.set()
}

func (c *jobCounts) lead(leading bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leading = leading
}

// set makes the series of the jobs exist and drops those of all others. It is called with mu held.
func (c *jobCounts) set() {
	next := make(map[string]*jobCount, len(c.loaded))
	for _, name := range slices.Concat(c.loaded, c.inForce) {
		switch {
		case next[name] != nil:
		case c.jobs[name] != nil:
			next[name] = c.jobs[name]
		default:
			next[name] = c.newJob()
		}
	}
	c.jobs = next
}

func names(jobs []config.Job) []string {
	out := make([]string, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].Name
	}
	return out
}

// ended counts a run. One of a job that has left is counted too; its series goes with the
// next change of the job set.
func (c *jobCounts) ended(job string, state run.State) {
	i := slices.Index(outcomes[:], state)
	if i < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.job(job).runs[i]++
}

// missed counts n instants that got no run of their own.
func (c *jobCounts) missed(job string, reason run.Reason, n int) {
	i := slices.Index(c.reasons, reason)
	if i < 0 || n <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.job(job).missed[i] += float64(n)
}

// job is called with mu held.
func (c *jobCounts) job(name string) *jobCount {
	j := c.jobs[name]
	if j == nil {
		j = c.newJob()
		c.jobs[name] = j
	}
	return j
}

func (c *jobCounts) newJob() *jobCount {
	return &jobCount{runs: make([]float64, len(c.outcomes)), missed: make([]float64, len(c.reasons))}
}

// Describe implements [prometheus.Collector].
func (c *jobCounts) Describe(ch chan<- *prometheus.Desc) {
	ch <- runsDesc
	ch <- missedDesc
}

// Collect implements [prometheus.Collector].
func (c *jobCounts) Collect(ch chan<- prometheus.Metric) {
	c.snapshot().send(ch)
}

// snapshot copies the counters out, so that a slow scrape never holds up the engine.
func (c *jobCounts) snapshot() *points {
	outcomes, reasons := make([]*dto.LabelPair, len(c.outcomes)), make([]*dto.LabelPair, len(c.reasons))
	for i, o := range c.outcomes {
		outcomes[i] = pair(labelOutcome, o)
	}
	for i, r := range c.reasons {
		reasons[i] = pair(labelReason, string(r))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := newPoints(len(c.jobs) * (len(outcomes) + len(reasons)))
	for name, j := range c.jobs {
		job := pair(labelJob, name)
		for i, n := range j.runs {
			out.add(runsDesc, true, n, job, outcomes[i])
		}
		for i, n := range j.missed {
			out.add(missedDesc, true, n, job, reasons[i])
		}
	}
	return out
}
