package e2e_test

import (
	"flag"
	"testing"

	"github.com/leasecron/leasecron/test/cluster"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait, most of the time.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("4")
	}
	cluster.Main(m)
}
