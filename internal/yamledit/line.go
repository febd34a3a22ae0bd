package yamledit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func comment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// blank lines hold nothing that counts.
func blank(line string) bool { return strings.TrimSpace(line) == "" || comment(line) }

func dash(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

// cutKey returns what follows a key at the beginning of a line.
func cutKey(line, key string) (rest string, ok bool) {
	for _, form := range []string{key, `"` + key + `"`, "'" + key + "'"} {
		if rest, ok = strings.CutPrefix(line, form+":"); ok && (rest == "" || rest[0] == ' ') {
			return rest, true
		}
	}
	return "", false
}

// replaceScalar changes a scalar on one line and keeps the comment behind it.
func replaceScalar(line, rest string, before, after any) (string, bool) {
	old := strings.TrimLeft(rest, " ")
	prefix := line[:len(line)-len(old)]
	if len(rest) == len(old) || !scalar(before) || !scalar(after) || strings.ContainsAny(old[:min(1, len(old))], "|>&*!{[") {
		return "", false
	}
	end := len(old)
	if quote := old[:min(1, len(old))]; quote == `"` || quote == "'" {
		closing := strings.LastIndex(old, quote)
		if i := strings.Index(old[1:], quote); i >= 0 && i+1 != closing {
			return "", false // a quote inside, or one in a comment
		}
		end = closing + 1
	} else if value, _, commented := strings.Cut(old, " #"); commented {
		end = len(strings.TrimRight(value, " "))
	}
	if end <= 0 {
		return "", false
	}
	text := strings.TrimRight(marshal(after), "\n")
	if strings.Contains(text, "\n") {
		return "", false
	}
	return prefix + text + old[end:], true
}

// growBraces adds scalars to a mapping in braces on one line.
func growBraces(line, rest string, before, after any) (string, bool) {
	was, isMap := asMap(before)
	is, stays := asMap(after)
	closing := strings.LastIndex(rest, "}")
	if value, _, commented := strings.Cut(rest, " #"); commented {
		closing = strings.LastIndex(value, "}")
	}
	if !isMap || !stays || closing < 0 || !strings.HasPrefix(strings.TrimSpace(rest), "{") {
		return "", false
	}
	for key, value := range was {
		if now, ok := is[key]; !ok || !reflect.DeepEqual(value, now) {
			return "", false
		}
	}
	inside := strings.TrimRight(rest[:closing], " ")
	for _, key := range sortedKeys(is) {
		if _, had := was[key]; had {
			continue
		}
		text, err := json.Marshal(is[key])
		if plain := strings.TrimSpace(marshal(is[key])); scalar(is[key]) && !strings.ContainsAny(plain, ",[]{}\n") {
			text = []byte(plain)
		}
		if err != nil || !scalar(is[key]) {
			return "", false
		}
		if !strings.HasSuffix(inside, "{") {
			inside += ", "
		}
		inside += key + ": " + string(text)
	}
	padding := rest[len(strings.TrimRight(rest[:closing], " ")):closing]
	return line[:len(line)-len(rest)] + inside + padding + rest[closing:], true
}

func scalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// identity tells items of a list apart.
func identity(item any) string {
	if m, ok := item.(map[string]any); ok {
		for _, key := range []string{"name", "mountPath"} {
			if id, ok := m[key].(string); ok {
				return key + " " + id
			}
		}
		if meta, ok := asMap(m["metadata"]); ok { // an object in a List
			return fmt.Sprint(m["kind"], " ", meta["namespace"], " ", meta["name"])
		}
	}
	text, err := json.Marshal(item)
	if err != nil {
		return fmt.Sprint(item)
	}
	return string(text)
}

// render writes a tree as lines, indented.
func render(value any, column int) []string {
	var out []string
	for line := range strings.Lines(marshal(value)) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" {
			line = strings.Repeat(" ", column) + line
		}
		out = append(out, line)
	}
	return out
}

func renderItem(value any, column int) []string { return render([]any{value}, column) }

func marshal(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return "" // which then does not hold what it should
	}
	return string(text)
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func asMap(value any) (map[string]any, bool) {
	m, ok := value.(map[string]any)
	return m, ok
}
