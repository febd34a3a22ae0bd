package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"runtime"
)

// Archive writes what docker load and podman load take: an OCI image layout with the manifest.json of older
// engines, for one platform.
func (i *Image) Archive(out io.Writer, tag string) error {
	layer, err := i.Layer()
	if err != nil {
		return err
	}
	compressed, err := Compress(layer)
	if err != nil {
		return err
	}
	config, err := i.config(layer)
	if err != nil {
		return err
	}
	const (
		configType = "application/vnd.oci.image.config.v1+json"
		layerType  = "application/vnd.oci.image.layer.v1.tar+gzip"
		imageType  = "application/vnd.oci.image.manifest.v1+json"
		indexType  = "application/vnd.oci.image.index.v1+json"
	)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": imageType,
		"config": descriptor(configType, config), "layers": []any{descriptor(layerType, compressed)},
	})
	if err != nil {
		return err
	}
	described := descriptor(imageType, manifest)
	described["annotations"] = map[string]string{
		"io.containerd.image.name": tag, "org.opencontainers.image.ref.name": tag,
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{described}})
	if err != nil {
		return err
	}
	old, err := json.Marshal([]any{map[string]any{"Config": blob(config), "RepoTags": []string{tag}, "Layers": []string{blob(compressed)}}})
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	for _, f := range []File{
		{Path: blob(compressed), Content: compressed},
		{Path: blob(config), Content: config},
		{Path: blob(manifest), Content: manifest},
		{Path: "index.json", Content: index},
		{Path: "manifest.json", Content: old},
		{Path: "oci-layout", Content: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: 0o644, Size: int64(len(f.Content)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := w.Write(f.Content); err != nil {
			return err
		}
	}
	return w.Close()
}

// config is the image's configuration, which names its layer by what it is before compression.
func (i *Image) config(layer []byte) ([]byte, error) {
	exposed := make(map[string]any)
	for _, port := range i.Exposed {
		exposed[port+"/tcp"] = struct{}{}
	}
	return json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"User": i.User, "Entrypoint": i.Entrypoint, "Cmd": i.Cmd, "Labels": i.Labels, "ExposedPorts": exposed,
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
		"history": []any{map[string]any{"created": "1970-01-01T00:00:00Z", "created_by": "make image-tar"}},
	})
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blob(content []byte) string { return "blobs/sha256/" + digest(content)[len("sha256:"):] }

func descriptor(mediaType string, content []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest(content), "size": len(content)}
}
