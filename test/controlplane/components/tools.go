//go:build tools

// Package components pins what the control plane for tests is built from. It is a module of
// its own so that none of it reaches the go.mod of the product.
package components

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
