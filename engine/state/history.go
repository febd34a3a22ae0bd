package state

import (
	"cmp"
	"slices"

	"github.com/leasecron/leasecron/engine/run"
)

// MaxHistoryRuns bounds the runs of all jobs together; the oldest go first.
const MaxHistoryRuns = 2_000

// maxSkips bounds the skipped ranges that are kept of one job.
const maxSkips = 50

// History holds what has ended, bounded per job and in all.
type History struct {
	Jobs map[string]*JobHistory `json:"jobs,omitempty"`
}

// JobHistory is what is kept of one job.
type JobHistory struct {
	Latest
	Runs  []run.Run  `json:"runs,omitempty"`  // newest ScheduledAt first
	Skips []run.Skip `json:"skips,omitempty"` // newest first
}

// Add upserts runs and skips by their IDs and trims to limit(job) runs of each job. Adding
// the same things again changes nothing, so a flush that is repeated loses and doubles nothing.
func (h *History) Add(runs []run.Run, skips []run.Skip, limit func(job string) int) {
	touched := make(map[string]bool)
	for _, r := range runs {
		j := h.job(r.Key.Job)
		touched[r.Key.Job] = true
		j.Note(r)
		if i := slices.IndexFunc(j.Runs, func(have run.Run) bool { return have.ID == r.ID }); i >= 0 {
			j.Runs[i] = r
			continue
		}
		r.Data = nil // the request body is not history's to keep
		j.Runs = append(j.Runs, r)
	}
	for _, s := range skips {
		touched[s.Key.Job] = true
		h.job(s.Key.Job).addSkip(s)
	}
	for name := range touched {
		j := h.Jobs[name]
		slices.SortStableFunc(j.Runs, NewestFirst)
		if n := max(limit(name), 1); len(j.Runs) > n {
			j.Runs = slices.Delete(j.Runs, n, len(j.Runs))
		}
	}
	h.trim()
}

// addSkip keeps consecutive skips of one trigger, version and reason as one range.
func (j *JobHistory) addSkip(s run.Skip) {
	for i := range j.Skips {
		have := &j.Skips[i]
		if have.Occurrence == s.Occurrence {
			return
		}
		if have.Key == s.Key && have.Version == s.Version && have.Reason == s.Reason {
			if have.CoveredUntil.IsZero() || have.CoveredUntil.After(s.ScheduledAt) {
				return // already part of the range
			}
			if have.CoveredUntil.Equal(s.ScheduledAt) {
				have.CoveredUntil, have.DecidedAt = s.CoveredUntil, s.DecidedAt
				have.Count += s.Count
				return
			}
		}
	}
	j.Skips = slices.Insert(j.Skips, 0, s)
	if len(j.Skips) > maxSkips {
		j.Skips = slices.Delete(j.Skips, maxSkips, len(j.Skips))
	}
}

// trim drops the oldest runs of all while there are too many.
func (h *History) trim() {
	total := 0
	for _, j := range h.Jobs {
		total += len(j.Runs)
	}
	for ; total > MaxHistoryRuns; total-- {
		var oldest *JobHistory
		for _, j := range h.Jobs {
			if n := len(j.Runs); n > 0 && (oldest == nil || j.Runs[n-1].EndedAt.Before(oldest.Runs[len(oldest.Runs)-1].EndedAt)) {
				oldest = j
			}
		}
		oldest.Runs = oldest.Runs[:len(oldest.Runs)-1]
	}
}

func (h *History) job(name string) *JobHistory {
	if h.Jobs == nil {
		h.Jobs = make(map[string]*JobHistory)
	}
	j := h.Jobs[name]
	if j == nil {
		j = &JobHistory{}
		h.Jobs[name] = j
	}
	return j
}

// NewestFirst orders runs by instant, then attempt, then ID, the newest first.
func NewestFirst(a, b run.Run) int {
	return cmp.Or(b.ScheduledAt.Compare(a.ScheduledAt), cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(b.ID, a.ID))
}
