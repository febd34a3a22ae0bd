// Package controlplane runs a real Kubernetes control plane, etcd and kube-apiserver, for
// tests: RBAC on, etcd with fsync, TLS with a CA of its own, free ports on loopback, state
// in a temporary folder. There is no kubelet and no controller manager, so objects stay as
// they are written: namespaces are never emptied, Deployments make no pods.
//
// A package's tests usually share one, in namespaces of their own:
//
//	func TestMain(m *testing.M) { controlplane.Main(m) }
//
//	func TestLedgerCommits(t *testing.T) {
//		cp := controlplane.Shared(t)
//		ns := cp.Namespace(t)
//		cfg := cp.ServiceAccount(t, ns, "sidecar", rbacv1.PolicyRule{
//			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "update"},
//		})
//		// cfg is a *rest.Config that may do just that; cp.AdminConfig() may do everything.
//	}
//
// With CONTROLPLANE_STATE set (make test sets it) Shared uses that running one, so
// that many packages pay for one start. A test that breaks things starts its own, which
// ends with the test:
//
//	cp := controlplane.Start(t)
//	cp.APIServer.Kill(t) // also Stop, Pause, Resume, Restart; cp.Etcd has the same
//	cp.APIServer.Start(t) // same address, same data; returns when it is ready
//
// A sidecar in another process gets its access as a file:
//
//	cmd.Env = append(cmd.Env, "KUBECONFIG="+controlplane.WriteKubeconfig(t, cfg, ns))
//
// The binaries come from KUBEBUILDER_ASSETS if that is set. Else they are built once from
// the nested module in components and kept in the user's cache folder.
//
// On Linux no component outlives the process that started it, however that ends.
package controlplane
