package state

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// record names a run or a skip in the history.
type record struct {
	job  string
	skip bool
	id   string // of a skip: with its reason
}

func skipRecord(job string, s *run.Skip) record {
	return record{job, true, s.Occurrence + "/" + string(s.Reason)}
}

// aged is a record with what decides when it goes.
type aged struct {
	record
	at    time.Time // when it ended or was decided
	gone  bool      // its job has left
	bytes int       // of it as JSON
}

// oldestFirst lists all records in the order in which they are dropped: those of jobs that have left, as
// gone says, before all others. Equal histories have equal orders.
func (h *History) oldestFirst(gone func(job string) bool, size func(v any) int) []aged {
	var all []aged
	for name, j := range h.Jobs {
		if j == nil {
			continue
		}
		left := gone(name)
		for i := range j.Runs {
			r := &j.Runs[i]
			all = append(all, aged{record{name, false, r.ID}, r.EndedAt, left, size(r)})
		}
		for i := range j.Skips {
			s := &j.Skips[i]
			all = append(all, aged{skipRecord(name, s), s.DecidedAt, left, size(s)})
		}
	}
	slices.SortFunc(all, func(a, b aged) int {
		if a.gone != b.gone {
			if a.gone {
				return -1
			}
			return 1
		}
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.job, b.job), cmp.Compare(a.id, b.id))
	})
	return all
}

// Shrink drops records until those that are left take at most that many percent of the bytes that all take
// now, the records of jobs that have left first, then the oldest; where a job has left, its latest times
// go with its last record. How much room that makes in the store is for the store to say: it may compress.
func (h *History) Shrink(percent int, gone func(job string) bool) {
	all := h.oldestFirst(gone, sizeOf)
	left := 0
	for i := range all {
		left += all[i].bytes
	}
	bound := left * percent / 100
	drop := make(map[record]bool)
	for i := 0; i < len(all) && left > bound; i++ {
		drop[all[i].record] = true
		left -= all[i].bytes
	}
	h.drop(drop)
	for name, j := range h.Jobs {
		if j == nil || (gone(name) && len(j.Runs)+len(j.Skips) == 0) {
			delete(h.Jobs, name)
		}
	}
}

// SizeOf is how many bytes runs and skips take as JSON.
func SizeOf(runs []run.Run, skips []run.Skip) int {
	n := 0
	for i := range runs {
		n += sizeOf(&runs[i])
	}
	for i := range skips {
		n += sizeOf(&skips[i])
	}
	return n
}

func sizeOf(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0 // it could not be stored either
	}
	return len(text)
}

// drop removes records.
func (h *History) drop(records map[record]bool) {
	for name, j := range h.Jobs {
		if j == nil {
			continue
		}
		j.Runs = slices.DeleteFunc(j.Runs, func(r run.Run) bool { return records[record{name, false, r.ID}] })
		j.Skips = slices.DeleteFunc(j.Skips, func(s run.Skip) bool {
			return records[skipRecord(name, &s)]
		})
	}
}

// Forget drops all that is kept of jobs that known does not know any more and of which nothing was
// recorded since before.
func (h *History) Forget(known func(job string) bool, before time.Time) {
	for name, j := range h.Jobs {
		if j == nil || (!known(name) && j.newest().Before(before)) {
			delete(h.Jobs, name)
		}
	}
}
