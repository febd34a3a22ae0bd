package bench_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/cluster"
)

// samples at full length make the limits of time count.
var samples = flag.Int("bench.samples", 20, "callbacks per ledger; with 100 and more, limits of time count")

// full reports whether the machine is there for the measurement alone.
func full() bool { return *samples >= 100 }

func TestMain(m *testing.M) { cluster.Main(m) }

// distribution is a set of durations in order.
type distribution []time.Duration

func newDistribution(d []time.Duration) distribution { return slices.Sorted(slices.Values(d)) }

// quantile returns the value below or at which q of all lie, 0 < q <= 1.
func (d distribution) quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[min(max(int(q*float64(len(d))+0.9999)-1, 0), len(d)-1)]
}

// print writes a line of the table that says shows.
func (d distribution) print(out io.Writer, name string) {
	fmt.Fprintf(out, "%-22s %10s %10s %10s %10s %10s\n", name, ms(d.quantile(0)), ms(d.quantile(0.5)), ms(d.quantile(0.9)), ms(d.quantile(0.99)), ms(d.quantile(1)))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// say prints for people; go test shows it with -v only.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
