package config

import (
	"fmt"
	"regexp"
)

// The bounds of a document, checked before anything is built from it.
const (
	// LargestDocument is the largest jobs document in bytes: what a ConfigMap can carry.
	LargestDocument = 1 << 20

	deepestNesting = 64
	mostKeys       = 1_000   // of one mapping
	mostNodes      = 500_000 // with every alias expanded
)

// kind is what a node is, whatever syntax it was written in.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindMap
)

func (k kind) String() string {
	switch k {
	case kindNull:
		return "nothing"
	case kindBool:
		return "true or false"
	case kindNumber:
		return "a number"
	case kindString:
		return "text"
	case kindList:
		return "a list"
	case kindMap:
		return "a mapping"
	}
	return "nothing"
}

// node is one value of a document with the place where it was written. Aliases share nodes, so a
// node is never changed once it is built.
type node struct {
	kind      kind
	text      string // scalars: the text; numbers exactly as JSON would have them
	line, col int
	items     []*node  // kindList
	fields    []member // kindMap, in the order of the document
	size      int      // how many nodes hang here, itself included, aliases expanded
	// number is the reason why something that looks like a number cannot be one in JSON.
	badNumber string
}

// member is one entry of a mapping.
type member struct {
	key       string
	line, col int // of the key
	value     *node
}

func (n *node) get(key string) (member, bool) {
	for _, m := range n.fields {
		if m.key == key {
			return m, true
		}
	}
	return member{}, false
}

// grow counts the nodes that hang at n.
func (n *node) grow() *node {
	n.size = 1
	for _, item := range n.items {
		n.size += item.size
	}
	for _, m := range n.fields {
		n.size += m.value.size
	}
	return n
}

// builder makes nodes and collects what is wrong with the syntax.
type builder struct {
	file     string
	problems []*FieldError
	unusable bool // the tree has holes: errors about its meaning would mislead
}

func (b *builder) fail(line, col int, format string, args ...any) {
	b.unusable = true
	b.report(line, col, format, args...)
}

func (b *builder) report(line, col int, format string, args ...any) {
	b.problems = append(b.problems, &FieldError{
		File: b.file, Line: max(line, 1), Column: max(col, 1), Err: fmt.Errorf(format, args...),
	})
}

// addMember appends a member unless its key is already there.
func (b *builder) addMember(n *node, seen map[string]int, m member) {
	if first, ok := seen[m.key]; ok {
		b.report(m.line, m.col, "duplicate key %s (first on line %d)", quote(m.key), first)
		return
	}
	seen[m.key] = m.line
	n.fields = append(n.fields, m)
}

var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	looseNumber = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^0x[0-9a-fA-F]+$|^0o[0-7]+$`)
	notFinite   = regexp.MustCompile(`^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)
)

// plainScalar reads an unquoted scalar by the core schema of YAML 1.2: yes, no, on and off are
// text. A number that JSON would write otherwise is text with a reason: rewriting it would break
// the promise that numbers arrive as they were written.
func plainScalar(text string) *node {
	n := &node{kind: kindString, text: text}
	switch text {
	case "", "~", "null", "Null", "NULL":
		return &node{kind: kindNull}
	case "true", "True", "TRUE":
		return &node{kind: kindBool, text: "true"}
	case "false", "False", "FALSE":
		return &node{kind: kindBool, text: "false"}
	}
	switch {
	case jsonNumber.MatchString(text):
		n.kind = kindNumber
	case looseNumber.MatchString(text):
		n.badNumber = "is no number that JSON can carry as it is written (want quotes, or digits such as 10, 0.5 or 1e3)"
	case notFinite.MatchString(text):
		n.badNumber = "is no number that JSON can carry (want quotes, or a finite number)"
	}
	return n
}
