package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/schedule"
)

// maxEdits bounds the versions of a job, of which the catalog keeps ten, so that it has all of them at the end.
const maxEdits = 8

// jobSet is the document of definitions, which is edited while the cluster runs.
type jobSet struct {
	jobs     []config.Job
	maxEdits int // of one job
	edits    map[string]int
	removed  map[string]bool // names that were removed at some time
}

// began is when a simulation begins; bubbles begin in 2000.
var began = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

func newJobSet(r *rand.Rand) *jobSet {
	s := &jobSet{maxEdits: maxEdits, edits: make(map[string]int), removed: make(map[string]bool)}
	for i := range 2 + r.IntN(5) {
		s.jobs = append(s.jobs, newJob(r, "job-"+strconv.Itoa(i)))
	}
	return s
}

func newJob(r *rand.Rand, name string) config.Job {
	j := config.Job{
		Name: name, Target: "http://127.0.0.1:8080", Path: "/" + name, Method: "POST",
		Timeout:  pick(r, time.Second, 3*time.Second, 10*time.Second, 40*time.Second, 40*time.Second),
		Overlap:  pick(r, config.OverlapSerial, config.OverlapSerial, config.OverlapSkip, config.OverlapParallel, config.OverlapReplace),
		Recovery: pick(r, config.RecoveryNone, config.RecoveryRerun, config.RecoveryRerun, config.RecoveryReview),
		Scope:    config.ScopeCluster, HistoryLimit: 1000,
	}
	if j.Overlap == config.OverlapParallel {
		j.MaxParallel = r.IntN(4)
	}
	if chance(r, 0.6) {
		j.Retry = config.Retry{MaxRetries: 1 + r.IntN(3), Delay: between(r, time.Second, 4*time.Second).Truncate(time.Millisecond), Jitter: pick(r, 0, 0.2)}
		if j.Retry.Delay > 2500*time.Millisecond {
			j.Retry.Backoff, j.Retry.MaxDelay = config.BackoffExponential, 10*time.Second
		}
	}
	if chance(r, 0.15) {
		j.Deadline = 20 * time.Second
	}
	if j.Async = chance(r, 0.3); j.Async && j.Timeout > time.Second {
		j.HeartbeatTimeout = pick(r, 0, 0, time.Second, 2*time.Second)
	}
	for i := range pick(r, 0, 1, 1, 1, 2) {
		j.Triggers = append(j.Triggers, newTrigger(r, fmt.Sprintf("t%d", i)))
	}
	return j
}

func newTrigger(r *rand.Rand, name string) config.Trigger {
	var text string
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		text = fmt.Sprintf("rate %ds", 2+r.IntN(18))
	case 4, 5:
		text = fmt.Sprintf("cron */%d * * * * *", pick(r, 3, 5, 7, 10, 15))
	case 6, 7:
		text = fmt.Sprintf("every %ds", 2+r.IntN(10))
		if chance(r, 0.4) {
			text += fmt.Sprintf(" x%d", 1+r.IntN(6))
		}
	default:
		text = "once " + began.Add(between(r, 5*time.Second, 120*time.Second)).Truncate(time.Millisecond).Format(time.RFC3339Nano)
	}
	if chance(r, 0.15) {
		text += fmt.Sprintf(" jitter=%dms", 100+r.IntN(3000))
	}
	s, err := schedule.Parse(text)
	if err != nil {
		panic(fmt.Sprintf("sim: %q: %v", text, err))
	}
	m := config.Misfire{
		Policy: pick(r, config.MisfireRunOnce, config.MisfireSkip, config.MisfireCatchUp),
		Grace:  pick(r, time.Second, 5*time.Second, 60*time.Second),
	}
	if chance(r, 0.3) {
		m.Window = pick(r, 60*time.Second, 90*time.Second)
	}
	if m.Policy == config.MisfireCatchUp {
		m.Limit = pick(r, 3, 10, 100)
	}
	return config.Trigger{Name: name, Schedule: s, Priority: r.IntN(10), Misfire: m}
}

// edit changes one job and returns what was done.
func (s *jobSet) edit(r *rand.Rand) string {
	s.jobs = slices.Clone(s.jobs)
	i := r.IntN(len(s.jobs))
	j := s.jobs[i]
	if s.edits[j.Name] >= s.maxEdits {
		return "nothing"
	}
	s.edits[j.Name]++
	switch r.IntN(6) {
	case 0, 1:
		j.Paused = !j.Paused
		s.jobs[i] = j
		return fmt.Sprintf("%s: paused=%v", j.Name, j.Paused)
	case 2:
		if len(s.jobs) > 1 {
			s.jobs = slices.Delete(s.jobs, i, i+1)
			s.removed[j.Name] = true
			return j.Name + ": removed"
		}
		fallthrough
	case 3:
		j.Description += "."
		s.jobs[i] = j
		return j.Name + ": described anew"
	default:
		s.jobs[i] = newJob(r, j.Name)
		return j.Name + ": redefined"
	}
}

// calm ends all pauses, so that what stands still stands still for no good reason.
func (s *jobSet) calm() {
	s.jobs = slices.Clone(s.jobs)
	for i := range s.jobs {
		s.jobs[i].Paused = false
	}
}

// describe is a job in one line.
func describe(j config.Job) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: overlap %s %d, recovery %s, timeout %s, retries %d after %s, deadline %s", j.Name, j.Overlap, j.MaxParallel, j.Recovery, j.Timeout, j.Retry.MaxRetries, j.Retry.Delay, j.Deadline)
	if j.Async {
		fmt.Fprintf(&text, ", async, silence %s", j.HeartbeatTimeout)
	}
	for _, t := range j.Triggers {
		fmt.Fprintf(&text, "; %s %q misfire %s grace %s window %s limit %d", t.Name, t.Schedule, t.Misfire.Policy, t.Misfire.Grace, t.Misfire.Window, t.Misfire.Limit)
	}
	return text.String()
}
