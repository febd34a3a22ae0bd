package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/ledger/ledgertest"
)

// tally is a small document: how often it was changed, and by whom.
type tally struct {
	Count int            `json:"count"`
	By    map[string]int `json:"by,omitempty"`
}

func increment(t *tally) error {
	t.Count++
	return nil
}

func newTally(store ledger.Store, options ...ledger.Option) *ledger.Document[tally] {
	return ledger.NewDocument[tally](store, ledger.NameLedger, options...)
}

func countOf(t *testing.T, store ledger.Store) int {
	t.Helper()
	value, _, err := newTally(store).Read(t.Context())
	if err != nil {
		t.Fatalf("Read() = %v", err)
	}
	return value.Count
}

// Each row is one swap that adds one, against a store that fails as ordered.
func TestSwapUnderFaults(t *testing.T) {
	tests := map[string]struct {
		script []ledgertest.Fault
		want   int // the count afterwards
		err    error
		calls  int // of change
	}{
		"an answered write is one call": {
			calls: 1, want: 1,
		},
		"a lost request is sent again from the same version": {
			script: []ledgertest.Fault{ledgertest.DropRequest}, calls: 2, want: 1,
		},
		"a write whose answer was lost is found by its ID": {
			script: []ledgertest.Fault{ledgertest.DropAnswer}, calls: 1, want: 1,
		},
		"lost requests and lost answers in a row change once": {
			script: []ledgertest.Fault{ledgertest.DropRequest, ledgertest.DropRequest, ledgertest.DropAnswer}, calls: 3, want: 1,
		},
		"a refused write is surely not stored": {
			script: []ledgertest.Fault{ledgertest.Refuse, ledgertest.Refuse}, calls: 1, want: 0, err: ledgertest.ErrRefused,
		},
		"a refusal after a lost request does not settle it": {
			script: []ledgertest.Fault{ledgertest.DropRequest, ledgertest.Refuse}, calls: 3, want: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledgertest.NewFaults(ledger.NewMemory())
				store.Script(tt.script...)
				calls := 0
				_, _, err := newTally(store).Swap(t.Context(), func(v *tally) error {
					calls++
					return increment(v)
				})
				if !errors.Is(err, tt.err) {
					t.Errorf("Swap() error = %v, want %v", err, tt.err)
				}
				if got := countOf(t, store); got != tt.want {
					t.Errorf("count = %d, want %d", got, tt.want)
				}
				if calls != tt.calls {
					t.Errorf("change was called %d times, want %d", calls, tt.calls)
				}
			})
		})
	}
}

func TestNewerFormatIsNeverWritten(t *testing.T) {
	store := ledger.NewMemory()
	newer := []byte(`{"format":2,"writeId":"x","count":7}`)
	_, from, _ := store.Load(t.Context(), ledger.NameLedger)
	if _, err := store.Replace(t.Context(), ledger.NameLedger, from, newer); err != nil {
		t.Fatal(err)
	}
	doc := newTally(store)
	if _, _, err := doc.Read(t.Context()); !errors.Is(err, ledger.ErrNewerFormat) {
		t.Errorf("Read() = %v, want %v", err, ledger.ErrNewerFormat)
	}
	if _, _, err := doc.Swap(t.Context(), increment); !errors.Is(err, ledger.ErrNewerFormat) {
		t.Errorf("Swap() = %v, want %v", err, ledger.ErrNewerFormat)
	}
	got, _, _ := store.Load(t.Context(), ledger.NameLedger)
	if diff := cmp.Diff(string(newer), string(got)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// The swaps of a lone writer cost one write each and no read.
func TestLoneWriterReadsOnce(t *testing.T) {
	store := ledgertest.NewFaults(ledger.NewMemory())
	doc := newTally(store)
	for range 10 {
		if _, _, err := doc.Swap(t.Context(), increment); err != nil {
			t.Fatal(err)
		}
	}
	if loads, replaces := store.Asked(); loads != 1 || replaces != 10 {
		t.Errorf("10 swaps took %d reads and %d writes, want 1 and 10", loads, replaces)
	}
}

func TestAbortedChangeLeavesNoTrace(t *testing.T) {
	reason := errors.New("not like this")
	for _, stop := range []error{reason, ledger.ErrNoChange} {
		t.Run(strings.ReplaceAll(stop.Error(), " ", "-"), func(t *testing.T) {
			store := ledgertest.NewFaults(ledger.NewMemory())
			doc := newTally(store)
			if _, _, err := doc.Swap(t.Context(), func(v *tally) error { v.By = map[string]int{"a": 1}; return nil }); err != nil {
				t.Fatal(err)
			}
			got, _, err := doc.Swap(t.Context(), func(v *tally) error { v.By["a"] = 9; v.Count = 9; return stop })
			want := &tally{By: map[string]int{"a": 1}}
			if errors.Is(stop, ledger.ErrNoChange) {
				if err != nil {
					t.Errorf("Swap() = %v, want no error", err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("Swap() (-want +got):\n%s", diff)
				}
			} else if err != stop { //nolint:errorlint // as it is
				t.Errorf("Swap() = %v, want %v itself", err, stop)
			}
			got, _, err = doc.Swap(t.Context(), func(v *tally) error { v.By["b"] = 2; return nil })
			if diff := cmp.Diff(&tally{By: map[string]int{"a": 1, "b": 2}}, got); diff != "" || err != nil {
				t.Errorf("next Swap() = %v (-want +got):\n%s", err, diff)
			}
			if _, replaces := store.Asked(); replaces != 2 {
				t.Errorf("%d writes, want 2", replaces)
			}
		})
	}
}

// A change that refuses by outdated state is asked again with what is stored now.
func TestRefusalIsBelievedOnlyOfFreshState(t *testing.T) {
	store := ledger.NewSharedMemory()
	stale := newTally(store)
	if _, _, err := stale.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newTally(store).Swap(t.Context(), increment); err != nil {
		t.Fatal(err)
	}
	notYet := errors.New("nothing counted yet")
	got, _, err := stale.Swap(t.Context(), func(v *tally) error {
		if v.Count == 0 {
			return notYet
		}
		return increment(v)
	})
	if err != nil || got.Count != 2 {
		t.Errorf("Swap() = %v, %v; want a count of 2", got, err)
	}
}

func TestSwapEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledgertest.NewFaults(ledger.NewMemory())
		store.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.Hang })
		gone := errors.New("term is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, _, err := newTally(store).Swap(ctx, increment)
			done <- err
		}()
		synctest.Wait()
		cancel(gone)
		if err := <-done; !errors.Is(err, ledger.ErrUnknown) || !errors.Is(err, gone) {
			t.Errorf("Swap() = %v, want %v and %v", err, ledger.ErrUnknown, gone)
		}
	})
}

