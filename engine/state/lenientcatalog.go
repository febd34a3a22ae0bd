package state

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// UnmarshalJSON reads a catalog in which single records may be unreadable. A job's spoils that job alone
// and is left as it is. A pause that cannot be read is one without an end, until somebody resumes; what a
// resume has waived is nothing then.
func (c *Catalog) UnmarshalJSON(text []byte) error {
	type plain Catalog // without this method
	*c = Catalog{}
	if json.Unmarshal(text, (*plain)(c)) == nil {
		return nil // nearly always
	}
	lenient := struct {
		*plain
		Jobs   map[string]json.RawMessage `json:"jobs"`
		Pauses map[string]json.RawMessage `json:"pauses"`
		Skips  map[string]json.RawMessage `json:"skips"`
	}{plain: (*plain)(c)}
	*c = Catalog{}
	if err := json.Unmarshal(text, &lenient); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(lenient.Jobs)) {
		var j *Job
		if json.Unmarshal(lenient.Jobs[name], &j) != nil {
			c.OddJobs = append(c.OddJobs, name)
			continue
		}
		if c.Jobs == nil {
			c.Jobs = make(map[string]*Job)
		}
		c.Jobs[name] = j
	}
	for _, name := range slices.Sorted(maps.Keys(lenient.Pauses)) {
		var p Pause
		if json.Unmarshal(lenient.Pauses[name], &p) != nil {
			p = Pause{Reason: "the record of this pause cannot be read"}
			c.OddPauses = append(c.OddPauses, name)
		}
		if c.Pauses == nil {
			c.Pauses = make(map[string]Pause)
		}
		c.Pauses[name] = p
	}
	for name, raw := range lenient.Skips {
		var until time.Time
		if json.Unmarshal(raw, &until) != nil {
			continue
		}
		if c.Skips == nil {
			c.Skips = make(map[string]time.Time)
		}
		c.Skips[name] = until
	}
	return nil
}

// Odd says where the catalog has records that cannot be read.
func (c *Catalog) Odd() []string {
	var out []string
	for _, name := range c.OddJobs {
		out = append(out, "job "+clip(name))
	}
	for _, name := range c.OddPauses {
		out = append(out, "pause of "+clip(name))
	}
	return out
}
