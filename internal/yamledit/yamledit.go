// Package yamledit changes single values of a YAML document and leaves every other byte of it as it is: comments,
// blank lines, quotes, the order of keys.
//
// It finds its way by indentation, guided by what the document is known to hold, and then reads its own result. Whatever
// it does not understand, such as anchors or a mapping in braces that has to grow, makes it give up rather than guess.
package yamledit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Apply returns text, which holds the tree before, so changed that it holds after. Both are trees of JSON values.
// False says that it could not: then text has to be written anew from after.
//
// Items of lists are told apart by their "name" or "mountPath", objects by kind and name, scalars by their value.
func Apply(text []byte, before, after any) ([]byte, bool) {
	e := editor{crlf: bytes.Contains(text, []byte("\r\n"))}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\r\n", "\n")) {
		e.lines = append(e.lines, strings.TrimSuffix(line, "\n"))
	}
	b, isMap := asMap(before)
	a, stays := asMap(after)
	if !isMap || !stays {
		return nil, false
	}
	first := e.next(0, len(e.lines))
	if first < 0 || !e.mapping(block{from: first, to: len(e.lines), column: indent(e.lines[first])}, b, a) {
		return nil, false
	}
	out := e.apply()
	if !holds(out, after) {
		return nil, false
	}
	return out, true
}

// holds reports whether text is after, read as kubectl reads it.
func holds(text []byte, after any) bool {
	read, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(read))
	d.UseNumber()
	var got any
	if d.Decode(&got) != nil {
		return false
	}
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(after)
	return err1 == nil && err2 == nil && bytes.Equal(g, w)
}

// editor gathers changes to lines and makes them at once, so that line numbers stay what they are meanwhile.
type editor struct {
	lines []string
	crlf  bool
	edits []edit
}

// edit replaces the lines [from, to) by others; an empty range inserts.
type edit struct {
	from, to int
	lines    []string
}

func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return a.from - b.from })
	var out []string
	at := 0
	for _, d := range e.edits {
		if d.from > at {
			out = append(out, e.lines[at:d.from]...)
		}
		out = append(out, d.lines...)
		at = max(at, d.to)
	}
	out = append(out, e.lines[at:]...)
	end := "\n"
	if e.crlf {
		end = "\r\n"
	}
	return []byte(strings.Join(out, end) + end)
}

// block is where a mapping or a list is: its lines [from, to), and the column of its keys or dashes. The first line may
// begin with the dash of the list that it is an item of.
type block struct{ from, to, column int }

// mapping changes the entries of a block mapping.
func (e *editor) mapping(b block, before, after map[string]any) bool {
	entries, ok := e.entries(b, before)
	if !ok {
		return false
	}
	last := b.from
	for _, key := range sortedKeys(before) {
		at := entries[key]
		last = max(last, at.to)
		value, stays := after[key]
		switch {
		case !stays:
			if e.lines[at.from][:b.column] != strings.Repeat(" ", b.column) {
				return false // it carries the dash of its item
			}
			e.edits = append(e.edits, edit{at.from, at.to, nil})
		case reflect.DeepEqual(before[key], value):
		case !e.value(at, key, before[key], value):
			return false
		}
	}
	added := make(map[string]any)
	for key, value := range after {
		if _, had := before[key]; !had {
			added[key] = value
		}
	}
	if len(added) > 0 {
		e.edits = append(e.edits, edit{last, last, render(added, b.column)})
	}
	return true
}

// entries finds the lines of each key.
func (e *editor) entries(b block, known map[string]any) (map[string]block, bool) {
	found := make(map[string]block, len(known))
	for i := b.from; i < b.to; i++ {
		line := e.lines[i]
		if len(line) <= b.column || blank(line) || i > b.from && indent(line) != b.column {
			continue
		}
		for key := range known {
			if _, ok := cutKey(line[b.column:], key); !ok {
				continue
			}
			if _, twice := found[key]; twice {
				return nil, false
			}
			found[key] = block{from: i, to: e.end(i, b.to, b.column, true), column: b.column}
			break
		}
	}
	return found, len(found) == len(known)
}

