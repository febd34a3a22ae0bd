package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/rbac"
)

// PackOptions say what to pack.
type PackOptions struct {
	Sidecar
	Namespace string
	// Jobs is what goes into the jobs ConfigMap; nil: somebody else makes that.
	Jobs *Jobs
	// Workload is a stream of YAML documents with the app's workload; nil: a patch is made for what is not known.
	Workload []byte
	// Source names Workload in errors, as the path of its file; empty: the input.
	Source string
	// WorkloadName chooses one of several workloads.
	WorkloadName string
	// Kind is that of an unknown workload; empty: Deployment.
	Kind string
	// With names what is wanted besides: see [Extras].
	With []string
}

// Jobs is a jobs document that was judged already, and what it refers to.
type Jobs struct {
	Document config.Document
	// Keys are those of the ConfigMap: the document, under the settings' JobsKey, and the calendar files.
	Keys map[string][]byte
}

// Installation is what [Extra] objects are made from.
type Installation struct {
	App, Namespace string
	// Labels are for the objects, PodSelector finds the pods that have the sidecar.
	Labels, PodSelector map[string]string
	Settings            config.Settings
	Jobs                *config.Document // nil: not known
	// AppPorts are what the app's containers declare; empty where the workload is not known.
	AppPorts []AppPort
}

// AppPort is a port that the app's containers declare.
type AppPort struct {
	Number   int32
	Protocol string // TCP, UDP or SCTP
}

// Package is the outcome: the same input gives the same bytes.
type Package struct {
	// Objects are all that has to be applied, the workload excepted, in that order.
	Objects []File
	// Namespace is where all of them go.
	Namespace string
	// Workload is the input with the sidecar in its workload; nil if none was given.
	Workload []byte
	// original is the input as it was given, but that its objects name a namespace.
	original []byte
	patch    File
	patchOp  patchTarget
	Warnings []string
}

// File is some content with a name.
type File struct {
	Name    string
	Content []byte
}

// Pack makes an installation.
func Pack(o PackOptions) (*Package, error) {
	p := &Package{}
	inst := Installation{}
	var in *Injected
	var err error
	if o.Workload != nil {
		if in, err = p.known(&o, &inst); err != nil {
			return nil, err
		}
	} else if in, err = p.unknown(&o); err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		return nil, errors.New("no namespace: the workload names none, so say which one with -n")
	}
	if err := errors.Join(checkName("app", in.App), checkNamespace(o.Namespace), checkName("service account", in.ServiceAccount)); err != nil {
		return nil, err
	}
	p.Namespace = o.Namespace
	p.Warnings = append(p.Warnings, in.Warnings...)

	inst.App, inst.Namespace, inst.Settings = in.App, o.Namespace, in.Settings
	inst.Labels, inst.PodSelector = Labels(in.App), PodSelector(in.App)
	if o.Jobs != nil {
		inst.Jobs = &o.Jobs.Document
	}
	m := maker{inst: inst, in: in}
	p.add("serviceaccount.yaml", m.serviceAccount()...)
	p.add("rbac.yaml", m.role(), m.roleBinding())
	p.add("lease.yaml", m.lease())
	p.add("ledger.yaml", m.documents()...)
	if o.Jobs != nil {
		jobs, warnings, err := m.jobs(*o.Jobs)
		if err != nil {
			return nil, err
		}
		p.Warnings = append(p.Warnings, warnings...)
		p.add("jobs-configmap.yaml", jobs)
	} else if in.Settings.JobsFile == "" {
		p.Warnings = append(p.Warnings, fmt.Sprintf("no jobs document was given: make ConfigMap %s with the key %s yourself", in.Settings.JobsConfigMap, in.Settings.JobsKey))
	}
	return p, p.extras(o.With, inst)
}

// known injects the sidecar into the workload that was given.
func (p *Package) known(o *PackOptions, inst *Installation) (*Injected, error) {
	options := InjectOptions{Sidecar: o.Sidecar, Source: o.Source, one: true}
	if o.WorkloadName != "" {
		options.Names = []string{o.WorkloadName}
	}
	var err error
	if o.Namespace == "" {
		if o.Namespace, err = namespaceOf(o.Workload, options); err != nil {
			return nil, err
		}
	}
	if p.original, p.Warnings, err = pin(o.Workload, options, o.Namespace); err != nil {
		return nil, err
	}
	out, err := Inject(p.original, options)
	if err != nil {
		return nil, err
	}
	w := out.Workloads[0]
	for _, warning := range out.Warnings {
		if !slices.Contains(w.Injected.Warnings, warning) && !slices.Contains(p.Warnings, warning) {
			p.Warnings = append(p.Warnings, warning)
		}
	}
	if ns := w.After.Namespace(); ns != "" && ns != o.Namespace {
		return nil, fmt.Errorf("%s is in namespace %s, not in %s", w.After, ns, o.Namespace)
	}
	p.Workload = out.Text
	spec, err := podSpec(w.After)
	if err != nil {
		return nil, err
	}
	for _, c := range items(spec, "containers") {
		for _, port := range items(c, "ports") {
			if n, ok := whole(port["containerPort"]); ok && text(c, "name") != Container {
				//nolint:gosec // a port; the API server refuses others
				inst.AppPorts = append(inst.AppPorts, AppPort{int32(n), cmp.Or(text(port, "protocol"), "TCP")})
			}
		}
	}
	p.patch, p.patchOp = patchOf(w)
	return w.Injected, nil
}