// R107: a store that never answers clearly ends in an error, not in a loop.
func TestSwapGivesUp(t *testing.T) {
	tests := map[string]struct {
		fault ledgertest.Fault
		want  error
	}{
		"no write is answered": {ledgertest.DropRequest, ledger.ErrUnknown},
		"every write is lost":  {ledgertest.Late, ledger.ErrUnknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledgertest.NewFaults(ledger.NewMemory())
				store.Decide(func(ledger.Name) ledgertest.Fault { return tt.fault })
				var seen ledger.Swapped
				doc := newTally(store, ledger.WithMaxAttempts(5), ledger.WithObserver(func(s ledger.Swapped) { seen = s }))
				if _, _, err := doc.Swap(t.Context(), increment); !errors.Is(err, tt.want) {
					t.Errorf("Swap() = %v, want %v", err, tt.want)
				}
				if seen.Attempts != 5 || !errors.Is(seen.Err, tt.want) || seen.Bytes == 0 {
					t.Errorf("observed %+v, want 5 attempts and the error", seen)
				}
			})
		})
	}
}

// A write that lands after it was looked for in vain must not make the change happen twice, and
// one that lands after the swap gave up must be seen by the next.
func TestLateWrites(t *testing.T) {
	tests := map[string]struct {
		change func(call int, v *tally) error
		want   tally
	}{
		"the same result again is the same write": {
			change: func(_ int, v *tally) error { return increment(v) },
			want:   tally{Count: 1},
		},
		"another result is computed anew on top of the late one": {
			change: func(call int, v *tally) error {
				if v.By == nil {
					v.By = map[string]int{}
				}
				v.By[string(rune('a'+call))]++
				return nil
			},
			want: tally{By: map[string]int{"b": 1, "d": 1}},
		},
		"a second thought settles the late write before it is believed": {
			change: func(call int, v *tally) error {
				if call > 1 || v.Count > 0 {
					return ledger.ErrNoChange
				}
				return increment(v)
			},
			want: tally{Count: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledgertest.NewFaults(ledger.NewMemory())
				store.Script(ledgertest.Late)
				call := 0
				got, _, err := newTally(store).Swap(t.Context(), func(v *tally) error {
					call++
					if call == 2 {
						defer store.Land() // after it was read, before the second write
					}
					return tt.change(call, v)
				})
				if err != nil {
					t.Fatalf("Swap() = %v", err)
				}
				if diff := cmp.Diff(&tt.want, got); diff != "" {
					t.Errorf("Swap() (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A change that lands and is at once written over by others is still found.
func TestLostAnswerUnderLaterWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := ledger.NewSharedMemory()
		store := ledgertest.NewFaults(memory)
		others := newTally(memory)
		store.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.DropAnswer })
		store.Delay(0)
		doc := newTally(overwritten{store, func() {
			for range 5 {
				if _, _, err := others.Swap(t.Context(), increment); err != nil {
					t.Error(err)
				}
			}
		}})
		got, _, err := doc.Swap(t.Context(), increment)
		if err != nil || got.Count != 6 {
			t.Errorf("Swap() = %v, %v; want a count of 6", got, err)
		}
	})
}

// R107: one whose every answer is lost, and whose every write others bury too deep to be found, ends.
func TestSwapGivesUpUnderBusyOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := ledger.NewSharedMemory()
		store := ledgertest.NewFaults(memory)
		others := newTally(memory)
		store.Decide(func(ledger.Name) ledgertest.Fault { return ledgertest.DropAnswer })
		doc := newTally(overwritten{store, func() {
			for range 20 {
				if _, _, err := others.Swap(t.Context(), increment); err != nil {
					t.Error(err)
				}
			}
		}}, ledger.WithMaxAttempts(5))
		if _, _, err := doc.Swap(t.Context(), increment); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("Swap() = %v, want %v", err, ledger.ErrUnknown)
		}
	})
}

