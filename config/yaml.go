package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/leasecron/leasecron/engine/run"
)

// parseTree reads YAML or JSON. Where the node is nil, the problems say why; where it is not, they
// are duplicate keys, of which it has the first.
func parseTree(file string, data []byte) (*node, []*FieldError) {
	b := &builder{file: file}
	if len(data) > LargestDocument {
		b.fail(1, 1, "document has %d bytes (want at most %d)", len(data), LargestDocument)
		return nil, b.problems
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if line, col, ok := invalidText(data); ok {
		b.fail(line, col, "is not UTF-8 text without control characters (want UTF-8)")
		return nil, b.problems
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n")) // a line break to YAML, however old
	var root *node
	if isJSON(data) {
		root = b.parseJSON(data)
	} else {
		root = b.parseYAML(string(data))
	}
	if b.unusable {
		return nil, b.problems
	}
	return root, b.problems
}

// invalidText finds the first byte that is not UTF-8, or a control character that no text holds.
func invalidText(data []byte) (line, col int, found bool) {
	line, col = 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return line, col, true
		}
		col++
		if r == '\n' {
			line, col = line+1, 1
		}
		i += size
	}
	return 0, 0, false
}

func (b *builder) parseYAML(text string) (root *node) {
	// The YAML library has panicked on broken input before. A document can come from anyone who
	// may write a ConfigMap, and must not take the process down.
	defer func() {
		if p := recover(); p != nil {
			b.fail(1, 1, "is no YAML that can be read (%v)", p)
			root = nil
		}
	}()
	tokens := lexer.Tokenize(text)
	if tk, err := outOfBounds(tokens); err != nil {
		b.fail(tk.Position.Line, tk.Position.Column, "%w", err)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		b.syntaxError(text, err)
		return nil
	}
	var docs []*ast.DocumentNode
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); doc.Body != nil && !directive {
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 {
		return plainScalar("").at(1, 1).grow()
	}
	if len(docs) > 1 {
		line, col := startOf(docs[1].Body)
		b.fail(line, col, "a second document starts here (want one)")
		return nil
	}
	y := &yamlBuilder{builder: b, text: text, anchors: make(map[string]*node)}
	return y.build(docs[0].Body, 0)
}

func (b *builder) syntaxError(text string, err error) {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil {
		b.unreadable(text, syntax.Token.Position.Line, syntax.Token.Position.Column, errors.New(strings.ReplaceAll(syntax.Message, "\n", " ")))
		return
	}
	b.fail(1, 1, "%w", err)
}

// unreadable says what YAML makes nothing of at a place, or which quotes are missing there.
func (b *builder) unreadable(text string, line, col int, err error) {
	if len(b.problems) < mostErrors { // the wrong file: to look through all of it would take minutes
		if atLine, atCol, cause := brokenCron(text, line, col); cause != nil {
			line, col, err = atLine, atCol, cause
		}
	}
	b.fail(line, col, "%w", err)
}

// outOfBounds returns the token at which the document nests deeper, or puts more keys into one
// mapping, than the library's parser can take: it recurses for each level and for each key, in
// time that grows with the square of the keys.
//
// A level of a block is a column further right than the ones before it. That counts a little too
// much, so block levels get three times the limit here; the exact limit applies when nodes are
// built.
func outOfBounds(tokens token.Tokens) (*token.Token, error) {
	type level struct{ column, keys int }
	var blocks []level
	var flows []int // keys of each open bracket
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flows = append(flows, 0)
		case token.MappingEndType, token.SequenceEndType:
			flows = flows[:max(len(flows)-1, 0)]
		case token.CommentType, token.SpaceType:
			continue
		default:
		}
		keys := 0
		if len(flows) == 0 {
			for len(blocks) > 0 && blocks[len(blocks)-1].column > tk.Position.Column {
				blocks = blocks[:len(blocks)-1]
			}
			if len(blocks) == 0 || blocks[len(blocks)-1].column < tk.Position.Column {
				blocks = append(blocks, level{column: tk.Position.Column})
			}
			// The colon is a level of its own, right of its key's.
			if tk.Type == token.MappingValueType && len(blocks) > 1 {
				blocks[len(blocks)-2].keys++
				keys = blocks[len(blocks)-2].keys
			}
			if tk.Type == token.SequenceEntryType {
				blocks[len(blocks)-1].keys = 0
			}
		} else if tk.Type == token.MappingValueType {
			flows[len(flows)-1]++
			keys = flows[len(flows)-1]
		}
		switch {
		case len(flows) > deepestNesting || len(blocks) > 3*deepestNesting:
			return tk, fmt.Errorf("is nested too deep (want at most %d levels)", deepestNesting)
		case keys > mostKeys:
			return tk, fmt.Errorf("is one key too many for a mapping (want at most %d)", mostKeys)
		}
	}
	return nil, nil
}

// yamlBuilder makes nodes from the syntax tree.
type yamlBuilder struct {
	*builder
	text      string
	anchors   map[string]*node
	overgrown bool
}

func (n *node) at(line, col int) *node {
	n.line, n.col = line, col
	return n
}

