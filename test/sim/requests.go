package sim

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// request asks a node for something, as its API does. Number tells requests apart.
func (w *world) request(n *node, number int, ask func(ctx context.Context)) {
	w.tasks.Go(func() {
		who := "request " + strconv.Itoa(number)
		if n.gate(who) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(askedBy(who), 15*time.Second)
		defer cancel()
		ask(ctx)
	})
}

// enqueue asks for a run.
func (w *world) enqueue(slot, job, number int) {
	n := w.at(slot)
	if n == nil {
		return
	}
	jobs := w.definitions()
	name := jobs[job%len(jobs)].Name
	w.request(n, number, func(ctx context.Context) {
		r, err := n.engine.Enqueue(ctx, name, nil)
		w.logf(n.name, "enqueued %s: %s %v", name, r.ID, err)
		if err == nil && n.alive() {
			w.check.accepted(r)
		}
	})
}

// The numbers of requests that follow from something: those that a scenario draws are smaller.
const (
	taken  = 1_000_000 // to take a pause back
	tidied = 2_000_000 // to tidy up
)

// order is a pause that somebody asks for and takes back later.
type order struct {
	slot, job, number int
	lasts             time.Duration
	skip              bool
}

// everything is the job of an order that concerns all of them.
const everything = -1

// hold pauses a job or everything, and resumes it later at the same replica if that still lives.
func (w *world) hold(o order) {
	n := w.at(o.slot)
	if n == nil {
		return
	}
	var key run.Key
	if jobs := w.definitions(); o.job != everything {
		job := jobs[o.job%len(jobs)]
		key.Job = job.Name
		if len(job.Triggers) > 0 && o.number%3 == 0 { // one trigger of it alone
			key.Trigger = job.Triggers[0].Name
		}
	}
	var until time.Time
	if o.number%4 == 0 { // it ends by itself, for some before anybody takes it back
		until = n.wall().Add(o.lasts * time.Duration(1+o.number%3) / 2)
	}
	w.request(n, o.number, func(ctx context.Context) {
		_, err := n.engine.Pause(ctx, key, "simulated", until)
		w.logf(n.name, "PAUSED %q: %v", key, err)
	})
	w.later(o.lasts, func() {
		w.request(n, taken+o.number, func(ctx context.Context) {
			_, err := n.engine.Resume(ctx, key, o.skip)
			w.logf(n.name, "RESUMED %q, skip %v: %v", key, o.skip, err)
		})
	})
}

// tidy ends what waits for a person: pauses and runs that need review.
func (w *world) tidy() {
	for round := range 10 {
		time.Sleep(5 * time.Second)
		nodes := w.alive()
		n := nodes[round%len(nodes)]
		paused, review := w.check.waiting()
		for i, name := range paused {
			w.request(n, tidied+1000*round+i, func(ctx context.Context) {
				var key run.Key
				key.Job, key.Trigger, _ = strings.Cut(name, "/")
				if name == state.PauseAll {
					key = run.Key{}
				}
				_, err := n.engine.Resume(ctx, key, false)
				w.logf(n.name, "RESUMED %q: %v", key, err)
			})
		}
		w.request(n, tidied+1000*round+500, func(ctx context.Context) {
			for _, id := range review { // one after the other, as a person does it
				_, err := n.engine.Resolve(ctx, id, run.StateSucceeded, "it was done")
				w.logf(n.name, "RESOLVED run %s: %v", id, err)
			}
		})
	}
}
