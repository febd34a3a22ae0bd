package ledger_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

func TestWatchOthers(t *testing.T) {
	tests := map[string]struct {
		steps string // what happens: own write, other's write, own read
		want  int    // how often it tells, after what it tells when it begins
	}{
		"nothing happens":                                   {steps: "", want: 0},
		"own writes are no news":                            {steps: "own own own own own", want: 0},
		"a write of others is":                              {steps: "other", want: 1},
		"even after it was read for another purpose":        {steps: "other read", want: 1},
		"and while own writes wait for their answers":       {steps: "own other own", want: 1},
		"and below an own write, of which alone it is told": {steps: "deaf other read own hear", want: 1},
		"once, however many own writes follow":              {steps: "deaf other read own hear own own own", want: 1},
		"own writes after it was told are no news":          {steps: "other read own own", want: 1},
		"each of several, unless they come close together":  {steps: "other own other own own", want: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := ledger.NewSharedMemory()
				slow := ledgertest.NewFaults(memory)
				slow.Delay(100 * time.Millisecond) // so the watch tells before the answer comes
				deaf := &lastOnly{Store: slow}
				own, other := newTally(deaf), newTally(memory)
				ctx, cancel := context.WithCancel(t.Context())
				told, ended := 0, make(chan struct{})
				go func() {
					defer close(ended)
					_ = own.WatchOthers(ctx, func() { told++ })
				}()
				synctest.Wait()
				if told != 1 {
					t.Errorf("told %d times when it began, want once", told)
				}
				for step := range strings.FieldsSeq(tt.steps) {
					var err error
					switch step {
					case "own":
						_, _, err = own.Swap(t.Context(), increment)
					case "other":
						_, _, err = other.Swap(t.Context(), increment)
					case "read":
						_, _, err = own.Read(t.Context())
					case "deaf":
						deaf.on.Store(true)
					case "hear":
						synctest.Wait()
						deaf.hear()
					}
					if err != nil {
						t.Fatalf("%s: %v", step, err)
					}
				}
				synctest.Wait()
				cancel()
				<-ended
				if got := told - 1; got != tt.want {
					t.Errorf("told %d times, want %d", got, tt.want)
				}
			})
		})
	}
}

// lastOnly is a store of which a watch, while it is on, keeps what it has to tell to itself, but for the last.
type lastOnly struct {
	ledger.Store
	on      atomic.Bool
	last    ledger.Version
	changed func(ledger.Version)
}

func (s *lastOnly) Watch(ctx context.Context, name ledger.Name, changed func(ledger.Version)) error {
	s.changed = changed
	return s.Store.Watch(ctx, name, func(v ledger.Version) {
		if s.last = v; !s.on.Load() {
			changed(v)
		}
	})
}

func (s *lastOnly) hear() {
	s.on.Store(false)
	s.changed(s.last)
}
