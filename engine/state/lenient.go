package state

import (
	"encoding/json"
	"strings"

	"github.com/leasecron/leasecron/engine/run"
)

// UnmarshalJSON reads a ledger in which single records may be unreadable, as one that a newer or
// broken program wrote: such a record is kept as it is and spoils its own job alone, never the
// takeover.
func (l *Ledger) UnmarshalJSON(text []byte) error {
	type plain Ledger // without this method
	*l = Ledger{}
	if err := json.Unmarshal(text, (*plain)(l)); err == nil && l.readable() {
		return nil // nearly always, at half the price
	}
	lenient := struct {
		*plain
		Runs     []json.RawMessage          `json:"runs"`
		Triggers map[string]json.RawMessage `json:"triggers"`
	}{plain: (*plain)(l)}
	*l = Ledger{}
	if err := json.Unmarshal(text, &lenient); err != nil {
		return err
	}
	for _, raw := range lenient.Runs {
		var r run.Run
		if err := json.Unmarshal(raw, &r); err != nil || r.ID == "" {
			l.Unreadable = append(l.Unreadable, raw)
			continue
		}
		l.Runs = append(l.Runs, r)
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

// readable reports whether all records that were decoded mean something.
func (l *Ledger) readable() bool {
	for i := range l.Runs {
		if l.Runs[i].ID == "" {
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

// Spoiled names the jobs of which a record cannot be read. Their triggers stand still until
// somebody has repaired or removed the record.
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
		var record struct {
			Key json.RawMessage `json:"key"`
		}
		var name string
		var key run.Key
		if json.Unmarshal(raw, &record) == nil && json.Unmarshal(record.Key, &name) == nil && key.UnmarshalText([]byte(name)) == nil {
			jobs[key.Job] = true
		}
	}
	return jobs
}
