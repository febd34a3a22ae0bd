package chaos

import (
	"flag"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
)

// The settings of a run; the defaults are those of the short one among all other tests.
var (
	length   = flag.Duration("chaos.time", 30*time.Second, "for how long faults happen")
	seed     = flag.Uint64("chaos.seed", 1, "makes the faults; 0: a random one")
	sidecars = flag.Int("chaos.sidecars", 3, "how many sidecars")
)

func TestMain(m *testing.M) { cluster.Main(m) }

// TestChaos breaks sidecars, their connections and the API server for a while. The short run, too,
// restarts the API server and ends with someone who leads (R087, R096). `make chaos` runs
// it for longer.
func TestChaos(t *testing.T) {
	t.Parallel()
	o := options{Time: *length, Seed: *seed, Sidecars: *sidecars, Out: os.Stdout}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if o.Sidecars < 1 || o.Sidecars > 20 || o.Time < 10*time.Second || o.Time > 12*time.Hour {
		t.Fatal("want 1 to 20 sidecars, and 10s to 12h")
	}
	// Each sidecar has its turn at least once, and a run of ten minutes forces fifty losses.
	o.Losses = max(o.Sidecars, min(50, int(o.Time/(12*time.Second))))
	logs, err := os.MkdirTemp("", "leasecron-chaos-") //nolint:usetesting // kept when the run fails
	if err != nil {
		t.Fatal(err)
	}
	o.Logs = logs
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of all processes, and the list of faults: %s", logs)
			return
		}
		_ = os.RemoveAll(logs)
	})
	// Ctrl-C ends the run in order: nothing is left running.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := torment(ctx, t, o)
	report(o.Out, o, r)
	for _, v := range r.Violations {
		t.Error(v)
	}
	if len(r.Jobs) < 10 {
		t.Errorf("only %d jobs are accounted for", len(r.Jobs))
	}
	for _, idle := range idleFaults(r.Faults) {
		t.Error(idle)
	}
}