// unknown makes a patch for a workload that nobody has shown.
func (p *Package) unknown(o *PackOptions) (*Injected, error) {
	if o.App == "" {
		return nil, errors.New("no app: say whose jobs these are with --app, or show its workload with --deployment")
	}
	kind := cmp.Or(o.Kind, "Deployment")
	i := slices.IndexFunc(workloadKinds, func(k workloadKind) bool { return k.kind == kind && k.group == "apps" })
	if i < 0 {
		return nil, fmt.Errorf("--kind %s: want Deployment, StatefulSet or DaemonSet; for others show the workload with --deployment", kind)
	}
	// A workload of which nothing is known but that it has a container.
	blank := Object{
		"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": o.App},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": o.App, "ports": []any{}},
		}}}},
	}
	if o.Namespace != "" {
		blank["metadata"].(map[string]any)["namespace"] = o.Namespace
	}
	before := clone(blank).(Object)
	if o.Target == "" {
		o.Target = defaultTarget
		if o.Jobs != nil {
			o.Target = cmp.Or(o.Jobs.Document.Target, o.Target)
		}
	}
	in, err := o.edit(blank)
	if err != nil {
		return nil, err
	}
	w := &Workload{Injected: in, Before: before, After: blank}
	p.patch, p.patchOp = patchOf(w)
	return in, nil
}

func (p *Package) add(name string, objects ...Object) {
	if len(objects) > 0 {
		p.Objects = append(p.Objects, File{Name: name, Content: YAML(objects...)})
	}
}

// maker makes the objects of an installation.
type maker struct {
	inst Installation
	in   *Injected
}

func (m maker) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: m.inst.Namespace, Labels: maps.Clone(m.inst.Labels)}
}

// serviceAccount is none where the workload has one: it is not ours to change.
func (m maker) serviceAccount() []Object {
	if !m.in.Made {
		return nil
	}
	return []Object{objectOf(&corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: m.meta(m.in.ServiceAccount),
	})}
}

func (m maker) role() Object {
	return objectOf(&rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: m.meta(roleName(m.inst.App)),
		Rules:      rbac.Rules(rbac.For(m.inst.Settings)),
	})
}

func (m maker) roleBinding() Object {
	return objectOf(&rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: m.meta(roleName(m.inst.App)),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName(m.inst.App)},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: m.in.ServiceAccount, Namespace: m.inst.Namespace}},
	})
}

// lease has no spec: it is the sidecars' to fill, and applying it again takes nothing away.
func (m maker) lease() Object {
	meta := m.meta(m.inst.Settings.LeaseName)
	if labelValue(m.inst.App) != m.inst.App {
		// The sidecar refuses a Lease that is labelled for another app, and a label cannot hold this name.
		maps.DeleteFunc(meta.Labels, func(_, value string) bool { return value == labelValue(m.inst.App) })
	}
	return objectOf(&coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: meta,
	})
}

// documents have no data, so that applying them again, by whatever means, empties none.
func (m maker) documents() []Object {
	var out []Object
	for _, name := range documentNames(m.inst.App) {
		out = append(out, objectOf(&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: m.meta(name),
		}))
	}
	return out
}

// The largest that the API server takes for a ConfigMap, and for the annotations of an object, which is where a
// client-side apply keeps a copy.
const (
	largestConfigMap   = 1 << 20
	largestAnnotations = 256 << 10
)

func (m maker) jobs(j Jobs) (Object, []string, error) {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: m.meta(m.inst.Settings.JobsConfigMap),
		Data:       make(map[string]string, len(j.Keys)),
	}
	size := 0
	for key, value := range j.Keys {
		cm.Data[key] = strings.ReplaceAll(string(value), "\r\n", "\n") // else no reader could make sense of the YAML
		size += len(key) + len(cm.Data[key])
	}
	name := "ConfigMap " + cm.Name
	if size > largestConfigMap {
		return nil, nil, fmt.Errorf("%s would have %d bytes, more than the 1 MiB that Kubernetes takes: give the jobs to several apps, or mount them as a file and name it with --set JOBS_FILE=PATH", name, size)
	}
	var warnings []string
	if size > largestAnnotations*9/10 {
		warnings = append(warnings, fmt.Sprintf("%s has %d bytes, too much for a client-side kubectl apply: use kubectl apply --server-side", name, size))
	}
	return objectOf(cm), warnings, nil
}
