package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/state"
)

// overtaken is a store that loses the answer to the first write of the ledger, before which comes back
// another leader takes over.
type overtaken struct {
	ledger.Store
	once sync.Once
}

func (s *overtaken) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (v ledger.Version, err error) {
	first := false
	if name == ledger.NameLedger {
		s.once.Do(func() { first = true })
	}
	v, err = s.Store.Replace(ctx, name, from, data)
	if !first || err != nil {
		return v, err
	}
	_, err = ledger.NewPort[state.Ledger](s.Store, name).Swap(ctx, func(l *state.Ledger) error {
		l.Term, l.Holder = l.Term+1, "other"
		return nil
	})
	return "", errors.Join(ledger.ErrUnknown, err)
}

func TestALeaderThatWasOvertakenDoesNotTakeTheOthersTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, &overtaken{Store: store}, "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1s")})
		l, leave := n.lead()
		time.Sleep(5 * time.Second)
		l.mu.Lock()
		resigned := l.resigned
		l.mu.Unlock()
		if !errors.Is(resigned, engine.ErrTermOver) {
			t.Errorf("resigned because of %v, want %v", resigned, engine.ErrTermOver)
		}
		if got := ledgerOf(t, store); got.Term != 2 || got.Holder != "other" || len(n.app.Calls()) != 0 {
			t.Errorf("ledger of %s, term %d, %d calls, want that of the other, term 2, and none", got.Holder, got.Term, len(n.app.Calls()))
		}
		leave()
		n.close()
	})
}
