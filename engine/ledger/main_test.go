package ledger_test

import (
	"testing"

	"github.com/leasecron/leasecron/test/controlplane"
)

func TestMain(m *testing.M) {
	child()
	controlplane.Main(m)
}
