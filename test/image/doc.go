// Package image assembles the container image without a container engine: the same files, configuration and
// labels, read from the Dockerfile itself, as a layer whose bytes follow from its input alone.
//
//	i, err := image.Read("Dockerfile", "bin/image", map[string]string{"VERSION": "v1"})
//	layer, err := i.Layer()   // the file system, as a tar archive
//	err = i.Archive(w, "leasecron:v1") // what docker load and podman load take
//
// It reads the few instructions that the Dockerfile's last stages use and refuses every other one, so that
// nothing can be in the image that is not in what the tests of this package run.
package image