// Once others have written, a lost write can land no more, and whether it did shows. What a change
// says then is the whole truth, unless an earlier result of it is stored or may be.
func TestLostWritesUnderLaterWrites(t *testing.T) {
	refusal := errors.New("no more")
	tests := map[string]struct {
		fault   ledgertest.Fault
		others  int // writes
		second  error
		want    *tally
		err     error // of the swap
		unknown bool  // whether it leaves anything open
	}{
		"it surely was not stored, and nothing is to be done": {
			fault: ledgertest.Late, others: 1, second: ledger.ErrNoChange, want: &tally{Count: 1},
		},
		"it surely was not stored, and is refused now": {
			fault: ledgertest.Late, others: 7, second: refusal, err: refusal,
		},
		"it may have been stored, so long ago that it cannot be told": {
			fault: ledgertest.DropAnswer, others: 20, second: refusal, err: refusal, unknown: true,
		},
		"it was stored and is found": {
			fault: ledgertest.DropAnswer, others: 7, want: &tally{Count: 107},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := ledger.NewSharedMemory()
				store := ledgertest.NewFaults(memory)
				store.Script(tt.fault)
				others := newTally(memory)
				doc := newTally(overwritten{store, func() {
					for range tt.others {
						if _, _, err := others.Swap(t.Context(), increment); err != nil {
							t.Error(err)
						}
					}
				}})
				got, _, err := doc.Swap(t.Context(), func(v *tally) error {
					if v.Count > 0 {
						return tt.second
					}
					v.Count = 100
					return nil
				})
				store.Land()
				if !errors.Is(err, tt.err) || errors.Is(err, ledger.ErrUnknown) != tt.unknown {
					t.Errorf("Swap() error = %v, want %v, leaving anything open: %v", err, tt.err, tt.unknown)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("Swap() (-want +got):\n%s", diff)
				}
				if _, replaces := store.Asked(); replaces != 1 {
					t.Errorf("%d writes were sent, want 1", replaces)
				}
			})
		})
	}
}

// SwapOnce calls change again only where it is sure that no earlier result of it is stored.
func TestSwapOnceEndsInDoubt(t *testing.T) {
	tests := map[string]struct {
		fault  ledgertest.Fault
		others int
		calls  int
		err    error
	}{
		"it surely was not stored":         {ledgertest.Late, 7, 2, nil},
		"it was stored and is found":       {ledgertest.DropAnswer, 7, 1, nil},
		"it was stored, under many others": {ledgertest.DropAnswer, 20, 1, ledger.ErrUnknown},
		"a late write, under many others":  {ledgertest.Late, 20, 1, ledger.ErrUnknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := ledger.NewSharedMemory()
				store := ledgertest.NewFaults(memory)
				store.Script(tt.fault)
				others := newTally(memory)
				doc := newTally(overwritten{store, func() {
					for range tt.others {
						if _, _, err := others.Swap(t.Context(), increment); err != nil {
							t.Error(err)
						}
					}
					tt.others = 0
				}})
				calls := 0
				_, _, err := doc.SwapOnce(t.Context(), func(v *tally) error {
					calls++
					v.Count += 100
					return nil
				})
				store.Land()
				if !errors.Is(err, tt.err) || calls != tt.calls {
					t.Errorf("SwapOnce() = %v after %d calls of change, want %v after %d", err, calls, tt.err, tt.calls)
				}
			})
		})
	}
}

// overwritten lets others write right after each write.
type overwritten struct {
	ledger.Store
	others func()
}

func (o overwritten) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	v, err := o.Store.Replace(ctx, name, from, data)
	o.others()
	return v, err
}
