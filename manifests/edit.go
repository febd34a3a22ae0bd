package manifests

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/election"
)

// Injected says how a workload has the sidecar now.
type Injected struct {
	App, Namespace string
	// ServiceAccount is what the pods run as. Made tells that they named none before.
	ServiceAccount string
	Made           bool
	Settings       config.Settings
	// Target is where the app listens, as far as the workload tells.
	Target   string
	Warnings []string
}

func (i *Injected) warn(format string, args ...any) {
	i.Warnings = append(i.Warnings, fmt.Sprintf(format, args...))
}

// How long a pod has to end where it does not say, and what the sidecar needs of it for itself: to hand over
// before it waits for its runs, and to report them after that.
const (
	defaultTermination = 30 * time.Second
	reserve            = 5 * time.Second
)

// edit puts the sidecar into a workload, or brings the one that it has up to date. Done twice it is done once.
func (s Sidecar) edit(o Object) (*Injected, error) {
	kind, ok := workloadOf(o)
	if !ok {
		return nil, fmt.Errorf("%s is no workload that can have the sidecar", o)
	}
	if s.Plain && !kind.plain {
		return nil, fmt.Errorf("%s: a plain container would keep the pod from ending; leave out --plain", o)
	}
	spec, err := podSpec(o)
	if err != nil {
		return nil, err
	}
	in, err := s.editPod(o, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	if kind.warning != "" {
		in.warn("%s", kind.warning)
	}
	for i := range in.Warnings {
		in.Warnings[i] = o.String() + ": " + in.Warnings[i]
	}
	return in, nil
}

func (s Sidecar) editPod(o Object, spec map[string]any) (*Injected, error) {
	old, oldList, err := sidecarIn(spec)
	if err != nil {
		return nil, err
	}
	annotations := mapping(o, "spec", "template", "metadata", "annotations")
	app, guessed, err := appContainer(spec, text(annotations, defaultContainer), s.Beside)
	if err != nil {
		return nil, err
	}

	in := &Injected{Namespace: cmp.Or(o.Namespace(), "default")}
	image, err := s.imageOf(in, text(old, "image"))
	if err != nil {
		return nil, err
	}
	variables := settingsOf(old)
	maps.Copy(variables, s.Settings)
	if in.App, err = appName(o, cmp.Or(s.App, variables[settingApp])); err != nil {
		return nil, err
	}
	in.Target = s.target(in, app, guessed, variables[settingTarget])
	variables[settingApp], variables[settingElection] = in.App, config.ElectionKubernetes
	delete(variables, settingNamespace)
	if in.Target != "" {
		variables[settingTarget] = in.Target
	}
	c := container{
		image: image, plain: s.Plain, readiness: s.Readiness, variables: variables,
		hostNetwork: spec["hostNetwork"] == true, guaranteed: guaranteed(spec),
		ownToken: spec["automountServiceAccountToken"] == false,
	}
	if c.hostNetwork {
		hostPorts(in, variables)
	}
	if err := freePorts(in, spec, variables); err != nil {
		return nil, err
	}
	termination := fitGrace(in, spec, variables)
	if c.settings, err = loadSettings(in.App, in.Namespace, in.Target, variables); err != nil {
		return nil, err
	}
	in.Settings = c.settings
	if _, explicit := s.Settings[settingGrace]; explicit && c.settings.ShutdownGrace+reserve > termination {
		return nil, fmt.Errorf("%s=%s does not fit into terminationGracePeriodSeconds: %d: want that at least %s longer than the grace",
			settingGrace, c.settings.ShutdownGrace, int(termination/time.Second), reserve)
	}
	if _, reachable := port(c.settings.Listen); !reachable {
		in.warn("%s=%s cannot be reached from outside: no probe is set, and nobody can scrape metrics", settingListen, c.settings.Listen)
	}

	put(spec, c.tree(), old, oldList, s.Plain)
	if c.ownToken {
		volumes := slices.DeleteFunc(items(spec, "volumes"), func(v map[string]any) bool { return text(v, "name") == tokenVolume })
		// First, where a strategic merge patch puts it too.
		spec["volumes"] = list(append([]map[string]any{objectOf(tokenSource())}, volumes...))
		in.warn("the pod mounts no token (automountServiceAccountToken: false): the sidecar gets one of its own, the app still none")
	}
	warnOfMounts(in, spec)
	s.account(in, spec)
	labelPods(o, spec, in.App, app, s.Plain)
	return in, nil
}

// target is where the app listens; empty where nothing tells.
func (s Sidecar) target(in *Injected, app map[string]any, guessed bool, before string) string {
	if s.Target != "" || before != "" {
		return cmp.Or(s.Target, before)
	}
	number, unsure := appPort(app)
	if number == 0 {
		in.warn("container %s declares no port: jobs without a target call %s; name it with --target", text(app, "name"), defaultTarget)
		return ""
	}
	target := "http://127.0.0.1:" + strconv.FormatInt(number, 10)
	if guessed || unsure {
		in.warn("jobs without a target call %s, port %d of container %s; if that is wrong, name it with --container or --target", target, number, text(app, "name"))
	}
	return target
}

const (
	defaultTarget    = "http://127.0.0.1:8080"
	defaultContainer = "kubectl.kubernetes.io/default-container"
)

// settingsOf reads the settings of a container; what is no plain value is not ours to judge.
func settingsOf(c map[string]any) map[string]string {
	out := make(map[string]string)
	for _, variable := range items(c, "env") {
		if value, ok := variable["value"].(string); ok && strings.HasPrefix(text(variable, "name"), config.SettingPrefix) {
			out[text(variable, "name")] = value
		}
	}
	return out
}

// hostPorts chooses ports for pods that share their node's network with each other: from the app's name, so
// that two apps on a node rarely meet, and below those that systems give to clients.
func hostPorts(in *Injected, variables map[string]string) {
	in.warn("hostNetwork: the sidecar listens on the node's addresses, and its API on the node's loopback, where other programs of the node reach it")
	if variables[settingListen] != "" || variables[settingAPIListen] != "" {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(in.Namespace + "/" + in.App)) // never fails
	first := 21000 + int(h.Sum32()%4000)*2
	variables[settingListen] = ":" + strconv.Itoa(first)
	variables[settingAPIListen] = net.JoinHostPort("127.0.0.1", strconv.Itoa(first+1))
	in.warn("hostNetwork: chose ports %d and %d, which the scheduler keeps apart on each node; set %s and %s for others",
		first, first+1, settingListen, settingAPIListen)
}

// fitGrace keeps the sidecar's grace within the pod's, and returns that.
func fitGrace(in *Injected, spec map[string]any, variables map[string]string) time.Duration {
	termination := defaultTermination
	if seconds, ok := whole(spec["terminationGracePeriodSeconds"]); ok {
		termination = time.Duration(seconds) * time.Second
	}
	const normal = 25 * time.Second
	if variables[settingGrace] != "" || termination >= normal+reserve {
		return termination
	}
	fits := max(termination-reserve, termination/2, time.Second).Truncate(time.Second)
	variables[settingGrace] = fits.String()
	in.warn("terminationGracePeriodSeconds is %d: runs in flight get %s to end when a pod stops, instead of %s", int(termination/time.Second), fits, normal)
	return termination
}

// account names the service account that the pods run as.
func (s Sidecar) account(in *Injected, spec map[string]any) {
	in.ServiceAccount = cmp.Or(text(spec, "serviceAccountName"), text(spec, "serviceAccount"))
	if in.ServiceAccount == "" {
		in.ServiceAccount, in.Made = cmp.Or(s.ServiceAccount, in.App), true
		spec["serviceAccountName"] = in.ServiceAccount
	} else if s.ServiceAccount != "" && s.ServiceAccount != in.ServiceAccount {
		in.warn("the pods run as service account %s already, which stays; %s is not used", in.ServiceAccount, s.ServiceAccount)
	}
}

// labelPods marks the pods, so that they can be selected, and leaves the workload's own selector alone.
func labelPods(o Object, spec map[string]any, name string, app map[string]any, plain bool) {
	meta := child(mapping(o, "spec", "template"), "metadata")
	child(meta, "labels")[election.AppLabel] = labelValue(name)
	if annotations := mapping(meta, "annotations"); plain && text(annotations, defaultContainer) == "" && len(items(spec, "containers")) > 1 {
		child(meta, "annotations")[defaultContainer] = text(app, "name")
	}
}

// put places the container: last, so that init containers before it run first, and so that it ends before
// other sidecars, such as a proxy that it needs for its way to the API server.
func put(spec, c map[string]any, old map[string]any, oldList string, plain bool) {
	wanted := "initContainers"
	if plain {
		wanted = "containers"
	}
	if old == nil {
		spec[wanted] = append(anys(spec, wanted), any(map[string]any(c)))
		return
	}
	update(old, c)
	if oldList == wanted {
		return
	}
	rest := slices.DeleteFunc(anys(spec, oldList), func(item any) bool {
		m, ok := item.(map[string]any)
		return ok && text(m, "name") == Container
	})
	if len(rest) == 0 {
		delete(spec, oldList)
	} else {
		spec[oldList] = rest
	}
	spec[wanted] = append(anys(spec, wanted), any(old))
}

// update brings a container up to date and keeps what is not this package's: resources, the security context,
// probes, and variables, ports and mounts of other names.
func update(old, c map[string]any) {
	for _, key := range []string{"image", "args"} {
		old[key] = c[key]
	}
	for _, key := range []string{"restartPolicy", "lifecycle"} {
		if value, ok := c[key]; ok {
			old[key] = value
		} else {
			delete(old, key)
		}
	}
	for _, key := range []string{"livenessProbe", "readinessProbe", "resources", "securityContext"} {
		if _, ok := old[key]; !ok && c[key] != nil {
			old[key] = c[key]
		}
	}
	for key, by := range map[string]string{"env": "name", "ports": "name", "volumeMounts": "mountPath"} {
		merged := items(old, key)
		for _, item := range items(c, key) {
			i := slices.IndexFunc(merged, func(m map[string]any) bool { return text(m, by) == text(item, by) })
			if i < 0 {
				merged = append(merged, item)
			} else {
				merged[i] = item
			}
		}
		if len(merged) > 0 {
			old[key] = list(merged)
		}
	}
	followLimit(old)
}

// followLimit keeps the runtime's target below the container's limit, whoever set that.
func followLimit(c map[string]any) {
	target := ""
	if limit := at(c, "resources", "limits", "memory"); limit != nil {
		target = memoryTargetOf(fmt.Sprint(limit))
	}
	c["env"] = list(slices.DeleteFunc(items(c, "env"), func(v map[string]any) bool {
		if text(v, "name") != memoryTarget {
			return false
		}
		v["value"] = target
		return target == ""
	}))
}

func anys(tree map[string]any, key string) []any {
	l, _ := tree[key].([]any)
	return l
}

func list(items []map[string]any) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}
