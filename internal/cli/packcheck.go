package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aymanbagabas/go-udiff"

	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/regularfile"
	"github.com/leasecron/leasecron/manifests"
)

// differsError makes --check exit with code 1, as nothing else that can happen in pack does.
type differsError struct{ message string }

func (e differsError) Error() string { return e.message }

// checkFolder prints how the files of a folder differ from those of a package.
func checkFolder(dir string, files []manifests.File, out io.Writer) error {
	differs := false
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		old, err := regularfile.Read(path, maxManifest)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil && bytes.Equal(old, f.Content) {
			continue
		}
		differs = true
		if _, err := io.WriteString(out, udiff.Unified(path, path+" (packed)", string(old), string(f.Content))); err != nil {
			return err
		}
	}
	stale, err := staleFiles(dir, files)
	if err != nil {
		return err
	}
	for _, name := range stale {
		differs = true
		if _, err := fmt.Fprintf(out, "%s: is not packed any more\n", filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if differs {
		return differsError{"what is there is not what pack makes: run it without --check to write it"}
	}
	return nil
}

// checkCluster prints how the objects of a cluster differ from what is packed. What the cluster or the sidecars added is
// no difference.
func checkCluster(ctx context.Context, stream []byte, namespace string, out io.Writer) error {
	cfg, _, err := kube.LoadConfig("")
	if err != nil {
		return fmt.Errorf("compare with the cluster: %w", err)
	}
	client, err := kube.NewReader(cfg)
	if err != nil {
		return err
	}
	objects, err := manifests.ParseStream(stream)
	if err != nil {
		return err
	}
	differs := false
	for _, wanted := range objects {
		live, err := client.Get(ctx, text(wanted, "apiVersion"), wanted.Kind(), wanted.Namespace(), wanted.Name())
		if err == nil && live == nil && wanted.Namespace() == "" {
			// It lives outside of namespaces, or its kind is one that pack does not know.
			live, err = client.Get(ctx, text(wanted, "apiVersion"), wanted.Kind(), namespace, wanted.Name())
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", wanted, err)
		}
		var is []byte
		if live != nil {
			is = manifests.YAML(manifests.Common(wanted, live))
		}
		want := manifests.YAML(wanted)
		if bytes.Equal(is, want) {
			continue
		}
		differs = true
		name := cmp.Or(wanted.Namespace(), namespace) + "/" + wanted.String()
		if _, err := io.WriteString(out, udiff.Unified(name+" (cluster)", name+" (packed)", string(is), string(want))); err != nil {
			return err
		}
	}
	if differs {
		return differsError{"the cluster does not have what pack makes: apply it"}
	}
	return nil
}

func text(o manifests.Object, key string) string {
	s, _ := o[key].(string)
	return s
}
