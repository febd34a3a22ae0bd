package bench_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// everySecond has a start, so that both ledgers have the same instants: what else the machine does
// at one of them then hits both.
const everySecond = "jobs:\n- {name: tick, path: /tick, schedule: rate 1s start=2026-01-01T00:00:00.371Z}\n"

// maxAbove is how much later the 99th percentile may be with the ledger in Kubernetes than with
// one in memory.
const maxAbove = 5 * time.Millisecond

// TestLateness fires a job each second with the ledger in Kubernetes (etcd with fsync), and beside
// it, at the same time, with the same program and a ledger in memory. A durable decision costs no
// lateness, since it is committed ahead; and nothing is sent before its instant.
func TestLateness(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), everySecond)
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(everySecond), 0o600); err != nil {
		t.Fatal(err)
	}
	durable := c.Start(t, "shop-0")
	beside := cluster.StartApp(t)
	memory := cluster.Start(t, beside, cluster.Settings{
		"ELECTION": "standalone", "LEDGER": "memory", "JOBS_FILE": file, "TARGET": beside.URL(), "APP_HEALTH_URL": beside.URL() + "/health",
	})

	inKubernetes, inMemory := lateness(t, durable.App), lateness(t, memory.App)
	say("lateness from the instant to the arrival, %d callbacks of a job with rate 1s, both at the same time:", *samples)
	say("%-22s %10s %10s %10s %10s %10s", "ledger", "least", "p50", "p90", "p99", "max")
	inKubernetes.print(os.Stdout, "Kubernetes")
	inMemory.print(os.Stdout, "memory")
	above := inKubernetes.quantile(0.99) - inMemory.quantile(0.99)
	say("p99 of Kubernetes above memory: %s (limit %s)", ms(above), ms(maxAbove))
	if full() && above > maxAbove {
		t.Errorf("p99 is %s above that of a ledger in memory, want at most %s", above, maxAbove)
	}
	durable.Stop(t, 15*time.Second)
	memory.Stop(t, 15*time.Second)
}

// lateness waits for the samples that an app gets, each of the next instant. The first ones, which
// a program that starts may miss by its own start, do not count.
func lateness(t *testing.T, a *app.App) distribution {
	t.Helper()
	const warmUp = 3
	var came []cluster.Arrival
	cluster.Eventually(t, time.Duration(*samples+60)*time.Second, "enough callbacks", func() bool {
		came = cluster.Arrivals("tick", a)
		return len(came) >= *samples+warmUp
	})
	var late []time.Duration
	for i, c := range came[warmUp : *samples+warmUp] {
		late = append(late, c.Lateness())
		if c.Lateness() < 0 {
			t.Errorf("the callback of %s arrived %s early", c.Body.ScheduledAt, -c.Lateness())
		}
		if before := came[warmUp+i-1]; c.Body.ScheduledAt.Sub(*before.Body.ScheduledAt) != time.Second {
			t.Errorf("after the callback of %s comes the one of %s", before.Body.ScheduledAt, c.Body.ScheduledAt)
		}
	}
	return newDistribution(late)
}