// value changes what is behind a key.
func (e *editor) value(at block, key string, before, after any) bool {
	line := e.lines[at.from]
	rest, _ := cutKey(line[at.column:], key)
	inner := e.next(at.from+1, at.to)
	if behind := strings.TrimSpace(rest); inner >= 0 && (behind == "" || strings.HasPrefix(behind, "#")) {
		b := block{from: inner, to: at.to, column: indent(e.lines[inner])}
		switch was := before.(type) {
		case map[string]any:
			if is, ok := after.(map[string]any); ok && len(is) > 0 && e.mapping(b, was, is) {
				return true
			}
			return false
		case []any:
			is, ok := after.([]any)
			if !ok || len(is) == 0 {
				return false
			}
			if e.list(b, was, is) {
				return true
			}
		}
	}
	done, ok := replaceScalar(line, rest, before, after)
	if !ok {
		done, ok = growBraces(line, rest, before, after)
	}
	if ok && at.to == at.from+1 {
		e.edits = append(e.edits, edit{at.from, at.to, []string{done}})
		return true
	}
	lines := render(map[string]any{key: after}, at.column)
	lines[0] = line[:at.column] + lines[0][at.column:] // the dash, if there is one
	e.edits = append(e.edits, edit{at.from, at.to, lines})
	return true
}

// list changes a block list whose items keep their order.
func (e *editor) list(b block, before, after []any) bool {
	starts := e.items(b)
	if len(starts) != len(before) {
		return false
	}
	position := make(map[string]int, len(after))
	for i, item := range after {
		id := identity(item)
		if _, twice := position[id]; twice {
			return false
		}
		position[id] = i
	}
	undo := len(e.edits)
	place, done := b.from, 0 // where the next new item goes, and how many of after are in the text
	insert := func(until int) {
		for ; done < until; done++ {
			e.edits = append(e.edits, edit{place, place, renderItem(after[done], b.column)})
		}
	}
	for i, item := range before {
		at := block{from: starts[i], to: e.end(starts[i], b.to, b.column, false), column: b.column}
		p, stays := position[identity(item)]
		switch {
		case !stays:
			e.edits = append(e.edits, edit{at.from, at.to, nil})
		case p < done:
			e.edits = e.edits[:undo]
			return false // moved: the list is written anew
		default:
			insert(p)
			if !reflect.DeepEqual(item, after[p]) && !e.item(at, item, after[p]) {
				return false
			}
			done = p + 1
		}
		place = at.to
	}
	insert(len(after))
	return true
}

func (e *editor) items(b block) []int {
	var starts []int
	for i := b.from; i < b.to; i++ {
		if line := e.lines[i]; indent(line) == b.column && dash(line[b.column:]) {
			starts = append(starts, i)
		}
	}
	return starts
}

// item changes one item of a list.
func (e *editor) item(at block, before, after any) bool {
	was, isMap := before.(map[string]any)
	is, stays := after.(map[string]any)
	if isMap && stays {
		body := e.lines[at.from][at.column+1:]
		first, column := at.from, at.column+1+indent(body)
		if blank(body) {
			first = e.next(at.from+1, at.to)
			if first < 0 {
				return false
			}
			column = indent(e.lines[first])
		}
		if !strings.HasPrefix(strings.TrimSpace(body), "{") {
			return e.mapping(block{first, at.to, column}, was, is)
		}
	}
	e.edits = append(e.edits, edit{at.from, at.to, renderItem(after, at.column)})
	return true
}

// end is where the entry or item that begins at a line ends: behind all that is indented more, and before the comments and
// blank lines that belong to what follows.
func (e *editor) end(from, limit, column int, entry bool) int {
	end := from + 1
	for i := from + 1; i < limit; i++ {
		line := e.lines[i]
		switch in := indent(line); {
		case strings.TrimSpace(line) == "":
		case in > column, entry && in == column && dash(line[in:]):
			end = i + 1
		case comment(line):
		default:
			return end
		}
	}
	return end
}

// next is the first line of [from, to) with content, -1 if there is none.
func (e *editor) next(from, to int) int {
	for i := from; i < to; i++ {
		if !blank(e.lines[i]) {
			return i
		}
	}
	return -1
}
