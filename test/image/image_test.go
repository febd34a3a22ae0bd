package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/test/image"
)

func TestMain(m *testing.M) {
	image.Inside()
	os.Exit(m.Run())
}

const dockerfile = "../../Dockerfile"

// context has what a build of the image with a binary that exists already needs.
func context(t *testing.T, binary, roots string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"sidecar": 0o755, "ca-certificates.crt": 0o644} {
		content := map[string]string{"sidecar": binary, "ca-certificates.crt": roots}[name]
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, context string) *image.Image {
	t.Helper()
	i, err := image.Read(dockerfile, context, map[string]string{"VERSION": "v1.2.3", "COMMIT": "0123abc"})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// The image has the program, the certificates of public authorities for https targets, and nothing else.
func TestWhatIsInTheImage(t *testing.T) {
	i := read(t, context(t, "program", "certificates"))
	want := &image.Image{
		Files: []image.File{
			{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Content: []byte("certificates")},
			{Path: "/sidecar", Mode: 0o755, Content: []byte("program")},
		},
		User: "65532:65532", Entrypoint: []string{"/sidecar"}, Cmd: []string{"run"}, Exposed: []string{"9470"}, Labels: i.Labels,
	}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
	for label, want := range map[string]string{
		"title": "leasecron", "version": "v1.2.3", "revision": "0123abc", "licenses": "MIT", "source": "https://github.com/leasecron/leasecron",
	} {
		if got := i.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	archive := func() []byte {
		var out bytes.Buffer
		if err := read(t, context(t, "program", "certificates")).Archive(&out, "leasecron:v1"); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	first := archive()
	if !bytes.Equal(first, archive()) {
		t.Error("the archive differs from one time to the next")
	}
	layer, err := read(t, context(t, "program", "certificates")).Layer()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	r := tar.NewReader(bytes.NewReader(layer))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d, time %s, want root's and 1970", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"etc/", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt", "sidecar"}, names); diff != "" {
		t.Errorf("names in the layer (-want +got):\n%s", diff)
	}
}

// An instruction that this package does not know is refused: nothing may be in the image that its tests do
// not run.
func TestUnknownInstructionsAreRefused(t *testing.T) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"RUN true", "ADD bin/sidecar /sidecar", "COPY bin /bin", "COPY --from=nowhere /a /b"} {
		path := filepath.Join(t.TempDir(), "Dockerfile")
		if err := os.WriteFile(path, append(bytes.Clone(text), line+"\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := image.Read(path, context(t, "a", "b"), nil); err == nil || !strings.Contains(err.Error(), strings.Fields(line)[0]) {
			t.Errorf("%s: error %v", line, err)
		}
	}
}

// The image is built from source as make build builds.
func TestTheDockerfileBuildsAsTheMakefile(t *testing.T) {
	flags := func(path string) map[string]bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[string]bool)
		plain := strings.ReplaceAll(string(text), "$(version_package)", "github.com/leasecron/leasecron/internal/version")
		for _, flag := range regexp.MustCompile(`CGO_ENABLED=0|-trimpath|-s -w|-X \S+?=|\./cmd/sidecar`).FindAllString(plain, -1) {
			found[flag] = true
		}
		return found
	}
	if diff := cmp.Diff(flags("../../Makefile"), flags(dockerfile)); diff != "" {
		t.Errorf("how the program is built (-Makefile +Dockerfile):\n%s", diff)
	}
}

// A build from source sees each folder that the program is made from.
func TestTheBuildContextHasAllSources(t *testing.T) {
	ignore, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/sidecar")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "github.com/leasecron/leasecron/")
		if !ok {
			continue
		}
		n++
		if folder, _, _ := strings.Cut(own, "/"); !strings.Contains(string(ignore), "\n!"+folder+"\n") {
			t.Errorf(".dockerignore keeps %s out of the build", folder)
		}
	}
	if n < 10 {
		t.Errorf("the program has %d packages: is the list read right?", n)
	}
}
