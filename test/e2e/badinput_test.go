package e2e_test

import (
	"bytes"
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
)

// TestBadInput: each mistake is told in one clear line that names its place, with exit code 2.
func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "jobs:\n- {name: a, path: /a, schedule: rate 1m}\n")
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })

	tests := map[string]struct {
		settings map[string]string
		args     []string
		says     []string // all in one line
		lines    int      // 0: one
	}{
		"a setting that is no duration": {
			settings: map[string]string{"JOBS_FILE": good, "LEASE_DURATION": "15"}, says: []string{"LEASECRON_LEASE_DURATION", `"15"`},
		},
		"a setting that does not exist": {
			settings: map[string]string{"JOBS_FILE": good, "LEASE_DURATON": "15s"}, says: []string{"LEASECRON_LEASE_DURATON", "LEASECRON_LEASE_DURATION"},
		},
		"a flag that does not exist": {
			settings: map[string]string{"JOBS_FILE": good}, args: []string{"--no-such-flag"}, says: []string{"--no-such-flag", "--help"},
		},
		"a jobs file that is missing": {
			settings: map[string]string{"JOBS_FILE": filepath.Join(dir, "none.yaml")}, says: []string{"none.yaml"},
		},
		"an unknown key": {
			settings: map[string]string{"JOBS_FILE": file("key.yaml", "jobs:\n- {name: a, path: /a, scedule: rate 1m}\n")},
			says:     []string{"key.yaml:2:23", "scedule", "schedule"},
		},
		"an invalid cron expression": {
			settings: map[string]string{"JOBS_FILE": file("cron.yaml", "jobs:\n- name: a\n  path: /a\n  schedule: \"61 * * * *\"\n")},
			says:     []string{"cron.yaml:4:13", "minute", "61", "0-59"},
		},
		"an unknown zone": {
			settings: map[string]string{"JOBS_FILE": file("zone.yaml", "defaults: {timeZone: Europe/Berlim}\njobs:\n- {name: a, path: /a, schedule: rate 1m}\n")},
			says:     []string{"zone.yaml:1:22", "Europe/Berlim"},
		},
		"a target on a foreign host": {
			settings: map[string]string{"JOBS_FILE": file("host.yaml", "defaults: {target: \"http://example.com\"}\njobs:\n- {name: a, path: /a, schedule: rate 1m}\n")},
			says:     []string{"host.yaml:1:20", "example.com", "LEASECRON_ALLOWED_HOSTS"},
		},
		"a port in use": {
			settings: map[string]string{"JOBS_FILE": good, "LISTEN": taken.Addr().String()}, says: []string{"LEASECRON_LISTEN", taken.Addr().String()},
		},
		"two mistakes are both told": {
			settings: map[string]string{"JOBS_FILE": file("two.yaml", "jobs:\n- {name: A, path: /a, schedule: rate 1m}\n- {name: b, path: /b, schedule: rate 1}\n")},
			says:     []string{"two.yaml:2:10"}, lines: 2,
		},
		"no jobs at all": {settings: map[string]string{"JOBS_FILE": "", "!KUBECONFIG": "/nowhere"}, says: []string{"LEASECRON_JOBS_FILE"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, cluster.Program(), append([]string{"run"}, tt.args...)...)
			settings := cluster.Settings{"ELECTION": "standalone", "LOG_LEVEL": "warn"}
			maps.Copy(settings, tt.settings)
			cmd.Env = settings.Environment()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			_ = cmd.Run()
			text := strings.TrimSpace(stderr.String())
			if code := cmd.ProcessState.ExitCode(); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if got, want := strings.Count(text, "\n")+1, max(tt.lines, 1); got != want {
				t.Errorf("%d lines, want %d", got, want)
			}
			first, _, _ := strings.Cut(text, "\n")
			for _, want := range tt.says {
				if !strings.Contains(first, want) {
					t.Errorf("the error does not name %q", want)
				}
			}
			if strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
				t.Error("a stack trace")
			}
			if t.Failed() {
				t.Logf("stderr:\n%s", text)
			}
		})
	}
}
