package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leasecron/leasecron/internal/yamledit"
)

// InjectOptions say what to inject, and where.
type InjectOptions struct {
	Sidecar
	// Names are the workloads that get the sidecar; empty: the only one there is.
	Names []string
	// All gives it to every workload.
	All bool
	// Namespace is that of workloads that name none.
	Namespace string
	// Source names the stream in errors, as the path of its file; empty: the input.
	Source string

	// one: the caller takes no more than one workload.
	one bool
}

func (o InjectOptions) source() string { return cmp.Or(o.Source, "the input") }

// InjectResult is a stream with the sidecar in its workloads.
type InjectResult struct {
	Text      []byte
	Workloads []*Workload // at least one
	Warnings  []string
}

// Workload is one that has the sidecar now.
type Workload struct {
	*Injected
	Before, After Object
}

// LargestStream is the most that is read of other people's objects, in bytes.
const LargestStream = 16 << 20

// Inject puts the sidecar into the workloads of a stream of YAML documents, or brings the one that they have up to
// date. Everything else stays as it is, byte by byte where the style of the document allows.
func Inject(stream []byte, o InjectOptions) (*InjectResult, error) {
	if len(stream) > LargestStream {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", o.source(), len(stream), LargestStream)
	}
	documents, err := readDocuments(stream, o.source())
	if err != nil {
		return nil, err
	}
	if err := choose(documents, o); err != nil {
		return nil, err
	}
	out := &InjectResult{}
	var problems []error
	for _, d := range documents {
		before := clone(map[string]any(d.object))
		failed := false
		for _, w := range d.chosen {
			if err := out.inject(w, o); err != nil {
				problems = append(problems, err)
				failed = true
			}
		}
		if len(d.chosen) > 0 && !failed && !d.rewrite(before) {
			out.Warnings = append(out.Warnings, writtenAnew(d.object))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	out.Text = join(documents)
	return out, out.distinct()
}

// distinct refuses two workloads that would share a Lease.
func (r *InjectResult) distinct() error {
	seen := make(map[string]Object)
	for _, w := range r.Workloads {
		key := w.After.Namespace() + "/" + w.App
		if other, ok := seen[key]; ok {
			return fmt.Errorf("%s and %s would share one Lease as app %s: inject them one by one, with --name and --app", other, w.After, w.App)
		}
		seen[key] = w.After
	}
	return nil
}

// pin gives objects a namespace, where they name none and have to: all that are applied together go to one place.
func pin(stream []byte, o InjectOptions, namespace string) (pinned []byte, warnings []string, err error) {
	documents, err := readDocuments(stream, o.source())
	if err != nil {
		return nil, nil, err
	}
	if err := choose(documents, o); err != nil {
		return nil, nil, err
	}
	for _, d := range documents {
		if d.object == nil || namespace == "" {
			continue
		}
		before := clone(map[string]any(d.object))
		changed := false
		for _, object := range d.objects() {
			scope := scopeOf(object)
			if _, ok := workloadOf(object); ok {
				scope = namespaced
			}
			switch {
			case object.Namespace() != "" || scope == clusterWide:
			case scope == unknownScope:
				warnings = append(warnings, fmt.Sprintf("%s names no namespace, and whether it has to cannot be told: apply with kubectl -n %s", object, namespace))
			default:
				child(object, "metadata")["namespace"] = namespace
				changed = true
			}
		}
		if changed && !d.rewrite(before) {
			warnings = append(warnings, writtenAnew(d.object))
		}
	}
	return join(documents), warnings, nil
}

func writtenAnew(o Object) string {
	return fmt.Sprintf("%s: written anew without its comments, because of how it is laid out", o)
}

// rewrite makes the text of a document say what its object says now. False: at the cost of its comments.
func (d *document) rewrite(before any) bool {
	edited, exact := yamledit.Apply(d.text, before, map[string]any(d.object))
	if !exact {
		edited = marshal(d.object)
	}
	d.text = edited
	return exact
}

func join(documents []*document) []byte {
	var out bytes.Buffer
	for _, d := range documents {
		out.Write(d.separator)
		out.Write(d.text)
	}
	return out.Bytes()
}

func (r *InjectResult) inject(o Object, opts InjectOptions) error {
	w := &Workload{Before: clone(o).(Object), After: o}
	var err error
	namespace := o.Namespace()
	if namespace == "" && opts.Namespace != "" {
		// For the settings alone; the document goes on naming none.
		child(o, "metadata")["namespace"] = opts.Namespace
		defer delete(child(o, "metadata"), "namespace")
	}
	if w.Injected, err = opts.edit(o); err != nil {
		return err
	}
	r.Workloads = append(r.Workloads, w)
	r.Warnings = append(r.Warnings, w.Injected.Warnings...)
	return nil
}

// document is one of a stream.
type document struct {
	separator, text []byte
	above           int // lines of the stream before text
	object          Object
	chosen          []Object // in it: itself, or items of a list
}

// objects are those of a document: itself, or what a List holds.
func (d *document) objects() []Object {
	if d.object.Kind() != "List" {
		return []Object{d.object}
	}
	var out []Object
	for _, item := range items(d.object, "items") {
		out = append(out, item)
	}
	return out
}

// readDocuments splits a stream at its "---" lines, which belong to the document that follows.
func readDocuments(stream []byte, source string) ([]*document, error) {
	var out []*document
	d := &document{}
	begun := false
	lines := 0
	for line := range bytes.Lines(stream) {
		lines++
		if bare := bytes.TrimRight(line, " \t\r\n"); bytes.Equal(bare, []byte("---")) || bytes.HasPrefix(line, []byte("--- #")) {
			if begun {
				out = append(out, d)
			}
			d, begun = &document{separator: line, above: lines}, true
			continue
		}
		d.text, begun = append(d.text, line...), true
	}
	if begun {
		out = append(out, d)
	}
	for i, d := range out {
		var err error
		if d.object, err = ParseObject(d.text); err != nil {
			return nil, fmt.Errorf("%s: document %d: %s", source, i+1, linesBelow(d.above, err.Error()))
		}
	}
	return out, nil
}

var lineNumber = regexp.MustCompile(`\bline [0-9]+\b`)

// linesBelow makes the lines of a document, in a message of the YAML reader, those of the stream.
func linesBelow(above int, message string) string {
	return lineNumber.ReplaceAllStringFunc(message, func(line string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(line, "line "))
		if err != nil {
			return line
		}
		return "line " + strconv.Itoa(n+above)
	})
}

// choose marks the workloads that are meant.
func choose(documents []*document, o InjectOptions) error {
	type candidate struct {
		in     *document
		object Object
	}
	var all []candidate
	refused := make(map[string]error) // by name
	for _, d := range documents {
		if d.object == nil {
			continue
		}
		for _, object := range d.objects() {
			if _, ok := workloadOf(object); ok {
				all = append(all, candidate{d, object})
			} else if why := refusedKinds[object.Kind()]; why != "" {
				refused[object.Name()] = fmt.Errorf("%s cannot have the sidecar: %s", object, why)
			}
		}
	}
	if len(all) == 0 {
		for _, name := range slices.Sorted(maps.Keys(refused)) {
			return refused[name]
		}
		return fmt.Errorf("no workload in %s: want a Deployment, StatefulSet, DaemonSet or Rollout", o.source())
	}
	var names []string
	for _, c := range all {
		names = append(names, c.object.Name())
	}
	if len(o.Names) == 0 && !o.All && len(all) > 1 {
		how := "say which one with --name, or take them all with --all"
		if o.one {
			how = "say which one with --name; each is an app of its own, to be packed by itself"
		}
		return fmt.Errorf("%s has several workloads (%s): %s", o.source(), strings.Join(names, ", "), how)
	}
	if o.App != "" && len(all) > 1 && (o.All || len(o.Names) > 1) {
		return fmt.Errorf("one app for several workloads (%s): they would share one Lease; leave out --app, so that each gets its own", strings.Join(names, ", "))
	}
	for _, name := range o.Names {
		if !slices.Contains(names, name) {
			if err := refused[name]; err != nil {
				return err
			}
			return fmt.Errorf("no workload %q in %s (it has %s)", name, o.source(), strings.Join(names, ", "))
		}
	}
	for _, c := range all {
		if len(o.Names) == 0 || slices.Contains(o.Names, c.object.Name()) {
			c.in.chosen = append(c.in.chosen, c.object)
		}
	}
	return nil
}
