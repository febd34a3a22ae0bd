package ledger_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

func TestWatchOthers(t *testing.T) {
	tests := map[string]struct {
		write func(own, other *ledger.Document[tally], t *testing.T)
		want  int // how often it tells, after what it tells when it begins
	}{
		"nothing happens": {
			write: func(_, _ *ledger.Document[tally], _ *testing.T) {},
			want:  0,
		},
		"own writes are no news": {
			write: func(own, _ *ledger.Document[tally], t *testing.T) {
				for range 5 {
					swap(t, own)
				}
			},
			want: 0,
		},
		"a write of others is": {
			write: func(_, other *ledger.Document[tally], t *testing.T) { swap(t, other) },
			want:  1,
		},
		"even after it was read for another purpose": {
			write: func(own, other *ledger.Document[tally], t *testing.T) {
				swap(t, other)
				if _, _, err := own.Read(t.Context()); err != nil {
					t.Error(err)
				}
			},
			want: 1,
		},
		"and while own writes wait for their answers": {
			write: func(own, other *ledger.Document[tally], t *testing.T) {
				swap(t, own)
				swap(t, other)
				swap(t, own)
			},
			want: 1,
		},
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
				tt.write(own, other, t)
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

func swap(t *testing.T, doc *ledger.Document[tally]) {
	t.Helper()
	if _, _, err := doc.Swap(t.Context(), increment); err != nil {
		t.Error(err)
	}
}
