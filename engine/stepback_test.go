package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
)

// Without an API server whose clock could be compared (standalone) a leader decides through a step of its clock;
// what the catalog says of times ahead is cut when the clock has come back, as the ledger is.
func TestAnEditThatWasMadeWhileTheClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, events := &stepped{}, &observed{}
		n := start(t, ledger.NewMemory(), "a", &app{}, func(o *engine.Options) { o.Now, o.Observer = clock.now, events })
		n.engine.Define([]config.Job{job("old", "rate 1s")})
		_, leave := n.lead()
		time.Sleep(10 * time.Second)
		clock.step(24 * time.Hour)
		time.Sleep(15 * time.Second)
		n.engine.Define([]config.Job{job("new", "* * * * * *")}) // old has left
		time.Sleep(5 * time.Second)
		clock.step(-24 * time.Hour)
		time.Sleep(20 * time.Second)
		old, fresh := callsOf("old", n.app), callsOf("new", n.app)
		time.Sleep(time.Hour)
		if got := callsOf("old", n.app) - old; got > 30 {
			t.Errorf("the job that left was called %d times in the hour after the clock came back", got)
		}
		if got := callsOf("new", n.app) - fresh; got < 3500 {
			t.Errorf("the new job was called %d times in the hour after the clock came back", got)
		}
		leave()
		n.close()
	})
}

// The ledger is still ahead when the edit is taken in.
func TestAnEditRightAfterTheClockCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &stepped{}
		n := start(t, ledger.NewMemory(), "a", &app{}, func(o *engine.Options) { o.Now = clock.now })
		n.engine.Define([]config.Job{job("old", "rate 1h")})
		_, leave := n.lead()
		time.Sleep(10 * time.Second)
		clock.step(24 * time.Hour)
		time.Sleep(15 * time.Second)
		clock.step(-24 * time.Hour)
		n.engine.Define([]config.Job{job("new", "* * * * * *")})
		time.Sleep(time.Hour)
		if got := callsOf("new", n.app); got < 3500 {
			t.Errorf("the new job was called %d times in the hour after the clock came back", got)
		}
		leave()
		n.close()
	})
}