// startOf is where a value begins. A block mapping's own token is its first colon, but it begins
// with its first key.
func startOf(in ast.Node) (line, col int) {
	tk := in.GetToken()
	switch in := in.(type) {
	case *ast.MappingNode:
		if !in.IsFlowStyle && len(in.Values) > 0 {
			tk = in.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		tk = in.Key.GetToken()
	}
	if tk == nil || tk.Position == nil {
		return 1, 1
	}
	return tk.Position.Line, tk.Position.Column
}

func (y *yamlBuilder) build(in ast.Node, depth int) *node {
	n := y.buildAt(in, depth)
	if n.size > mostNodes {
		// Once is enough: what holds this node would report it again.
		if !y.overgrown {
			y.fail(n.line, n.col, "holds more than %d values (an alias counts as all that it stands for)", mostNodes)
		}
		y.overgrown = true
		return (&node{}).at(n.line, n.col).grow()
	}
	return n
}

func (y *yamlBuilder) buildAt(in ast.Node, depth int) *node {
	if in == nil {
		return (&node{}).at(1, 1).grow()
	}
	line, col := startOf(in)
	if depth > deepestNesting {
		y.fail(line, col, "is nested too deep (want at most %d levels)", deepestNesting)
		return (&node{}).at(line, col).grow()
	}
	switch in := in.(type) {
	case *ast.MappingNode:
		return y.mapping(in.Values, line, col, depth)
	case *ast.MappingValueNode:
		return y.mapping([]*ast.MappingValueNode{in}, line, col, depth)
	case *ast.SequenceNode:
		n := (&node{kind: kindList}).at(line, col)
		for _, value := range in.Values {
			n.items = append(n.items, y.build(value, depth+1))
		}
		return n.grow()
	case *ast.AnchorNode:
		name := in.Name.GetToken().Value
		n := y.build(in.Value, depth)
		// Known from here on only: an alias within its own anchor would never end.
		y.anchors[name] = n
		return n
	case *ast.AliasNode:
		name := in.Value.GetToken().Value
		n, ok := y.anchors[name]
		if !ok {
			y.unreadable(y.text, line, col, fmt.Errorf("alias *%s names no anchor that is complete before it", run.OneLine(name, 128))) // the library takes line breaks into it
			return (&node{}).at(line, col).grow()
		}
		return n
	case *ast.TagNode:
		if tk := in.GetToken(); tk.Value == "!!str" {
			if scalar, ok := in.Value.(ast.ScalarNode); ok {
				return (&node{kind: kindString, text: scalarText(scalar)}).at(line, col).grow()
			}
		}
		y.unreadable(y.text, line, col, errors.New("tags are not supported (want plain YAML)"))
		return (&node{}).at(line, col).grow()
	case *ast.LiteralNode:
		return (&node{kind: kindString, text: in.Value.Value}).at(line, col).grow()
	case ast.ScalarNode:
		switch tk := in.GetToken(); tk.Type {
		case token.SingleQuoteType, token.DoubleQuoteType:
			return (&node{kind: kindString, text: scalarText(in)}).at(line, col).grow()
		default:
			return plainScalar(scalarText(in)).at(line, col).grow()
		}
	}
	y.fail(line, col, "%s cannot be used here", in.Type())
	return (&node{}).at(line, col).grow()
}

// scalarText returns the characters of a scalar: for numbers the ones that were written, which
// the library's own value has already rounded.
func scalarText(in ast.ScalarNode) string {
	switch in := in.(type) {
	case *ast.StringNode:
		return in.Value
	case *ast.LiteralNode:
		return in.Value.Value
	case *ast.NullNode:
		return ""
	default:
		return in.GetToken().Value
	}
}

func (y *yamlBuilder) mapping(values []*ast.MappingValueNode, line, col, depth int) *node {
	n := (&node{kind: kindMap}).at(line, col)
	seen := make(map[string]int)
	var merged []*node
	for _, value := range values {
		tk := value.Key.GetToken()
		m := member{line: tk.Position.Line, col: tk.Position.Column}
		child := y.build(value.Value, depth+1)
		if value.Value == nil || child.line == 1 && child.col == 1 {
			child = child.moved(m.line, m.col)
		}
		m.value = child
		if value.Key.IsMergeKey() {
			merged = append(merged, y.mergeSources(child, m)...)
			continue
		}
		key, err := mapKey(value.Key)
		if err != nil {
			y.fail(m.line, m.col, "%w", err)
			continue
		}
		m.key = key
		y.addMember(n, seen, m)
	}
	// A merge key fills in what the mapping does not say itself; of several, the first wins.
	for _, source := range merged {
		for _, m := range source.fields {
			if _, ok := seen[m.key]; !ok {
				seen[m.key] = m.line
				n.fields = append(n.fields, m)
			}
		}
	}
	return n.grow()
}

// moved returns a value that has no place of its own (nothing after the colon) at another's.
func (n *node) moved(line, col int) *node {
	moved := *n
	return moved.at(line, col)
}

func (y *yamlBuilder) mergeSources(child *node, m member) []*node {
	sources := []*node{child}
	if child.kind == kindList {
		sources = child.items
	}
	for _, source := range sources {
		if source.kind != kindMap {
			y.fail(m.line, m.col, "<< wants a mapping or a list of mappings")
			return nil
		}
	}
	return sources
}

func mapKey(in ast.MapKeyNode) (string, error) {
	switch in := in.(type) {
	case *ast.StringNode:
		return in.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return in.GetToken().Value, nil
	default:
		return "", fmt.Errorf("%s cannot be a key (want text)", in.Type())
	}
}
