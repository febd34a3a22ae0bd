package manifests

import "slices"

// scope says whether objects of a kind live in a namespace.
type scope int

const (
	unknownScope scope = iota // a kind that is not Kubernetes' own
	namespaced
	clusterWide
)

// builtIn are the groups that are Kubernetes' own, and clusterKinds what in them lives outside of namespaces.
var (
	builtIn = []string{
		"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling", "batch",
		"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
		"rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	}
	clusterKinds = []string{
		"Namespace", "Node", "PersistentVolume", "ComponentStatus",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"CustomResourceDefinition", "APIService", "CertificateSigningRequest", "ClusterTrustBundle",
		"IngressClass", "IPAddress", "ServiceCIDR", "RuntimeClass", "ClusterRole", "ClusterRoleBinding", "PriorityClass",
		"StorageClass", "VolumeAttachment", "VolumeAttributesClass", "CSIDriver", "CSINode",
	}
)

func scopeOf(o Object) scope {
	switch {
	case o.Kind() == "" || !slices.Contains(builtIn, o.Group()):
		return unknownScope
	case slices.Contains(clusterKinds, o.Kind()):
		return clusterWide
	}
	return namespaced
}

// namespaceOf is that of the chosen workload; empty if it names none.
func namespaceOf(stream []byte, o InjectOptions) (string, error) {
	documents, err := readDocuments(stream, o.source())
	if err != nil {
		return "", err
	}
	if err := choose(documents, o); err != nil {
		return "", err
	}
	for _, d := range documents {
		for _, w := range d.chosen {
			return w.Namespace(), nil
		}
	}
	return "", nil
}
