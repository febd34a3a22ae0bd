package manifests

import (
	"strconv"
	"strings"

	"github.com/leasecron/leasecron/election"
)

// patchTarget says which object a patch is for, as a kustomization does.
type patchTarget struct {
	group, version, kind, name string
}

func (t patchTarget) selector() map[string]any {
	return map[string]any{"group": t.group, "version": t.version, "kind": t.kind, "name": t.name}
}

// patchOf says what was done to a workload as a patch for kustomize: a strategic merge, which kubectl patch takes
// too, or JSON operations where the kind is not one of Kubernetes' own, since nobody could know how to merge its lists.
func patchOf(w *Workload) (File, patchTarget) {
	version := text(w.After, "apiVersion")
	_, version, _ = strings.Cut(version, "/")
	target := patchTarget{group: w.After.Group(), version: version, kind: w.After.Kind(), name: w.After.Name()}
	if target.group == "argoproj.io" {
		return File{Name: "patch.yaml", Content: marshal(operations(w))}, target
	}
	return File{Name: "patch.yaml", Content: marshal(mergePatch(w))}, target
}

func mergePatch(w *Workload) map[string]any {
	before, after := mapping(w.Before, "spec", "template", "spec"), mapping(w.After, "spec", "template", "spec")
	spec := map[string]any{}
	for _, list := range []string{"initContainers", "containers"} {
		if merged := mergedList(items(before, list), items(after, list)); merged != nil {
			spec[list] = merged
		}
	}
	if v := named(items(after, "volumes"), tokenVolume); v != nil {
		spec["volumes"] = []any{v}
	}
	if w.Injected.Made {
		spec["serviceAccountName"] = w.Injected.ServiceAccount
	}
	meta := map[string]any{"labels": map[string]any{election.AppLabel: text(w.After, "spec", "template", "metadata", "labels", election.AppLabel)}}
	const annotation = defaultContainer
	if was, is := text(w.Before, "spec", "template", "metadata", "annotations", annotation), text(w.After, "spec", "template", "metadata", "annotations", annotation); was != is {
		meta["annotations"] = map[string]any{annotation: is}
	}
	id := map[string]any{"name": w.After.Name()}
	if ns := w.After.Namespace(); ns != "" {
		id["namespace"] = ns
	}
	return map[string]any{
		"apiVersion": w.After["apiVersion"], "kind": w.After["kind"], "metadata": id,
		"spec": map[string]any{"template": map[string]any{"metadata": meta, "spec": spec}},
	}
}

// mergedList is a list of containers in a patch: the sidecar, and of the others just the names, because what a
// patch does not name is put behind what it does. Nil: nothing changes.
func mergedList(before, after []map[string]any) []any {
	c := named(after, Container)
	if c == nil {
		if named(before, Container) == nil {
			return nil
		}
		return []any{map[string]any{"name": Container, "$patch": "delete"}}
	}
	var out []any
	for _, item := range after {
		if text(item, "name") == Container {
			out = append(out, c)
		} else if name := text(item, "name"); named(before, name) != nil {
			out = append(out, map[string]any{"name": name})
		}
	}
	return out
}

// operations are a JSON patch.
func operations(w *Workload) []any {
	const root = "/spec/template"
	before, after := mapping(w.Before, "spec", "template", "spec"), mapping(w.After, "spec", "template", "spec")
	var out []any
	op := func(op, path string, value any) {
		o := map[string]any{"op": op, "path": root + path}
		if op != "remove" {
			o["value"] = value
		}
		out = append(out, o)
	}
	for _, list := range []string{"initContainers", "containers", "volumes"} {
		name := Container
		if list == "volumes" {
			name = tokenVolume
		}
		old, c := index(items(before, list), name), named(items(after, list), name)
		switch path := "/spec/" + list; {
		case c == nil && old >= 0:
			op("remove", path+"/"+strconv.Itoa(old), nil)
		case c == nil:
		case old >= 0:
			op("replace", path+"/"+strconv.Itoa(old), c)
		case len(items(before, list)) == 0:
			op("add", path, []any{c})
		case list == "volumes":
			op("add", path+"/0", c)
		default:
			op("add", path+"/-", c)
		}
	}
	if w.Injected.Made {
		op("add", "/spec/serviceAccountName", w.Injected.ServiceAccount)
	}
	for _, field := range []string{"labels", "annotations"} {
		was, is := mapping(w.Before, "spec", "template", "metadata", field), mapping(w.After, "spec", "template", "metadata", field)
		for _, key := range []string{election.AppLabel, defaultContainer} {
			switch {
			case is[key] == nil || was[key] == is[key]:
			case mapping(w.Before, "spec", "template", "metadata") == nil:
				op("add", "/metadata", map[string]any{field: map[string]any{key: is[key]}})
			case was == nil:
				op("add", "/metadata/"+field, map[string]any{key: is[key]})
			default:
				op("add", "/metadata/"+field+"/"+strings.ReplaceAll(key, "/", "~1"), is[key])
			}
		}
	}
	return out
}

func index(list []map[string]any, name string) int {
	for i, item := range list {
		if text(item, "name") == name {
			return i
		}
	}
	return -1
}
