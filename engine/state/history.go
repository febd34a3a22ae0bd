package state

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// MaxHistoryRuns bounds the runs of all jobs together, MaxHistorySkips their skipped ranges; the oldest go
// first.
const (
	MaxHistoryRuns  = 2_000
	MaxHistorySkips = 2_000
)

// maxSkips bounds the skipped ranges that are kept of one job.
const maxSkips = 50

// History holds what has ended, bounded per job and in all.
type History struct {
	Jobs map[string]*JobHistory `json:"jobs,omitempty"`
}

// JobHistory is what is kept of one job.
type JobHistory struct {
	Latest
	Runs  []run.Run  `json:"runs,omitzero"`  // newest ScheduledAt first
	Skips []run.Skip `json:"skips,omitzero"` // newest ScheduledAt first
	// Unreadable are records that this program cannot make sense of, kept as they are; at most
	// maxUnreadable of them.
	Unreadable []json.RawMessage `json:"unreadable,omitzero"`
}

// Add upserts runs and skips by their IDs and trims to limit(job) runs of each job. Adding
// the same things again changes nothing, so a flush that is repeated loses and doubles nothing.
func (h *History) Add(runs []run.Run, skips []run.Skip, limit func(job string) int) {
	touched := make(map[string]bool)
	for _, r := range runs {
		j := h.job(r.Key.Job)
		touched[r.Key.Job] = true
		j.Note(r)
		r.Data = nil // the request body is not history's to keep
		if i := slices.IndexFunc(j.Runs, func(have run.Run) bool { return have.ID == r.ID }); i >= 0 {
			// A flush that is stored late knows nothing of what was noted meanwhile.
			if have := &j.Runs[i]; !have.Noted() || r.Noted() {
				*have = r
			}
			continue
		}
		j.Runs = append(j.Runs, r)
	}
	// After the runs, which tell whether skips are in a row; the older ones first, so that they can be.
	skips = slices.Clone(skips)
	slices.SortStableFunc(skips, func(a, b run.Skip) int { return a.ScheduledAt.Compare(b.ScheduledAt) })
	for _, s := range skips {
		touched[s.Key.Job] = true
		h.job(s.Key.Job).addSkip(s)
	}
	for name := range touched {
		j := h.Jobs[name]
		slices.SortFunc(j.Runs, NewestFirst)
		slices.SortFunc(j.Skips, newestSkipFirst)
		j.Runs = cut(j.Runs, max(limit(name), 1))
		j.Skips = cut(j.Skips, maxSkips)
	}
	h.trim()
}

// cut drops what comes after the first n, and the reference to it.
func cut[T any](records []T, n int) []T {
	if len(records) <= n {
		return records
	}
	return slices.Delete(records, n, len(records))
}

// trim drops the oldest runs and skips of all while there are too many.
func (h *History) trim() {
	runs, skips := 0, 0
	for _, j := range h.Jobs {
		if j != nil {
			runs, skips = runs+len(j.Runs), skips+len(j.Skips)
		}
	}
	if runs <= MaxHistoryRuns && skips <= MaxHistorySkips {
		return
	}
	drop := make(map[record]bool)
	for _, r := range h.oldestFirst(func(string) bool { return false }, func(any) int { return 0 }) {
		switch {
		case !r.skip && runs > MaxHistoryRuns:
			runs--
		case r.skip && skips > MaxHistorySkips:
			skips--
		default:
			continue
		}
		drop[r.record] = true
	}
	h.drop(drop)
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

// newest is when the youngest record of the job was made; zero: there is none.
func (j *JobHistory) newest() time.Time {
	at := later(later(j.LastStart, j.LastSuccess), j.LastFailure)
	for i := range j.Runs {
		at = later(at, j.Runs[i].EndedAt)
	}
	for i := range j.Skips {
		at = later(at, j.Skips[i].DecidedAt)
	}
	return at
}

// NewestFirst orders runs by instant, then attempt, then ID, the newest first.
func NewestFirst(a, b run.Run) int {
	return cmp.Or(b.ScheduledAt.Compare(a.ScheduledAt), cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(b.ID, a.ID))
}

func newestSkipFirst(a, b run.Skip) int {
	return cmp.Or(b.ScheduledAt.Compare(a.ScheduledAt), cmp.Compare(b.Occurrence, a.Occurrence), cmp.Compare(b.Reason, a.Reason))
}
