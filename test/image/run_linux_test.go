//go:build image

package image_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/image"
)

// maxSizeMB is what is promised of the image as registries count it.
const maxSizeMB = 15.0

// folder is where make image-rootfs puts the program and the certificates.
const folder = "../../bin/image"

const jobs = `
jobs:
  - {name: tick, path: /tick, schedule: rate 1s}
  - {name: weekdays, path: /weekdays, schedule: {cron: "0 9 * * MON-FRI", timeZone: Europe/Berlin}}
`

func TestSize(t *testing.T) {
	layer, err := read(t, folder).Layer()
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := image.Compress(layer)
	if err != nil {
		t.Fatal(err)
	}
	size := float64(len(compressed)) / 1e6
	t.Logf("image: %.2f MB compressed, %.2f MB not", size, float64(len(layer))/1e6)
	if size > maxSizeMB {
		t.Errorf("the image has %.2f MB, at most %.0f are promised", size, maxSizeMB)
	}
}

func TestCertificates(t *testing.T) {
	for _, f := range read(t, folder).Files {
		if !strings.HasSuffix(f.Path, ".crt") {
			continue
		}
		n := 0
		for block, rest := pem.Decode(f.Content); block != nil; block, rest = pem.Decode(rest) {
			n++
		}
		if n < 50 {
			t.Errorf("%s holds %d certificates, want those of the public authorities", f.Path, n)
		}
	}
}

// sandbox is the image's file system with a jobs document mounted into it, and nothing else.
func sandbox(t *testing.T) (i *image.Image, dir string) {
	t.Helper()
	dir = t.TempDir()
	i = read(t, folder)
	if err := i.Unpack(dir, image.File{Path: "/jobs/jobs.yaml", Mode: 0o644, Content: []byte(jobs)}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return i, dir
}

func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	i, dir := sandbox(t)
	cmd, err := i.Command(t.Context(), dir, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := i.Command(t.Context(), dir, nil, "version")
	if err != nil {
		t.Fatal(err)
	}
	if err := allowed.Run(); errors.Is(err, syscall.EPERM) {
		t.Skipf("the file system is assembled, and not run: it needs root, or a kernel that allows user namespaces (%v)", err)
	}
	return cmd
}

// R049: commands work with nothing but what is in the image: time zones are in the program.
func TestCommands(t *testing.T) {
	for want, args := range map[string][]string{
		"time zone data":         {"version"},
		"at 09:00 Europe/Berlin": {"next", "0 9 * * MON-FRI", "--tz", "Europe/Berlin"},
		"Asia/Shanghai":          {"next", "0 9 * * *", "--tz", "Asia/Shanghai"},
		"weekdays":               {"validate", "/jobs/jobs.yaml"},
	} {
		out, err := command(t, nil, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("sidecar %s: %v, want %q in\n%s", strings.Join(args, " "), err, want, out)
		}
	}
}

// The sidecar runs as the image's user on a root that it cannot write to, fires, and ends in good order.
func TestRun(t *testing.T) {
	a, err := app.Start(app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	cmd := command(t, []string{
		"LEASECRON_ELECTION=standalone", "LEASECRON_JOBS_FILE=/jobs/jobs.yaml", "LEASECRON_TARGET=" + a.URL(),
		"LEASECRON_LISTEN=127.0.0.1:0", "LEASECRON_API_LISTEN=127.0.0.1:0", "LEASECRON_LOG_FORMAT=json",
	}, "run")
	var log safeBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WaitFor(2, 20*time.Second); err != nil {
		_ = cmd.Process.Kill()
		t.Fatalf("%v\n%s", err, log.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, log.String())
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
