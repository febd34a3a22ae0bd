package manifests

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leasecron/leasecron/config"
)

// The user that the image runs as.
const user = 65532

// memoryLimit has room for some thousands of jobs: 2,000 were seen to take 77 MB.
const memoryLimit = "128Mi"

// memoryTarget is the variable by which the Go runtime is told how much memory it may take before it collects
// harder.
const memoryTarget = "GOMEMLIMIT"

// memoryTargetOf leaves a tenth of a limit to what the runtime does not count. Kubernetes could put in the limit
// itself, but no part of one. Empty: the limit is none that can be read.
func memoryTargetOf(limit string) string {
	quantity, err := resource.ParseQuantity(limit)
	if err != nil || quantity.Value() <= 0 {
		return ""
	}
	bytes := quantity.Value() / 10 * 9
	if bytes < 1<<20 {
		return strconv.FormatInt(bytes, 10)
	}
	return strconv.FormatInt(bytes>>20, 10) + "MiB"
}

// container is what a pod gets, decided.
type container struct {
	image     string
	plain     bool
	readiness bool
	// variables are LEASECRON_ variables by their whole names.
	variables map[string]string
	settings  config.Settings
	// hostNetwork declares what is listened on, so that the scheduler keeps pods apart that would clash.
	hostNetwork bool
	// guaranteed keeps the pod's quality of service: limits equal to requests.
	guaranteed bool
	// ownToken mounts a token for this container alone.
	ownToken bool
}

// tree is the container as a part of a workload.
func (c container) tree() map[string]any {
	return objectOf(c.typed())
}

// typed builds the container. What it sets is what pod security "restricted" asks for, and what the sidecar's
// promises need.
func (c container) typed() corev1.Container {
	out := corev1.Container{
		Name:  Container,
		Image: c.image,
		Args:  []string{"run"},
		Env:   c.env(),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memoryLimit)},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			ReadOnlyRootFilesystem:   new(true),
			RunAsNonRoot:             new(true),
			RunAsUser:                new(int64(user)),
			RunAsGroup:               new(int64(user)),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if c.guaranteed {
		same := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse(memoryLimit)}
		out.Resources = corev1.ResourceRequirements{Requests: same, Limits: same}
	}
	if !c.plain {
		out.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		// A native sidecar is told to stop only when the app's containers have ended. The hook runs at once.
		out.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/sidecar", "drain"}},
		}}
	}
	if number, reachable := port(c.settings.Listen); reachable {
		out.Ports = append(out.Ports, c.port(Container, number))
		out.LivenessProbe = probe("/livez", 20)
		if c.readiness {
			out.ReadinessProbe = probe("/readyz", 10)
		}
	}
	if c.hostNetwork {
		if number, _ := port(c.settings.APIListen); number > 0 {
			out.Ports = append(out.Ports, c.port(apiPort, number))
		}
	}
	if c.ownToken {
		out.VolumeMounts = []corev1.VolumeMount{{
			Name: tokenVolume, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true,
		}}
	}
	return out
}

func (c container) port(name string, number int32) corev1.ContainerPort {
	p := corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
	if c.hostNetwork {
		p.HostPort = number
	}
	return p
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(Container)}},
		TimeoutSeconds: 5, PeriodSeconds: period, FailureThreshold: 3,
	}
}

// env lists the app first, the other settings by name, then what the pod tells.
func (c container) env() []corev1.EnvVar {
	var out []corev1.EnvVar
	names := slices.SortedFunc(maps.Keys(c.variables), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		out = append(out, corev1.EnvVar{Name: name, Value: c.variables[name]})
	}
	for _, field := range []struct{ name, path string }{
		{"POD_NAME", "metadata.name"},
		{"POD_NAMESPACE", "metadata.namespace"},
		{"POD_UID", "metadata.uid"},
		{"POD_IP", "status.podIP"},
	} {
		out = append(out, corev1.EnvVar{Name: field.name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: field.path},
		}})
	}
	return append(out, corev1.EnvVar{Name: memoryTarget, Value: memoryTargetOf(memoryLimit)})
}

func rank(variable string) int {
	switch variable {
	case settingApp:
		return 0
	case settingElection:
		return 1
	case settingTarget:
		return 2
	}
	return 3
}

// tokenSource is a token of the pod's service account, with what a client of the API server needs besides, laid
// out as Kubernetes does it for pods that ask for none of this.
func tokenSource() corev1.Volume {
	return corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o444)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
