//nolint:thelper // these are tests, which Run names
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

func watch(t *testing.T, b Backend) {
	watching, writing := b.Open(t), b.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan ledger.Version, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watching.Watch(ctx, ledger.NameLedger, func(v ledger.Version) { seen <- v })
	}()
	defer func() {
		cancel()
		<-ended
	}()
	_, version := load(t, writing, ledger.NameLedger)
	for n := range 4 {
		if !within(seen, version) {
			t.Fatalf("the watch did not tell version %q after %d writes", version, n)
		}
		version = replace(t, writing, ledger.NameLedger, version, fmt.Sprintf(`{"n":%d}`, n))
		_, other := load(t, writing, ledger.NameCatalog)
		replace(t, writing, ledger.NameCatalog, other, fmt.Sprintf(`{"n":%d}`, n))
	}
	if !within(seen, version) {
		t.Errorf("the watch did not tell the last version %q", version)
	}
}

func within(seen <-chan ledger.Version, want ledger.Version) bool {
	deadline := time.After(patience)
	for {
		select {
		case v := <-seen:
			if v == want {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

func watchEnds(t *testing.T, b Backend) {
	reason := errors.New("that will do")
	ctx, cancel := context.WithCancelCause(t.Context())
	first := make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		ended <- b.Open(t).Watch(ctx, ledger.NameLedger, func(ledger.Version) { once.Do(func() { close(first) }) })
	}()
	select {
	case <-first:
	case <-time.After(patience):
		t.Error("the watch did not tell the current version")
	}
	cancel(reason)
	select {
	case err := <-ended:
		if !errors.Is(err, reason) {
			t.Errorf("Watch() = %v, want %v", err, reason)
		}
	case <-time.After(patience):
		t.Error("the watch did not end")
	}
}
