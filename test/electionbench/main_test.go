package electionbench_test

import (
	"cmp"
	"flag"
	"log/slog"
	"os"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/leasecron/leasecron/test/cluster"
)

var full = flag.Bool("election.full", false, "measure at full length and with default settings; limits of time count")

var trials = flag.Int("election.trials", 0, "how many hand-overs; 0: 30 at full length, else 2")

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of it waits.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("12")
	}
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go tells each attempt
	cluster.Main(m)
}

// size is how much is measured.
type size struct {
	handOvers, crashes int
	quiet              time.Duration // for how long requests are counted
	lease              time.Duration
	deadline, retry    time.Duration // of client-go; ours follow from lease
}

// sizes are the full ones, with the defaults of both electors, or those among other tests.
func sizes() size {
	if *full {
		return size{handOvers: cmp.Or(*trials, 30), crashes: 10, quiet: 3 * time.Minute, lease: 15 * time.Second, deadline: 10 * time.Second, retry: 2 * time.Second}
	}
	return size{handOvers: cmp.Or(*trials, 2), crashes: 1, quiet: 4 * time.Second, lease: 4 * time.Second, deadline: 3 * time.Second, retry: 500 * time.Millisecond}
}

// TestElection measures, and prints one table. The hand-over of our sidecars comes first and has the
// machine to itself, because its limit is one of milliseconds; the rest mostly waits, at the same time.
func TestElection(t *testing.T) {
	var results table
	t.Run("hand-over", func(t *testing.T) { handOver(t, &results) })
	t.Run("waiting", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *table){
			"hand-over of client-go": clientGoHandOver, "crash": crash, "requests": requests, "cut off": cutOff,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, &results)
			})
		}
	})
	results.print(os.Stdout)
	for _, e := range results.exceeded {
		t.Error(e)
	}
}
