package yamledit_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/leasecron/leasecron/internal/yamledit"
)

func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	read, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	d := json.NewDecoder(bytes.NewReader(read))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestApply(t *testing.T) {
	tests := map[string]struct{ before, after, want string }{
		"nothing to do": {
			"# c\na: 1 # one\n\nb: [x,  y]\n", "a: 1\nb: [x, y]\n", "# c\na: 1 # one\n\nb: [x,  y]\n",
		},
		"a scalar keeps its comment":  {"a: 'x' # why\nb: 2\n", "a: z\nb: 2\n", "a: z # why\nb: 2\n"},
		"a quoted hash is no comment": {"a: 'x # y'\n", "a: z\n", "a: z\n"},
		"a new key goes before the comments of what follows": {
			"a:\n  b: 1\n  # last words\n\n# of c\nc: 3\n", "a: {b: 1, d: 2}\nc: 3\n",
			"a:\n  b: 1\n  d: 2\n  # last words\n\n# of c\nc: 3\n",
		},
		"a literal block is left alone": {
			"a: |\n  # not a comment\n  b: 2\nc: 1\n", "a: \"# not a comment\\nb: 2\\n\"\nc: 2\n", "a: |\n  # not a comment\n  b: 2\nc: 2\n",
		},
		"a list at the column of its key": {
			"l:\n- name: a # first\n  v: 1\n- name: b\nz: 1\n", "l: [{name: a, v: 2}, {name: b}, {name: c}]\nz: 1\n",
			"l:\n- name: a # first\n  v: 2\n- name: b\n- name: c\nz: 1\n",
		},
		"an indented list, changed in the middle": {
			"l:\n  # about a\n  - name: a\n  # about b\n  - name: b\n    v: 1\n  - name: d\n", "l: [{name: a}, {name: b, v: 1, w: [1]}, {name: c}, {name: d}]\n",
			"l:\n  # about a\n  - name: a\n  # about b\n  - name: b\n    v: 1\n    w:\n    - 1\n  - name: c\n  - name: d\n",
		},
		"an item before all others": {"l:\n  - x\n  - y\n", "l: [w, x, y]\n", "l:\n  - w\n  - x\n  - y\n"},
		"an item less":              {"l:\n  - x\n  - y # yes\n  - z\n", "l: [x, z]\n", "l:\n  - x\n  - z\n"},
		"a key less":                {"a: 1\nb:\n  c: 2\nd: 3\n", "a: 1\nd: 3\n", "a: 1\nd: 3\n"},
		"braces grow":               {"a: { b: 1 } # in braces\n", "a: {b: 1, c: x}\n", "a: { b: 1, c: x } # in braces\n"},
		"braces that hold nothing":  {"a: {}\nz: 1\n", "a: {b: c}\nz: 1\n", "a: {b: c}\nz: 1\n"},
		"braces that change":        {"a: {b: {c: 1}} # lost\nz: 1 # kept\n", "a: {b: {c: 2}}\nz: 1\n", "a:\n  b:\n    c: 2\nz: 1 # kept\n"},
		"the first key of an item":  {"l:\n  - v: 1\n    name: a\n", "l: [{name: a, v: [2]}]\n", "l:\n  - v:\n    - 2\n    name: a\n"},
		"a dash alone":              {"l:\n  -\n    name: a\n", "l: [{name: a, v: 1}]\n", "l:\n  -\n    name: a\n    v: 1\n"},
		"moved items":               {"l:\n  - name: a\n  - name: b\n", "l: [{name: b}, {name: a}]\n", "l:\n- name: b\n- name: a\n"},
		"quoted keys":               {"\"a\": 1\n'b':\n  c: 1\n", "a: 2\nb: {c: 1, d: 2}\n", "\"a\": 2\n'b':\n  c: 1\n  d: 2\n"},
		"no line end at the end":    {"a: 1\nb: 2", "a: 1\nb: 3\n", "a: 1\nb: 3\n"},
		"line ends of Windows":      {"a: 1 # x\r\nb:\r\n  c: 1\r\n", "a: 1\nb: {c: 1, d: 2}\n", "a: 1 # x\r\nb:\r\n  c: 1\r\n  d: 2\r\n"},
		"null becomes something":    {"a:\nb: 1\n", "a: {c: 1}\nb: 1\n", "a:\n  c: 1\nb: 1\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := yamledit.Apply([]byte(tt.before), tree(t, tt.before), tree(t, tt.after))
			if !ok {
				t.Fatalf("gave up on\n%s", tt.before)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What it does not understand it leaves to others.
func TestApplyGivesUp(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"JSON":                   {`{"a": {"b": 1}}`, "a: {b: 2}"},
		"an anchor that is used": {"a: &x {b: 1}\nc: *x\n", "a: {b: 2}\nc: {b: 1}"},
		"a merge key":            {"a: &x\n  b: 1\nc:\n  <<: *x\n", "a: {b: 1}\nc: {b: 2}"},
		"a key over two lines":   {"? a\n: 1\n", "a: 2"},
	} {
		if got, ok := yamledit.Apply([]byte(tt.before), tree(t, tt.before), tree(t, tt.after)); ok {
			t.Errorf("%s: made\n%s", name, got)
		}
	}
}

// Whatever is changed: the result holds it, or there is none. A document as this program writes it is always changed in
// place, and lines that say nothing of what is changed stay.
func TestApplyHoldsWhatItShould(t *testing.T) {
	scalar := rapid.Custom(func(t *rapid.T) any {
		return rapid.OneOf(
			rapid.Just[any](true), rapid.Just[any](json.Number("12")),
			rapid.Map(rapid.SampledFrom([]string{"x", "", "a: b", "- c", "# d", "1", "yes", "x\ny: z\n", "'", `"`, "{", "~", "é"}), func(s string) any { return s }),
		).Draw(t, "scalar")
	})
	var value func(depth int) *rapid.Generator[any]
	mapping := func(depth int) *rapid.Generator[map[string]any] {
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "name", "e f"}), value(depth), 1, 4)
	}
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(
			scalar,
			rapid.Map(mapping(depth-1), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(value(depth-1), 1, 3), func(l []any) any { return l }),
		)
	}
	rapid.Check(t, func(t *rapid.T) {
		before, after := mapping(3).Draw(t, "before"), mapping(3).Draw(t, "after")
		for key, v := range before {
			if rapid.Bool().Draw(t, "keep "+key) {
				after[key] = v
			}
		}
		text, err := yaml.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		const note = "# a note\n"
		noted := append([]byte(note), text...)
		got, ok := yamledit.Apply(noted, before, after)
		if !ok {
			t.Skip("gave up") // which is allowed for a few draws: rapid fails where too few are left
		}
		if !strings.HasPrefix(string(got), note) {
			t.Fatalf("the note is gone from\n%s", got)
		}
		var is map[string]any
		read, err := yaml.YAMLToJSONStrict(got)
		if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		d := json.NewDecoder(bytes.NewReader(read))
		d.UseNumber()
		if err := d.Decode(&is); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after, is); diff != "" {
			t.Fatalf("-want +got:\n%s\nfrom\n%s\nto\n%s", diff, noted, got)
		}
	})
}
