package kube

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNoConfig reports that nothing says where the API server is.
var ErrNoConfig = errors.New("no Kubernetes configuration: not in a cluster, and neither KUBECONFIG nor ~/.kube/config names one")

// LoadConfig finds the API server and the namespace to work in, as every client-go program does:
// from the file at kubeconfigPath or, when that is empty, from the files named by KUBECONFIG or
// ~/.kube/config, and without these from the pod that this process runs in.
func LoadConfig(kubeconfigPath string) (cfg *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfigPath
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	cfg, err = loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", ErrNoConfig
	case err != nil:
		return nil, "", fmt.Errorf("load the Kubernetes configuration: %w", err)
	}
	namespace, _, err = loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("load the namespace from the Kubernetes configuration: %w", err)
	}
	cfg.UserAgent = "leasecron/" + version()
	return cfg, cmp.Or(namespace, "default"), nil
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
