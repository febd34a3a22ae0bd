package invoker_test

import (
	"sync"
	"testing"

	"github.com/leasecron/leasecron/invoker"
)

// R134, where a socket can be looked at: the app hangs up on an idle connection while the last question is asked: the last look at the socket
// comes after it.
func TestHangUpDuringTheLastQuestionIsNoFailedRun(t *testing.T) {
	for range 200 {
		// Nobody reads the connection when it is closed: what came before would be there unread.
		s := &halfServer{last: "idle", half: make(chan struct{}), gone: make(chan struct{})}
		url := s.start(t)
		client := newClient(t, invoker.Options{})
		checkOutcome(t, invoke(client, attempt(url)), succeeded, "")
		var q ask
		a := q.on(attempt(url))
		mayStart := a.MayStart
		var once sync.Once
		a.MayStart = func() error {
			once.Do(func() { close(s.half); <-s.gone })
			return mayStart()
		}
		checkOutcome(t, invoke(client, a), succeeded, "")
		if _, started := q.counts(); started != 1 {
			t.Errorf("Started was told %d times", started)
		}
		if n := s.read(a.Run.ID); n != 1 {
			t.Errorf("the request was read %d times", n)
		}
		client.Close()
	}
}
