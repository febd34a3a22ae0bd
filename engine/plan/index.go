package plan

import (
	"container/heap"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Index holds the next undecided instant of every trigger that follows the watermark, so that a
// turn costs what is due and not what is defined. Triggers that lag are looked at in each turn and
// are only listed here: those of the ledger that is planned on need not be the same, because a write
// whose answer was lost may have moved them without the index.
//
// It belongs to one goroutine. [Plan] only reads it; [Index.Apply] changes it, once what was
// planned is committed.
type Index struct {
	queue dueQueue
	place map[run.Key]int
	lags  map[run.Key]bool
}

// Move says that a trigger's next undecided instant is another one; a zero At takes it out. Lags
// says that the trigger has an instant nevertheless, and is looked at in each turn.
type Move struct {
	Key  run.Key
	At   time.Time
	Lags bool
}

// NewIndex computes the next instant of every trigger from the definitions and the ledger.
func NewIndex(d *Definitions, l *state.Ledger) *Index {
	x := &Index{place: make(map[run.Key]int, len(d.Tracks)), lags: make(map[run.Key]bool)}
	x.queue.place = x.place
	for key, track := range d.Tracks {
		if l.Triggers[key].Lags() {
			x.lags[key] = true
			continue
		}
		if at, ok := track.Undecided(l); ok {
			x.place[key] = len(x.queue.items)
			x.queue.items = append(x.queue.items, due{key, at})
		}
	}
	heap.Init(&x.queue)
	return x
}

// Apply makes the moves of a plan that was committed.
func (x *Index) Apply(moves []Move) {
	for _, m := range moves {
		if m.Lags {
			x.lags[m.Key] = true
		} else {
			delete(x.lags, m.Key)
		}
		i, known := x.place[m.Key]
		switch {
		case m.At.IsZero() && known:
			heap.Remove(&x.queue, i)
		case m.At.IsZero():
		case known:
			x.queue.items[i].at = m.At
			heap.Fix(&x.queue, i)
		default:
			heap.Push(&x.queue, due{m.Key, m.At})
		}
	}
}

// Next returns the earliest instant in the index.
func (x *Index) Next() (time.Time, bool) {
	if len(x.queue.items) == 0 {
		return time.Time{}, false
	}
	return x.queue.items[0].at, true
}

// Len returns how many triggers the index holds.
func (x *Index) Len() int { return len(x.queue.items) }

// until returns the triggers due at or before the horizon, and the earliest instant after it.
// It walks only the part of the heap that is due, and its border.
func (x *Index) until(horizon time.Time) (keys []run.Key, next time.Time) {
	stack := []int{0}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if i >= len(x.queue.items) {
			continue
		}
		item := x.queue.items[i]
		if item.at.After(horizon) {
			next = earlier(next, item.at)
			continue
		}
		keys = append(keys, item.key)
		stack = append(stack, 2*i+1, 2*i+2)
	}
	return keys, next
}

// earlier returns the earlier of two times, of which zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

type due struct {
	key run.Key
	at  time.Time
}

// dueQueue is a heap by instant that knows where each key is.
type dueQueue struct {
	items []due
	place map[run.Key]int
}

func (q *dueQueue) Len() int           { return len(q.items) }
func (q *dueQueue) Less(i, j int) bool { return q.items[i].at.Before(q.items[j].at) }

func (q *dueQueue) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.place[q.items[i].key], q.place[q.items[j].key] = i, j
}

func (q *dueQueue) Push(item any) {
	d, ok := item.(due)
	if !ok {
		return
	}
	q.place[d.key] = len(q.items)
	q.items = append(q.items, d)
}

func (q *dueQueue) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	delete(q.place, last.key)
	return last
}
