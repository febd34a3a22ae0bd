// Imagetar writes the image as an archive that docker load and podman load take, without an engine.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/leasecron/leasecron/test/image"
)

func main() {
	out := flag.String("out", "image.tar", "the archive")
	context := flag.String("context", ".", "folder with bin/sidecar and bin/ca-certificates.crt")
	tag := flag.String("tag", "leasecron:latest", "name and tag of the image")
	version := flag.String("version", "devel", "version, for the labels")
	commit := flag.String("commit", "unknown", "commit, for the labels")
	flag.Parse()
	if err := write(*out, *context, *tag, map[string]string{"VERSION": *version, "COMMIT": *commit}); err != nil {
		fmt.Fprintln(os.Stderr, "imagetar:", err)
		os.Exit(1)
	}
}

func write(path, context, tag string, args map[string]string) error {
	i, err := image.Read("Dockerfile", context, args)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := i.Archive(f, tag); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
