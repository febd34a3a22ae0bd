package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// ReadRun reads a run as it is stored, with what a newer program has written into it beside what this one
// knows. It reports false where it is no run.
func ReadRun(raw []byte) (r Run, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&r) == nil {
		return r, r.Valid()
	}
	r = Run{}
	if json.Unmarshal(raw, &r) != nil || !r.Valid() || json.Unmarshal(raw, &r.Extra) != nil {
		return Run{}, false
	}
	maps.DeleteFunc(r.Extra, func(member string, _ json.RawMessage) bool {
		return slices.ContainsFunc(members(), func(known string) bool { return strings.EqualFold(known, member) })
	})
	if len(r.Extra) == 0 { // it is deeper down
		r.Extra = nil
	}
	return r, true
}

// Valid reports whether a run says which it is, whose, and how it stands in a word of this program.
func (r Run) Valid() bool { return r.ID != "" && r.Key.Job != "" && r.State.Known() }

// Stored is what to encode of a run: itself, or its JSON where that has members which only a newer program
// knows.
func (r Run) Stored() any {
	if len(r.Extra) == 0 {
		return r
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if enc.Encode(r) != nil {
		return r
	}
	out := bytes.TrimSuffix(bytes.TrimSpace(text.Bytes()), []byte("}"))
	for _, member := range slices.Sorted(maps.Keys(r.Extra)) {
		name, err := json.Marshal(member)
		if err != nil {
			return r
		}
		out = append(append(append(append(out, ','), name...), ':'), r.Extra[member]...)
	}
	return json.RawMessage(append(out, '}'))
}

// members are the names of what this program knows of a run.
var members = sync.OnceValue(func() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Run]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
})
