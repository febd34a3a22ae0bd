package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leasecron/leasecron/engine/run"
)

// UnmarshalJSON reads a ledger in which single records may be unreadable, as ones that a newer or broken
// program wrote: such a record is kept as it is and spoils its own job at most, never the takeover. What
// was set aside before is tried again, since it may have been repaired, or this be the newer program.
func (l *Ledger) UnmarshalJSON(text []byte) error {
	type plain Ledger // without this method
	*l = Ledger{}
	if strictly(text, (*plain)(l)) == nil && l.readable() {
		return nil // nearly always, at half the price
	}
	lenient := struct {
		*plain
		Runs            []json.RawMessage          `json:"runs"`
		Finished        []json.RawMessage          `json:"finished"`
		Skipped         []json.RawMessage          `json:"skipped"`
		Triggers        map[string]json.RawMessage `json:"triggers"`
		Unreadable      []json.RawMessage          `json:"unreadable"`
		UnreadableEnded []json.RawMessage          `json:"unreadableEnded"`
	}{plain: (*plain)(l)}
	*l = Ledger{}
	if err := json.Unmarshal(text, &lenient); err != nil {
		return err
	}
	l.Runs, l.Unreadable = emptied[run.Run](lenient.Runs), emptied[json.RawMessage](lenient.Unreadable)
	l.Finished, l.Skipped = emptied[run.Run](lenient.Finished), emptied[run.Skip](lenient.Skipped)
	l.UnreadableEnded = emptied[json.RawMessage](lenient.UnreadableEnded)
	for _, raw := range slices.Concat(lenient.Runs, lenient.Unreadable) {
		if r, ok := run.ReadRun(raw); ok && !r.State.Ended() {
			l.Runs = append(l.Runs, r)
		} else {
			l.Unreadable = append(l.Unreadable, raw)
		}
	}
	for _, raw := range slices.Concat(lenient.Finished, lenient.Skipped, lenient.UnreadableEnded) {
		if r, ok := run.ReadRun(raw); ok {
			l.Finished = append(l.Finished, r)
		} else if s, ok := readSkip(raw); ok {
			l.Skipped = append(l.Skipped, s)
		} else {
			l.UnreadableEnded = append(l.UnreadableEnded, raw)
		}
	}
	for name, raw := range lenient.Triggers {
		var key run.Key
		var t Trigger
		if key.UnmarshalText([]byte(name)) != nil || json.Unmarshal(raw, &t) != nil {
			l.OddTriggers = append(l.OddTriggers, name)
			continue
		}
		l.SetTrigger(key, t)
	}
	return nil
}

// emptied is the empty list in place of one that is stored.
func emptied[T any](stored []json.RawMessage) []T {
	if stored == nil {
		return nil
	}
	return []T{}
}

// strictly decodes what this program knows all of.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// readable reports whether all records that were decoded mean something.
func (l *Ledger) readable() bool {
	if len(l.Unreadable)+len(l.UnreadableEnded) > 0 {
		return false
	}
	for i := range l.Runs {
		if !l.Runs[i].Valid() || l.Runs[i].State.Ended() {
			return false
		}
	}
	for i := range l.Finished {
		if !l.Finished[i].Valid() {
			return false
		}
	}
	for i := range l.Skipped {
		if !validSkip(&l.Skipped[i]) {
			return false
		}
	}
	for _, t := range l.Triggers {
		if t.Idle() {
			return false
		}
	}
	return true
}

func readSkip(raw []byte) (s run.Skip, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil && validSkip(&s)
}

func validSkip(s *run.Skip) bool { return s.Occurrence != "" && s.Key.Job != "" }

// Stored is what to encode of the ledger: itself, or what has the members of runs that only a newer program
// knows.
func (l *Ledger) Stored() any {
	if !extra(l.Runs) && !extra(l.Finished) {
		return l
	}
	type plain Ledger
	return struct {
		*plain
		Runs     []any `json:"runs,omitzero"`
		Finished []any `json:"finished,omitzero"`
	}{(*plain)(l), storedRuns(l.Runs), storedRuns(l.Finished)}
}

// storedRuns is what to encode of runs.
func storedRuns(runs []run.Run) []any {
	if runs == nil {
		return nil
	}
	out := make([]any, 0, len(runs))
	for i := range runs {
		out = append(out, runs[i].Stored())
	}
	return out
}

// extra reports whether a run has members that only a newer program knows.
func extra(runs []run.Run) bool {
	return slices.ContainsFunc(runs, func(r run.Run) bool { return len(r.Extra) > 0 })
}

// Spoiled names the jobs of which a record cannot be read that says what they have in flight or how far they
// are decided. Their triggers stand still until somebody has repaired or removed the record. Records of
// what has ended spoil nothing.
func (l *Ledger) Spoiled() map[string]bool {
	if len(l.Unreadable)+len(l.OddTriggers) == 0 {
		return nil
	}
	jobs := make(map[string]bool)
	for _, name := range l.OddTriggers {
		job, _, _ := strings.Cut(name, "/")
		jobs[job] = true
	}
	for _, raw := range l.Unreadable {
		if job := jobOf(raw); job != "" {
			jobs[job] = true
		}
	}
	return jobs
}

// jobOf is the job that an unreadable record names; empty where not even that can be read.
func jobOf(raw json.RawMessage) string {
	var record struct {
		Key json.RawMessage `json:"key"`
	}
	var name string
	var key run.Key
	if json.Unmarshal(raw, &record) == nil && json.Unmarshal(record.Key, &name) == nil && key.UnmarshalText([]byte(name)) == nil {
		return key.Job
	}
	return ""
}

// Odd says where the ledger has records that cannot be read, in words for a person.
func (l *Ledger) Odd() []string {
	var out []string
	for _, name := range l.OddTriggers {
		out = append(out, "trigger "+clip(name))
	}
	for _, raw := range l.Unreadable {
		out = append(out, "run of "+oddJob(raw)+` under "unreadable"`)
	}
	for _, raw := range l.UnreadableEnded {
		out = append(out, "ended record of "+oddJob(raw)+` under "unreadableEnded"`)
	}
	return out
}

func oddJob(raw json.RawMessage) string {
	if job := jobOf(raw); job != "" {
		return "job " + job
	}
	return "a job that it does not name"
}

// clip keeps a name that may be anything to what fits in a line.
func clip(name string) string { return run.OneLine(name, 80) }
