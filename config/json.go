package config

import (
	"bytes"
	"encoding/json"
	"sort"
	"unicode/utf8"
)

// isJSON reports whether data is JSON. YAML includes nearly all of it, but not tabs between
// tokens or surrogate pairs, so JSON is read as JSON.
func isJSON(data []byte) bool {
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(data)
}

// jsonBuilder makes nodes from the tokens of valid JSON.
type jsonBuilder struct {
	*builder
	data  []byte
	lines []int // offset at which each line starts
	dec   *json.Decoder
}

func (b *builder) parseJSON(data []byte) *node {
	j := &jsonBuilder{builder: b, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	j.dec.UseNumber()
	j.lines = []int{0}
	for i, c := range data {
		if c == '\n' {
			j.lines = append(j.lines, i+1)
		}
	}
	return j.value(0)
}

// place returns where the next token starts.
func (j *jsonBuilder) place() (line, col int) {
	at := int(j.dec.InputOffset())
	for at < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[at]) >= 0 {
		at++
	}
	line = sort.SearchInts(j.lines, at+1)
	return line, utf8.RuneCount(j.data[j.lines[line-1]:at]) + 1
}

func (j *jsonBuilder) value(depth int) *node {
	line, col := j.place()
	n := (&node{}).at(line, col)
	if depth > deepestNesting {
		j.fail(line, col, "is nested too deep (want at most %d levels)", deepestNesting)
		return nil
	}
	tk, err := j.dec.Token()
	if err != nil {
		j.fail(line, col, "%w", err)
		return nil
	}
	switch tk := tk.(type) {
	case bool:
		n.kind, n.text = kindBool, "false"
		if tk {
			n.text = "true"
		}
	case json.Number:
		n.kind, n.text = kindNumber, tk.String()
	case string:
		n.kind, n.text = kindString, tk
	case json.Delim:
		if tk == '[' {
			n.kind = kindList
			for j.dec.More() {
				item := j.value(depth + 1)
				if item == nil {
					return nil
				}
				n.items = append(n.items, item)
			}
		} else {
			n.kind = kindMap
			seen := make(map[string]int)
			for j.dec.More() {
				var m member
				m.line, m.col = j.place()
				key, err := j.dec.Token()
				if err != nil {
					j.fail(m.line, m.col, "%w", err)
					return nil
				}
				m.key, _ = key.(string)
				if m.value = j.value(depth + 1); m.value == nil {
					return nil
				}
				j.addMember(n, seen, m)
			}
		}
		if _, err := j.dec.Token(); err != nil { // the closing bracket
			j.fail(line, col, "%w", err)
			return nil
		}
	}
	return n.grow()
}
