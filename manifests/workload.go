package manifests

import (
	"errors"
	"fmt"
	"strings"
)

// workloadKind is a kind of object with a pod template.
type workloadKind struct {
	group, kind string
	// plain: an ordinary container in it does no harm.
	plain   bool
	warning string
}

var workloadKinds = []workloadKind{
	{group: "apps", kind: "Deployment", plain: true},
	{group: "apps", kind: "StatefulSet", plain: true},
	{group: "argoproj.io", kind: "Rollout", plain: true},
	{group: "apps", kind: "DaemonSet", plain: true, warning: "each node gets a sidecar that watches the Lease and the jobs; one replica on one node leads"},
	{group: "batch", kind: "Job", warning: "jobs fire only while this Job runs; a schedule wants a Deployment"},
}

// refusedKinds have pods, and a sidecar in them would not do what one expects.
var refusedKinds = map[string]string{
	"CronJob":    "its pods come and go with each run; make it a job of the jobs document, beside the app that does the work",
	"Pod":        "a Pod cannot be changed once it runs; inject into the Deployment that makes it",
	"ReplicaSet": "its Deployment would undo it; inject into the Deployment",
}

// workloadOf returns the kind of an object that can have the sidecar, and false for all others.
func workloadOf(o Object) (workloadKind, bool) {
	for _, k := range workloadKinds {
		if o.Kind() == k.kind && o.Group() == k.group {
			return k, true
		}
	}
	return workloadKind{}, false
}

// podSpec is that of a workload's template.
func podSpec(o Object) (map[string]any, error) {
	if at(o, "spec", "workloadRef") != nil && at(o, "spec", "template") == nil {
		return nil, fmt.Errorf("%s takes its pods from another object (spec.workloadRef): inject into that", o)
	}
	spec := mapping(o, "spec", "template", "spec")
	if spec == nil {
		return nil, fmt.Errorf("%s has no spec.template.spec", o)
	}
	if len(items(spec, "containers")) == 0 {
		return nil, fmt.Errorf("%s has no containers", o)
	}
	return spec, nil
}

// sidecarIn finds the sidecar of a pod. A container that has its name and is something else is an error.
func sidecarIn(spec map[string]any) (found map[string]any, list string, err error) {
	for _, list := range []string{"initContainers", "containers"} {
		c := named(items(spec, list), Container)
		if c == nil {
			continue
		}
		for _, variable := range items(c, "env") {
			if strings.HasPrefix(text(variable, "name"), "LEASECRON_") {
				return c, list, nil
			}
		}
		return nil, "", fmt.Errorf("%s has a container %q that is not the sidecar (it has no LEASECRON_ variable): rename it", list, Container)
	}
	return nil, "", nil
}

// appContainer chooses the container whose port the jobs call: the one that is named, or that kubectl takes by
// default, else the first that declares a port.
func appContainer(spec map[string]any, annotated, name string) (c map[string]any, guessed bool, err error) {
	var apps []map[string]any
	var names []string
	for _, c := range items(spec, "containers") {
		if text(c, "name") != Container {
			apps = append(apps, c)
			names = append(names, text(c, "name"))
		}
	}
	if len(apps) == 0 {
		return nil, false, errors.New("has no container but the sidecar")
	}
	if name != "" {
		if c = named(apps, name); c == nil {
			return nil, false, fmt.Errorf("has no container %q (it has %s)", name, strings.Join(names, ", "))
		}
		return c, false, nil
	}
	var listening []map[string]any
	for _, c := range apps {
		if len(tcpPorts(c)) > 0 {
			listening = append(listening, c)
		}
	}
	if c = named(apps, annotated); c != nil && (len(listening) == 0 || named(listening, annotated) != nil) {
		return c, false, nil
	}
	if len(listening) == 0 {
		return apps[0], len(apps) > 1, nil
	}
	return listening[0], len(listening) > 1, nil
}

// tcpPorts are the ports of a container that can take HTTP.
func tcpPorts(c map[string]any) []map[string]any {
	var ports []map[string]any
	for _, p := range items(c, "ports") {
		if protocol := text(p, "protocol"); protocol == "" || protocol == "TCP" {
			ports = append(ports, p)
		}
	}
	return ports
}

// appPort is the port of a container that most likely takes HTTP, 0 if it names none.
func appPort(c map[string]any) (number int64, guessed bool) {
	ports := tcpPorts(c)
	for _, wanted := range []string{"http", "web"} {
		for _, p := range ports {
			if name := text(p, "name"); name == wanted || strings.HasPrefix(name, wanted+"-") {
				n, _ := whole(p["containerPort"])
				return n, false
			}
		}
	}
	if len(ports) == 0 {
		return 0, false
	}
	n, _ := whole(ports[0]["containerPort"])
	return n, len(ports) > 1
}

// guaranteed reports whether each container has limits equal to its requests, so that Kubernetes gives the pod
// the quality of service that it takes away if one has not.
func guaranteed(spec map[string]any) bool {
	seen := false
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(spec, list) {
			if text(c, "name") == Container {
				continue
			}
			for _, what := range []string{"cpu", "memory"} {
				limit, request := at(c, "resources", "limits", what), at(c, "resources", "requests", what)
				if limit == nil || request != nil && fmt.Sprint(request) != fmt.Sprint(limit) {
					return false
				}
			}
			seen = true
		}
	}
	return seen
}
