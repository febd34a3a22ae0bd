package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"path"
	"slices"
	"strings"
)

// Layer is the file system as a tar archive: files in the order of their paths, all of root's, of the time 0.
func (i *Image) Layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := make(map[string]bool)
	files := slices.SortedFunc(slices.Values(i.Files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		for _, dir := range parents(f.Path) {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, Format: tar.FormatUSTAR}); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path[1:], Mode: f.Mode, Size: int64(len(f.Content)), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// parents are the folders of an absolute path, outermost first, without the slash at the begin.
func parents(file string) []string {
	var out []string
	for dir := path.Dir(file[1:]); dir != "."; dir = path.Dir(dir) {
		out = append(out, dir)
	}
	slices.Reverse(out)
	return out
}

// Compress is what a registry stores of a layer: gzip, without a name or a time.
func Compress(layer []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out) // the level that engines push with
	if _, err := w.Write(layer); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}
