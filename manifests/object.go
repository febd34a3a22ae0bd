package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Object is a Kubernetes object as a tree: maps, slices, strings, booleans, numbers.
type Object map[string]any

// objectOf turns a typed object into a tree without what a typed object has to say and nobody wrote: a status,
// nulls and empty maps.
func objectOf(typed any) Object {
	text, err := json.Marshal(typed)
	if err != nil {
		panic(err) // the types of k8s.io/api always encode
	}
	o, err := decodeJSON(text)
	if err != nil {
		panic(err)
	}
	delete(o, "status")
	prune(o)
	return o
}

func decodeJSON(text []byte) (Object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // what others wrote must come out digit for digit
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if value == nil {
		return nil, nil
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("is no mapping")
	}
	return tree, nil
}

// prune removes nulls and empty maps below the top, as typed objects are full of them.
func prune(tree map[string]any) {
	for key, value := range tree {
		switch v := value.(type) {
		case nil:
			delete(tree, key)
		case map[string]any:
			if prune(v); len(v) == 0 {
				delete(tree, key)
			}
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					prune(m)
				}
			}
		}
	}
}

// ParseObject reads one YAML or JSON document as kubectl does. It returns nil for one that holds nothing but
// comments. Duplicate keys are an error: of two values, which one was meant?
func ParseObject(document []byte) (Object, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "error converting YAML to JSON: "))
	}
	return decodeJSON(text)
}

// YAML renders objects as documents of one stream, keys in alphabetical order.
func YAML(objects ...Object) []byte {
	var out bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(marshal(o))
	}
	return out.Bytes()
}

func marshal(value any) []byte {
	text, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // a tree of JSON values always encodes
	}
	return text
}

// Kind is the object's kind, empty if it has none.
func (o Object) Kind() string { return text(o, "kind") }

// Name is the object's name, empty if it has none.
func (o Object) Name() string { return text(o, "metadata", "name") }

// Namespace is the object's namespace, empty if it names none.
func (o Object) Namespace() string { return text(o, "metadata", "namespace") }

// Group is that of the object's apiVersion; empty for the core group.
func (o Object) Group() string {
	group, _, ok := strings.Cut(text(o, "apiVersion"), "/")
	if !ok {
		return ""
	}
	return group
}

// String names the object for messages, on one line.
func (o Object) String() string {
	name := o.Name()
	switch {
	case name == "":
		return o.Kind() + " without a name"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Sprintf("%s %.80q", o.Kind(), name)
	default:
		return o.Kind() + " " + name
	}
}

// at follows keys down a tree; nil where there is nothing.
func at(tree map[string]any, path ...string) any {
	var value any = tree
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

func text(tree map[string]any, path ...string) string {
	s, _ := at(tree, path...).(string)
	return s
}

func mapping(tree map[string]any, path ...string) map[string]any {
	m, _ := at(tree, path...).(map[string]any)
	return m
}

// items are the mappings of a list; what else is in it is left to the API server to refuse.
func items(tree map[string]any, path ...string) []map[string]any {
	list, _ := at(tree, path...).([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// named finds an item of a list by its name.
func named(list []map[string]any, name string) map[string]any {
	for _, item := range list {
		if text(item, "name") == name {
			return item
		}
	}
	return nil
}

// child returns the mapping at key, made if it is not there.
func child(tree map[string]any, key string) map[string]any {
	m, ok := tree[key].(map[string]any)
	if !ok {
		m = make(map[string]any)
		tree[key] = m
	}
	return m
}

// whole reads a whole number, however it was decoded.
func whole(value any) (int64, bool) {
	switch n := value.(type) {
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	case int64:
		return n, true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

func clone(value any) any {
	switch v := value.(type) {
	case Object:
		return Object(clone(map[string]any(v)).(map[string]any))
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = clone(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	}
	return value
}
