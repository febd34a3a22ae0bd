// Package manifests makes the Kubernetes objects of an installation, and puts the sidecar's container into
// the workloads of others.
//
// [Pack] answers with files: the objects that a sidecar needs beside its app, the patch for the app's workload,
// and kustomizations. [Inject] edits a stream of YAML documents in place and leaves all else as it is, comments
// included. Both do no I/O, and the same input gives the same bytes.
//
// Objects are built from the types of k8s.io/api and then handled as trees, because what others wrote must
// survive, whichever version of the API it was written for.
package manifests
