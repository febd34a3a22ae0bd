package e2e_test

import (
	"testing"

	"github.com/leasecron/leasecron/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }
