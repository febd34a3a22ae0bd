package ledger_test

import (
	"context"
	"strings"
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
		"nothing happens":                                  {steps: "", want: 0},
		"own writes are no news":                           {steps: "own own own own own", want: 0},
		"a write of others is":                             {steps: "other", want: 1},
		"even after it was read for another purpose":       {steps: "other read", want: 1},
		"and while own writes wait for their answers":      {steps: "own other own", want: 1},
		"each of several, unless they come close together": {steps: "other own other own own", want: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := ledger.NewSharedMemory()
				slow := ledgertest.NewFaults(memory)
				slow.Delay(100 * time.Millisecond) // so the watch tells before the answer comes
				own, other := newTally(slow), newTally(memory)
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
