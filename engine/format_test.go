package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
)

// put writes a document as another program would.
func put(t *testing.T, store ledger.Store, name ledger.Name, text string) {
	t.Helper()
	_, version, err := store.Load(t.Context(), name)
	if err == nil {
		_, err = store.Replace(t.Context(), name, version, []byte(text))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A program that finds a newer format does not campaign and writes nothing, and does again once it can
// read what is stored (rule 3).
func TestANewerFormatIsNotCampaignedFor(t *testing.T) {
	for _, name := range []ledger.Name{ledger.NameLedger, ledger.NameCatalog, ledger.NameHistory} {
		t.Run(string(name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, events, changed := ledger.NewSharedMemory(), &observed{}, make(chan struct{}, 10)
				put(t, store, name, `{"format":2,"writeId":"x","term":3}`)
				n := start(t, store, "a", &app{}, func(o *engine.Options) {
					o.Observer, o.MayLeadChanged = events, func() { changed <- struct{}{} }
				})
				n.engine.Define([]config.Job{job("tick", "rate 1s")})
				if n.engine.MayLead() == nil {
					t.Error("it may lead before it has looked")
				}
				time.Sleep(time.Second)
				if err := n.engine.MayLead(); !errors.Is(err, engine.ErrNewerFormat) || n.engine.FormatError() == nil {
					t.Errorf("MayLead() = %v, want that the format is newer", err)
				}
				if told := eventsOf[engine.FormatNewer](events); len(told) != 1 || told[0].Document != string(name) {
					t.Errorf("events %v, want one of %s", told, name)
				}
				data, _, _ := store.Load(t.Context(), name)
				if string(data) != `{"format":2,"writeId":"x","term":3}` {
					t.Errorf("it was written over: %s", data)
				}
				put(t, store, name, `{"format":1,"writeId":"y"}`)
				for len(changed) > 0 {
					<-changed
				}
				for range 10 { // as an elector asks
					_ = n.engine.MayLead()
					time.Sleep(5 * time.Second)
				}
				if err := n.engine.MayLead(); err != nil || len(changed) == 0 {
					t.Errorf("MayLead() = %v after the format is readable again, told %d times", err, len(changed))
				}
				_, leave := n.lead()
				time.Sleep(5 * time.Second)
				if len(n.app.Calls()) == 0 {
					t.Error("no calls after it was readable again")
				}
				leave()
				n.close()
			})
		})
	}
}

// A leader that is overtaken by a newer program gives its term up at once, not after a lease duration.
func TestALeaderThatFindsANewerFormatStepsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		n := start(t, store, "a", &app{})
		n.engine.Define([]config.Job{job("tick", "rate 1s")})
		l, leave := n.lead()
		time.Sleep(5 * time.Second)
		put(t, store, ledger.NameLedger, `{"format":2,"writeId":"x","term":3}`)
		time.Sleep(3 * time.Second)
		l.mu.Lock()
		resigned := l.resigned
		l.mu.Unlock()
		if !errors.Is(resigned, engine.ErrNewerFormat) {
			t.Errorf("resigned because of %v, want %v", resigned, engine.ErrNewerFormat)
		}
		put(t, store, ledger.NameLedger, `{"format":1,"writeId":"y","term":3}`)
		time.Sleep(time.Minute)
		leave()
		n.close()
	})
}

// Who cannot ask does not wait for the answer: an outage is another matter.
func TestAnOutageIsNoNewerFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &withoutHistory{Store: ledger.NewSharedMemory(), hangs: true}
		store.out.Store(true)
		n := start(t, store, "a", &app{})
		_ = n.engine.MayLead()
		time.Sleep(3 * time.Second)
		if err := n.engine.MayLead(); err != nil {
			t.Errorf("MayLead() = %v during an outage, want nil", err)
		}
		n.close()
	})
}
