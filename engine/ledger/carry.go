package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// member is one member of a JSON object, in its place.
type member struct {
	key   string
	value json.RawMessage
}

// identities are the members by which the elements of an array are known again, most telling
// first.
var identities = []string{"id", "name", "occurrence", "key"}

// carry returns want together with what it lost of base without anybody meaning to. The three are
// JSON: base is what is stored, known what this program makes of base when it decodes and encodes
// it, want what is to be stored next. So a member of base that known lacks was not understood and
// is carried over to the same object of want; one that only want lacks was removed on purpose.
//
// The elements of an array are matched where they are unchanged, else by a member that names
// them. What hung on an object or element that is gone in want is gone with it.
func carry(base, known, want json.RawMessage) (out json.RawMessage, carried bool, err error) {
	switch {
	case bytes.Equal(base, known): // all of it was understood, or kept as it is
		return want, false, nil
	case isObject(base) && isObject(want):
		return carryObject(base, known, want)
	case isArray(base) && isArray(known) && isArray(want):
		return carryArray(base, known, want)
	case len(known) > 0 && bytes.Equal(known, want): // what stands in for something unreadable, unchanged
		return base, true, nil
	}
	return want, false, nil
}

func carryObject(base, known, want json.RawMessage) (json.RawMessage, bool, error) {
	b, err := parseObject(base)
	if err != nil {
		return nil, false, err
	}
	w, err := parseObject(want)
	if err != nil {
		return nil, false, err
	}
	var k []member
	if isObject(known) { // else known left it out as empty: all of it is unknown or zero
		if k, err = parseObject(known); err != nil {
			return nil, false, err
		}
	}
	knownIndex, wantIndex := index(k), index(w)
	carried := false
	for _, m := range b {
		i, kept := wantIndex[m.key]
		switch j, understood := knownIndex[m.key]; {
		case kept:
			var was json.RawMessage
			if understood {
				was = k[j].value
			}
			value, changed, err := carry(m.value, was, w[i].value)
			if err != nil {
				return nil, false, err
			}
			w[i].value, carried = value, carried || changed
		case !understood && !spelledOtherwise(m.key, k) && !spelledOtherwise(m.key, w):
			wantIndex[m.key] = len(w)
			w = append(w, m)
			carried = true
		}
	}
	if !carried {
		return want, false, nil
	}
	return formatObject(w), true, nil
}

// spelledOtherwise reports whether one of the members has that key but for upper and lower case.
// Decoding takes such a member for the other, so it is known, and both must not be stored.
func spelledOtherwise(key string, members []member) bool {
	for _, m := range members {
		if strings.EqualFold(m.key, key) {
			return true
		}
	}
	return false
}

func carryArray(base, known, want json.RawMessage) (json.RawMessage, bool, error) {
	var b, k, w []json.RawMessage
	for _, a := range []struct {
		raw  json.RawMessage
		into *[]json.RawMessage
	}{{base, &b}, {known, &k}, {want, &w}} {
		if err := json.Unmarshal(a.raw, a.into); err != nil {
			return nil, false, err
		}
	}
	stored := make(map[int]int, len(k)) // where an element of known is in base
	if len(b) == len(k) {
		for i := range k {
			stored[i] = i
		}
	} else { // some were dropped in decoding: only a name tells which of the others is which
		stored = matchElements(b, k)
	}
	carried := false
	for to, from := range matchElements(k, w) {
		at, known := stored[from]
		if !known {
			continue
		}
		value, changed, err := carry(b[at], k[from], w[to])
		if err != nil {
			return nil, false, err
		}
		w[to], carried = value, carried || changed
	}
	if !carried {
		return want, false, nil
	}
	return formatArray(w), true, nil
}

// matchElements says for elements of want, by index, which element of known each of them was.
func matchElements(known, want []json.RawMessage) map[int]int {
	match := make(map[int]int, len(want))
	unchanged := make(map[string][]int, len(known))
	for i, e := range known {
		unchanged[string(e)] = append(unchanged[string(e)], i)
	}
	taken := make(map[int]bool, len(known))
	for j, e := range want {
		if same := unchanged[string(e)]; len(same) > 0 {
			match[j], taken[same[0]] = same[0], true
			unchanged[string(e)] = same[1:]
		}
	}
	// What is left was changed, or is new: only a name that no other element bears tells.
	from := uniqueIdentities(known, func(i int) bool { return taken[i] })
	to := uniqueIdentities(want, func(j int) bool { _, done := match[j]; return done })
	for id, j := range to {
		if i, ok := from[id]; ok {
			match[j] = i
		}
	}
	return match
}

func uniqueIdentities(elements []json.RawMessage, skip func(int) bool) map[string]int {
	found := make(map[string]int)
	double := make(map[string]bool)
	for i, e := range elements {
		id := identity(e)
		if id == "" || skip(i) {
			continue
		}
		if _, ok := found[id]; ok {
			double[id] = true
		}
		found[id] = i
	}
	for id := range double {
		delete(found, id)
	}
	return found
}

// identity returns what an element is known by, or nothing.
func identity(element json.RawMessage) string {
	if !isObject(element) {
		return ""
	}
	members, err := parseObject(element)
	if err != nil {
		return ""
	}
	at := index(members)
	for _, key := range identities {
		if i, ok := at[key]; ok && !isObject(members[i].value) && !isArray(members[i].value) {
			return key + "=" + string(members[i].value)
		}
	}
	return ""
}

func isObject(raw json.RawMessage) bool { return startsWith(raw, '{') }
func isArray(raw json.RawMessage) bool  { return startsWith(raw, '[') }

func startsWith(raw json.RawMessage, delim byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == delim
}

// parseObject returns the members of a JSON object in their order; of members of one name, the
// last, as decoding does.
func parseObject(raw json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	var members []member
	at := make(map[string]int)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string) // the decoder takes nothing else here
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if i, ok := at[key]; ok {
			members[i].value = value
			continue
		}
		at[key] = len(members)
		members = append(members, member{key, value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows after the JSON object")
	}
	return members, nil
}

func index(members []member) map[string]int {
	at := make(map[string]int, len(members))
	for i, m := range members {
		at[m.key] = i
	}
	return at
}

func formatObject(members []member) json.RawMessage {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		key, _ := encode(m.key) // a string always encodes
		out.Write(key)
		out.WriteByte(':')
		out.Write(m.value)
	}
	out.WriteByte('}')
	return out.Bytes()
}

func formatArray(elements []json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	out.WriteByte('[')
	for i, e := range elements {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(e)
	}
	out.WriteByte(']')
	return out.Bytes()
}

// encode is json.Marshal without the escapes that only matter inside HTML, so that what a
// RawMessage holds stays as it was written.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), nil
}
