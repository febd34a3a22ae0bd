package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// LargestData is the largest body data of a run in bytes, merged.
const LargestData = 256 << 10

// mostDataLevels bounds the nesting of a run's data, as that of a document: what is stored with
// other things around it must stay readable.
const mostDataLevels = 64

// deeperThan reports whether JSON text is nested deeper than so many levels. It only counts
// brackets outside of strings; whether the text is JSON at all is for others to say.
func deeperThan(text []byte, levels int) bool {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > levels {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// MergeData merges the data of a job, a trigger and a manual request, key by key at the top level,
// the later one winning. Numbers stay digit for digit; keys come out in order, so that equal data
// are equal bytes. Empty arguments count as no keys; where all are empty the answer is nil.
func MergeData(job, trigger, manual json.RawMessage) (json.RawMessage, error) {
	merged := make(map[string]json.RawMessage)
	empty := true
	for _, part := range []json.RawMessage{job, trigger, manual} {
		if len(part) == 0 {
			continue
		}
		if len(part) > LargestData {
			return nil, tooLarge()
		}
		if trimmed := bytes.TrimLeft(part, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
			return nil, errors.New("data is no JSON object")
		}
		if deeperThan(part, mostDataLevels) {
			return nil, fmt.Errorf("data is nested deeper than %d levels", mostDataLevels)
		}
		if err := json.Unmarshal(part, &merged); err != nil {
			return nil, fmt.Errorf("data is no JSON object: %w", err)
		}
		empty = false
	}
	if empty {
		return nil, nil
	}
	out, err := marshalPlain(merged)
	if err != nil {
		return nil, fmt.Errorf("merge data: %w", err)
	}
	if len(out) > LargestData {
		return nil, tooLarge()
	}
	return out, nil
}

// marshalPlain marshals without escaping <, > and &, which an app's log should show as written.
func marshalPlain(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

func tooLarge() error {
	return fmt.Errorf("has more than %d bytes as JSON (want at most that)", LargestData)
}

// dataWriter turns nodes into JSON with sorted keys. It gives up where that grows too large, since
// aliases make a small document large.
type dataWriter struct {
	d   *decoder // is told of values that JSON cannot carry
	out []byte
}

func (w *dataWriter) write(n *node, at place) error {
	if len(w.out) > LargestData {
		return tooLarge()
	}
	switch n.kind {
	case kindNull:
		w.out = append(w.out, "null"...)
	case kindBool, kindNumber:
		w.out = append(w.out, n.text...)
	case kindString:
		if n.badNumber != "" {
			w.d.fail(at, "%s %s", quote(n.text), n.badNumber)
		}
		return w.string(n.text)
	case kindList:
		w.out = append(w.out, '[')
		for i, item := range n.items {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.write(item, at.item(i, item)); err != nil {
				return err
			}
		}
		w.out = append(w.out, ']')
	case kindMap:
		w.out = append(w.out, '{')
		sorted := slices.SortedFunc(slices.Values(n.fields), func(a, b member) int { return strings.Compare(a.key, b.key) })
		for i, m := range sorted {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.string(m.key); err != nil {
				return err
			}
			w.out = append(w.out, ':')
			if err := w.write(m.value, at.child(m)); err != nil {
				return err
			}
		}
		w.out = append(w.out, '}')
	}
	return nil
}

func (w *dataWriter) string(s string) error {
	text, err := marshalPlain(s)
	if err != nil {
		return err
	}
	w.out = append(w.out, text...)
	if len(w.out) > LargestData {
		return tooLarge()
	}
	return nil
}
