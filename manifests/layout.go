package manifests

import (
	"bytes"
	"fmt"
)

// The names in a folder that was packed.
const (
	kustomizationFile = "kustomization.yaml"
	workloadFile      = "workload.yaml"
	componentFolder   = "component"
)

// header begins each file that is written anew each time.
const header = "# Made by sidecar pack: change what it was made from, and pack again.\n"

// Made reports whether a file is one that [Package.Files] wrote, so that one which is not wanted any more can be told
// from what somebody else keeps in the folder.
func Made(content []byte) bool { return bytes.HasPrefix(content, []byte(header)) }

// Stream is everything that has to be applied, as one stream of YAML documents.
func (p *Package) Stream() []byte {
	var out bytes.Buffer
	for i, f := range p.Objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(f.Content)
	}
	if p.Workload != nil {
		if !bytes.HasPrefix(p.Workload, []byte("---")) {
			out.WriteString("---\n")
		}
		out.Write(p.Workload)
	}
	return out.Bytes()
}

// Files are the same as a folder for kustomize, in the order of their names: a component, for a kustomization that has the
// workload already, and a kustomization that uses it.
func (p *Package) Files() []File {
	var names []any
	var files []File
	add := func(name string, content []byte) {
		files = append(files, File{Name: name, Content: append([]byte(header), content...)})
	}
	for _, f := range p.Objects {
		names = append(names, f.Name)
	}
	add(componentFolder+"/"+kustomizationFile, marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component",
		"resources": names,
		"patches":   []any{map[string]any{"path": p.patch.Name, "target": p.patchOp.selector()}},
	}))
	for _, f := range p.Objects {
		add(componentFolder+"/"+f.Name, f.Content)
	}
	comment := fmt.Sprintf("# Also for: kubectl patch %s %s --patch-file %s\n", p.patchOp.kind, p.patchOp.name, p.patch.Name)
	if p.patchOp.group == "argoproj.io" {
		comment = ""
	}
	add(componentFolder+"/"+p.patch.Name, append([]byte(comment), p.patch.Content...))

	root := map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"components": []any{componentFolder},
	}
	if p.original != nil {
		root["resources"] = []any{workloadFile}
	}
	add(kustomizationFile, marshal(root))
	if p.original != nil {
		add(workloadFile, p.original)
	}
	return files
}
