package engine

import (
	"context"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// Alive is the answer to an app's heartbeat: go on.
type Alive struct {
	Run        run.Run
	TimeoutAt  time.Time // when the attempt's timeout ends the run
	NextBefore time.Time // when its silence does; zero: it may be silent
}

// Heartbeat notes that the app works on a run, and how far it is: percent is from 0 to 100, nil and an
// empty text say nothing new. It costs no write: what the app says reaches the ledger with what this
// node says of the run anyway, every third of the node timeout at most. Only the node that has the run
// can take it. A run that has ended is [run.CodeRunOver].
func (e *Engine) Heartbeat(ctx context.Context, id string, percent *int, text string) (Alive, error) {
	if alive, known, err := e.heard(id, percent, run.OneLine(text, run.MaxProgressText)); known {
		return alive, err
	}
	r, open, err := e.find(ctx, id)
	switch {
	case err != nil:
		return Alive{}, err
	case !open || r.State == run.StateNeedsReview:
		return Alive{}, over(id, r.State)
	case r.State == run.StateQueued:
		return Alive{}, run.Errorf(run.CodeRunNotAwaited, "run %q has not been sent", id)
	}
	return Alive{}, run.Errorf(run.CodeNoScheduler, "run %q is with %s and not with this sidecar, %s: ask the one beside the app, or this one again if it has just started", id, r.Node, e.o.Node)
}

// heard notes a heartbeat of a run that this node holds; it reports false where it does not.
func (e *Engine) heard(id string, percent *int, text string) (alive Alive, known bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.held[id]
	switch {
	case h == nil || h.lost:
		return Alive{}, false, nil
	case h.stage == stageEnded:
		return Alive{}, true, over(id, h.outcome.State)
	case !h.inFlight():
		return Alive{}, true, run.Errorf(run.CodeRunNotAwaited, "run %q has not been sent", id)
	}
	h.open.heard, h.open.forgiven = time.Now(), false
	said := run.Progress{At: e.wall()}
	if was := h.open.said; was != nil {
		said.Percent, said.Text = was.Percent, was.Text
	}
	if percent != nil {
		value := *percent
		said.Percent = &value
	}
	if text != "" {
		said.Text = text
	}
	news := h.open.said == nil || text != "" && text != h.open.said.Text ||
		percent != nil && (h.open.said.Percent == nil || *percent != *h.open.said.Percent)
	h.open.said = &said
	if news && !h.open.news {
		h.open.news = true
		e.poke() // the loop has to know when to write it
	}
	alive = Alive{Run: h.run, TimeoutAt: e.wallAt(h.open.expires)}
	alive.Run.State, alive.Run.Progress = run.StateRunning, h.open.said
	if h.stage == stageOpen && h.job.HeartbeatTimeout > 0 {
		alive.NextBefore = e.wallAt(h.open.heard.Add(h.job.HeartbeatTimeout))
	}
	return alive, true, nil
}

// asHeld shows runs as this node knows them, where it is ahead of the ledger: that a request has been
// sent, and what the app has said since. A run of which no request has begun, because the app cannot be
// reached, is pending, also where the ledger calls it running lest somebody take it for surely not sent.
func (e *Engine) asHeld(runs []run.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range runs {
		r := &runs[i]
		if !r.State.Claimed() {
			continue
		}
		h := e.held[r.ID]
		held := h != nil && h.inFlight()
		if held && r.FiredAt.IsZero() {
			r.FiredAt = h.run.FiredAt
		}
		switch {
		case r.FiredAt.IsZero():
			r.State = run.StatePending
		case held:
			r.State = run.StateRunning
		}
		if held && h.open.said != nil {
			r.Progress = h.open.said
		}
	}
}
