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

func TestJobsAreAnnouncedAfterATakeoverThatHasNothingToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, events := ledger.NewSharedMemory(), &observed{}
		a, b := start(t, store, "a", &app{}), start(t, store, "b", &app{}, func(o *engine.Options) { o.Observer = events })
		jobs := []config.Job{job("daily", "rate 24h")}
		a.engine.Define(jobs)
		b.engine.Define(jobs)
		_, leave := a.lead()
		time.Sleep(time.Minute)
		leave()
		_, leave = b.lead()
		time.Sleep(time.Hour)
		if got := len(eventsOf[engine.JobsChanged](events)); got != 1 {
			t.Errorf("JobsChanged told %d times in the first hour of the second leader, want 1", got)
		}
		leave()
		a.close()
		b.close()
	})
}

// A term beyond which there is none must not make the token fall, nor the next leader believe in another one.
func TestTheGreatestTermIsRefused(t *testing.T) {
	for _, doc := range []ledger.Name{ledger.NameLedger, ledger.NameCatalog} {
		t.Run(string(doc), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				put(t, store, doc, `{"format":1,"writeId":"x","term":9223372036854775807}`)
				log := &lines{}
				n := start(t, store, "a", &app{}, func(o *engine.Options) { o.Logger = log.logger() })
				n.engine.Define([]config.Job{job("tick", "rate 5s")})
				_, leave := n.lead()
				time.Sleep(20 * time.Second)
				if log.count("is the greatest that there is") == 0 || len(n.app.Calls()) != 0 {
					t.Errorf("%d calls, want none, and the term named in the log", len(n.app.Calls()))
				}
				leave()
				n.close()
			})
		})
	}
}
