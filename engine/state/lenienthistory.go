package state

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/leasecron/leasecron/engine/run"
)

// maxUnreadable bounds the unreadable records that the history keeps of one job.
const maxUnreadable = 20

// UnmarshalJSON reads what is kept of a job, in which records may be unreadable: they are set aside, and
// tried again each time. It never fails, so that no record costs the others.
func (j *JobHistory) UnmarshalJSON(text []byte) error {
	type plain JobHistory // without this method
	*j = JobHistory{}
	if strictly(text, (*plain)(j)) == nil && j.readable() {
		return nil
	}
	*j = JobHistory{}
	var latest Latest
	if decodes(text, &latest) {
		j.Latest = latest
	}
	var lists struct {
		Runs       []json.RawMessage `json:"runs"`
		Skips      []json.RawMessage `json:"skips"`
		Unreadable []json.RawMessage `json:"unreadable"`
	}
	if !decodes(text, &lists) {
		j.Unreadable = []json.RawMessage{slices.Clone(text)}
		return nil
	}
	j.Runs, j.Skips = emptied[run.Run](lists.Runs), emptied[run.Skip](lists.Skips)
	j.Unreadable = emptied[json.RawMessage](lists.Unreadable)
	for _, raw := range slices.Concat(lists.Runs, lists.Skips, lists.Unreadable) {
		if r, ok := run.ReadRun(raw); ok {
			j.Runs = append(j.Runs, r)
		} else if s, ok := readSkip(raw); ok {
			j.Skips = append(j.Skips, s)
		} else {
			j.Unreadable = append(j.Unreadable, raw)
		}
	}
	j.Unreadable = j.Unreadable[:min(len(j.Unreadable), maxUnreadable)]
	return nil
}

func decodes(text []byte, into any) bool { return json.Unmarshal(text, into) == nil }

func (j *JobHistory) readable() bool {
	return len(j.Unreadable) == 0 &&
		!slices.ContainsFunc(j.Runs, func(r run.Run) bool { return !r.Valid() }) &&
		!slices.ContainsFunc(j.Skips, func(s run.Skip) bool { return !validSkip(&s) })
}

// Stored is what to encode of the history: itself, or what has the members of runs that only a newer
// program knows.
func (h *History) Stored() any {
	odd := false
	jobs := make(map[string]any, len(h.Jobs))
	for name, j := range h.Jobs {
		jobs[name] = j
		if j == nil || !extra(j.Runs) {
			continue
		}
		odd = true
		type plain JobHistory
		jobs[name] = struct {
			*plain
			Runs []any `json:"runs,omitzero"`
		}{(*plain)(j), storedRuns(j.Runs)}
	}
	if !odd {
		return h
	}
	type plain History
	return struct {
		*plain
		Jobs map[string]any `json:"jobs,omitempty"`
	}{(*plain)(h), jobs}
}

// Odd says where the history has records that cannot be read.
func (h *History) Odd() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(h.Jobs)) {
		if j := h.Jobs[name]; j != nil && len(j.Unreadable) > 0 {
			out = append(out, "ended record of job "+clip(name)+` under "unreadable"`)
		}
	}
	return out
}
