package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// TestEditWhileItRuns: a new job of the ConfigMap is active within a second, an invalid edit
// changes nothing and is told, and a repaired one takes effect. R016, R174, R175.
func TestEditWhileItRuns(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: old, path: /old, schedule: rate 1s}\n")
	a := cluster.StartApp(t)
	s := c.StartBeside(t, a, "shop-0")
	all := []*cluster.Sidecar{s}
	cluster.Eventually(t, 15*time.Second, "callbacks", func() bool { return len(arrivals(all, "old")) > 1 })

	edited := time.Now()
	c.SetJobs(t, "jobs:\n- {name: old, path: /old, schedule: rate 1s}\n- {name: new, path: /new, schedule: \"* * * * * *\"}\n")
	cluster.Eventually(t, 10*time.Second, "callbacks of the new job", func() bool { return len(arrivals(all, "new")) > 4 })
	came := arrivals(all, "new")
	if active := came[0].Body.ScheduledAt.Sub(edited); active > 2*time.Second {
		t.Errorf("the first instant of the new job lies %s after the edit, want at most 1 s and the wait for a full second", active)
	}
	for i, call := range came {
		if late := call.Lateness(); late > 2*time.Second {
			t.Errorf("instant %s of the new job arrived %s late", call.Body.ScheduledAt, late)
		}
		if i > 0 && call.Body.ScheduledAt.Sub(*came[i-1].Body.ScheduledAt) != time.Second {
			t.Errorf("between %s and %s instants of the new job are missing", came[i-1].Body.ScheduledAt, call.Body.ScheduledAt)
		}
	}
	t.Logf("first instant of the new job %s after the edit, %s late", came[0].Body.ScheduledAt.Sub(edited).Round(time.Millisecond), came[0].Lateness().Round(time.Millisecond))

	c.SetJobs(t, "jobs:\n- {name: old, path: /old, schedule: rate 5s}\n- {name: bad, path: /bad, scedule: rate 1s}\n")
	cluster.Eventually(t, 5*time.Second, "the metric says that the edit was refused", func() bool {
		return s.Metric("leasecron_config_last_reload_successful") == "0"
	})
	refused := s.WaitLog(t, "job definitions refused, the last good ones stay in force", time.Second)
	if text, _ := refused["error"].(string); !strings.Contains(text, "scedule") || !strings.Contains(text, "3:") {
		t.Errorf("the log says %q, want the unknown key and its line", text)
	}
	if status, body := s.Get("/readyz?verbose"); status != http.StatusOK || !strings.Contains(body, "scedule") {
		t.Errorf("/readyz?verbose = %d\n%s\nwant 200 and the refused edit", status, body)
	}
	before := len(arrivals(all, "new"))
	cluster.Eventually(t, 5*time.Second, "the last good definitions stay in force", func() bool { return len(arrivals(all, "new")) > before+2 })

	c.SetJobs(t, "jobs:\n- {name: old, path: /old, schedule: rate 1s}\n")
	cluster.Eventually(t, 5*time.Second, "the metric says that the repaired edit was taken", func() bool {
		return s.Metric("leasecron_config_last_reload_successful") == "1"
	})
	s.Stop(t, 15*time.Second)
}

// TestDefinitionsThatAreNotThere: a ConfigMap that is absent or invalid leaves the sidecar up,
// saying so; it starts to work when the ConfigMap is there.
func TestDefinitionsThatAreNotThere(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, c *cluster.Cluster)
		says    string
	}{
		"absent": {
			prepare: func(t *testing.T, c *cluster.Cluster) {
				t.Helper()
				kubetest.DeleteConfigMap(t, c.ControlPlane.AdminConfig(), c.Namespace, cluster.JobsObject)
			},
			says: cluster.JobsObject,
		},
		"invalid": {
			prepare: func(t *testing.T, c *cluster.Cluster) {
				t.Helper()
				c.SetJobs(t, "jobs:\n- {name: a, path: /a, schedule: \"61 * * * *\"}\n")
			},
			says: "61",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster.New(t, controlplane.Shared(t), "jobs: []\n")
			tt.prepare(t, c)
			a := cluster.StartApp(t)
			s := c.StartBeside(t, a, "shop-0")
			cluster.Eventually(t, 10*time.Second, "readyz tells what is wrong", func() bool {
				status, body := s.Get("/readyz?verbose")
				return status == http.StatusOK && strings.Contains(body, tt.says)
			})
			if got := s.Metric("leasecron_config_last_reload_successful"); got != "0" {
				t.Errorf("leasecron_config_last_reload_successful is %q, want 0", got)
			}
			good := "jobs:\n- {name: a, path: /a, schedule: rate 1s}\n"
			if name == "absent" {
				kubetest.ConfigMap(t, c.ControlPlane.AdminConfig(), c.Namespace, cluster.JobsObject, map[string]string{"jobs.yaml": good})
			} else {
				c.SetJobs(t, good)
			}
			cluster.Eventually(t, 10*time.Second, "callbacks once the definitions are good", func() bool {
				return len(arrivals([]*cluster.Sidecar{s}, "a")) > 0
			})
			s.Stop(t, 15*time.Second)
		})
	}
}
