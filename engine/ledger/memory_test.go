package ledger_test

import (
	"testing"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

func TestMemoryConforms(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Backend {
		store := ledger.NewSharedMemory()
		return ledgertest.Backend{Open: func(*testing.T) ledger.Store { return store }}
	})
}

func TestMemoryIsExclusiveUnlessShared(t *testing.T) {
	if !ledger.NewMemory().Exclusive() {
		t.Error("a memory of one node's own is not exclusive")
	}
	if ledger.NewSharedMemory().Exclusive() {
		t.Error("a shared memory is exclusive")
	}
}
