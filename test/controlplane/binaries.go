package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/test/spawn"
)

// packages are the components that Build knows, as packages of the nested module.
var packages = map[string]string{
	"etcd":           "go.etcd.io/etcd/server/v3",
	"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
	"kubectl":        "k8s.io/kubernetes/cmd/kubectl",
}

// Build returns a folder that holds the named components (etcd, kube-apiserver, kubectl).
// KUBEBUILDER_ASSETS names one that is ready; otherwise what is missing in the user's cache
// folder is built from the nested module, which takes minutes once, and log says so. Several
// processes may call it at the same time: one builds, the others wait.
func Build(ctx context.Context, log io.Writer, names ...string) (string, error) {
	for _, name := range names {
		if packages[name] == "" {
			return "", fmt.Errorf("unknown component %q", name)
		}
	}
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if missing := missingIn(dir, names); len(missing) > 0 {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS=%s has no %s", dir, strings.Join(missing, ", "))
		}
		return dir, nil
	}
	source, err := componentsDir()
	if err != nil {
		return "", err
	}
	versions, err := readVersions(source)
	if err != nil {
		return "", err
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder for the control plane's binaries: %w", err)
	}
	dir := filepath.Join(caches, "leasecron", "controlplane", versions.key())
	if len(missingIn(dir, names)) == 0 {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"), true)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	for _, name := range missingIn(dir, names) { // again: another process may have built them meanwhile
		if err := versions.build(ctx, log, name, source, dir); err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
	}
	return dir, nil
}

func missingIn(dir string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
}

// versions identify a set of binaries.
type versions struct {
	kubernetes, etcd string
	sums             string // hash of everything that pins the sources
}

var (
	kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)
	etcdVersion       = regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/server/v3 (v\S+)`)
)

func readVersions(source string) (versions, error) {
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return versions{}, err
	}
	sum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return versions{}, err
	}
	k, e := kubernetesVersion.FindSubmatch(mod), etcdVersion.FindSubmatch(mod)
	if k == nil || e == nil {
		return versions{}, fmt.Errorf("%s/go.mod does not name the versions of Kubernetes and etcd", source)
	}
	hash := sha256.Sum256(slices.Concat(mod, sum))
	return versions{kubernetes: string(k[1]), etcd: string(e[1]), sums: fmt.Sprintf("%x", hash[:4])}, nil
}

func (v versions) key() string {
	return fmt.Sprintf("%s-%s-%s-%s", v.kubernetes, v.etcd, runtime.Version(), v.sums)
}

func (v versions) build(ctx context.Context, log io.Writer, name, source, dir string) error {
	version, flags := v.etcd, "-s -w"
	if name != "etcd" {
		// Without these the server calls itself v0.0.0-master, and clients take it for that.
		const pkg = "k8s.io/component-base/version"
		version = v.kubernetes
		parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
			pkg, version, parts[0], parts[1])
	}
	say := func(format string, a ...any) { fmt.Fprintf(log, "controlplane: "+format+"\n", a...) }
	hint := ""
	if name == "kube-apiserver" {
		hint = ", which takes about six minutes on two cores"
	}
	say("building %s %s from source%s; it is kept in %s", name, version, hint, dir)

	start := time.Now()
	tmp := filepath.Join(dir, name+".building")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags="+flags, "-o", tmp, packages[name])
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 10 * time.Second
	if err := spawn.Start(cmd); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%w\n%s", err, output.Bytes())
			}
			say("built %s in %s", name, time.Since(start).Round(time.Second))
			// Renamed last, so that an interrupted build is never taken for a finished one.
			return os.Rename(tmp, filepath.Join(dir, name))
		case <-tick.C:
			say("still building %s (%s so far)", name, time.Since(start).Round(time.Second))
		}
	}
}

// lockFile takes the exclusive lock of a file and holds it until the file is closed.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// componentsDir finds the nested module from anywhere inside the repository.
func componentsDir() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module github.com/leasecron/leasecron\n")) {
			return filepath.Join(dir, "test", "controlplane", "components"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the leasecron repository: set KUBEBUILDER_ASSETS", wd)
		}
	}
}
