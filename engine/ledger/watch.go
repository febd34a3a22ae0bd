package ledger

import (
	"context"
	"slices"
	"sync"
	"time"
)

// ownWrites is how many of its last versions a Document knows again, and how many changes it
// looks through at once.
const ownWrites = 64

// answerWait bounds how long a change may wait for the answers to this Document's own writes. A
// change that is reported for nothing costs its reader one read.
const answerWait = time.Second

// Watch calls changed as [Store.Watch] does: also for what this Document wrote itself.
func (d *Document[T]) Watch(ctx context.Context, changed func(Version)) error {
	return d.store.Watch(ctx, d.name, changed)
}

// WatchOthers calls changed when the watch begins and after the document may have been changed by
// others, until ctx ends, and returns the cause of that. What this Document wrote is left out; what
// it only read is not, because whoever read it need not be who watches. Nor is what it wrote on top of a
// change that was not told yet: a watch may tell of the last version alone.
func (d *Document[T]) WatchOthers(ctx context.Context, changed func()) error {
	judged, stop := context.WithCancel(ctx)
	var news news
	news.signal = make(chan struct{}, 1)
	var group sync.WaitGroup
	group.Go(func() {
		covered := 0
		for {
			select {
			case <-judged.Done():
				return
			case <-news.signal:
			}
			versions, overflow := news.take()
			// The watch is often faster than the answer that says which version is ours.
			d.own.wait(judged)
			if (d.own.news(versions, &covered) || overflow) && judged.Err() == nil {
				changed()
			}
		}
	})
	err := d.store.Watch(ctx, d.name, news.add)
	stop()
	group.Wait()
	return err
}

// news are versions that a watch has told, until somebody looks at them.
type news struct {
	signal chan struct{}

	mu       sync.Mutex
	versions []Version
	overflow bool
}

func (n *news) add(v Version) {
	n.mu.Lock()
	if len(n.versions) < ownWrites {
		n.versions = append(n.versions, v)
	} else {
		n.overflow = true
	}
	n.mu.Unlock()
	select {
	case n.signal <- struct{}{}:
	default: // it is still to be looked at
	}
}

func (n *news) take() (versions []Version, overflow bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	versions, overflow = n.versions, n.overflow
	n.versions, n.overflow = nil, false
	return versions, overflow
}

// own knows the versions that one Document has written, and those of others that were told. The zero value
// is ready.
type own struct {
	mu       sync.Mutex
	versions []Version     // the last few
	untold   int           // how many were written on top of a version that is not among them
	flying   int           // writes that have no answer yet
	idle     chan struct{} // closed when there are none
}

// begin notes that a write is sent; end, which must follow, what became of it and on which version it stands.
func (o *own) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.flying++; o.flying == 1 {
		o.idle = make(chan struct{})
	}
}

func (o *own) end(from, v Version, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.flying--; o.flying == 0 {
		close(o.idle)
	}
	if err == nil {
		if !slices.Contains(o.versions, from) {
			o.untold++
		}
		o.know(v)
	}
}

// know adds to the versions. The caller holds o.mu.
func (o *own) know(v Version) {
	if len(o.versions) == ownWrites {
		o.versions = slices.Delete(o.versions, 0, 1)
	}
	o.versions = append(o.versions, v)
}

// wait returns when all writes have been answered, or after a while.
func (o *own) wait(ctx context.Context) {
	o.mu.Lock()
	flying, idle := o.flying, o.idle
	o.mu.Unlock()
	if flying == 0 {
		return
	}
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-idle:
	}
}

// news reports whether there is a change of others in what a watch has told, or below what was written
// since: covered counts what was reported of that.
func (o *own) news(told []Version, covered *int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	others := o.untold > *covered
	*covered = o.untold
	for _, v := range told {
		if slices.Contains(o.versions, v) {
			continue
		}
		if others = true; v != "" { // an object may vanish more than once
			o.know(v)
		}
	}
	return others
}
