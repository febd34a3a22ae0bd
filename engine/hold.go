package engine

import (
	"context"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// Holds lists the pauses that hold one trigger of the job: those of the whole job and its own.
func (s *JobStatus) Holds(trigger string) []plan.Hold {
	var holds []plan.Hold
	for _, h := range s.PausedBy {
		if h.By != plan.HoldTrigger || h.Trigger == trigger {
			holds = append(holds, h)
		}
	}
	return holds
}

// PausedTriggers counts the triggers of the job that something pauses.
func (s *JobStatus) PausedTriggers() int {
	if len(s.PausedBy) == 0 {
		return 0
	}
	n := 0
	for _, t := range s.Job.Triggers {
		if len(s.Holds(t.Name)) > 0 {
			n++
		}
	}
	return n
}

// paused reports whether a pause keeps all of the job from firing: one of the whole job, or one of each
// trigger that may still be due. done tells of those that will not be.
func (s *JobStatus) paused(done func(config.Trigger) bool) bool {
	if slices.ContainsFunc(s.PausedBy, func(h plan.Hold) bool { return h.By != plan.HoldTrigger }) {
		return true
	}
	if len(s.PausedBy) == 0 {
		return false
	}
	for _, t := range s.Job.Triggers {
		if len(s.Holds(t.Name)) == 0 && !done(t) {
			return false
		}
	}
	return true
}

// done reports of a trigger whether it will not be due any more. Of a fixed delay that is not told: it has
// no instant either while its run goes on.
func (v *view) done(job string, tracks []*plan.Track) func(config.Trigger) bool {
	return func(t config.Trigger) bool {
		if t.Schedule.Kind == schedule.KindManual {
			return true
		}
		for _, track := range tracks {
			if track.Key == (run.Key{Job: job, Trigger: t.Name}) {
				_, due := track.Undecided(v.ledger)
				return !due && t.Schedule.Kind != schedule.KindEvery
			}
		}
		return false
	}
}

// Everything returns the pause of all jobs that is in force, or nil, whichever replica is asked. Its
// errors are those of [Engine.Jobs].
func (e *Engine) Everything(ctx context.Context) (*plan.Hold, error) {
	v := e.view.Load()
	if !v.leading {
		var err error
		if v, err = e.look(ctx); err != nil {
			return nil, err
		}
	}
	return v.everything(e.wall()), nil
}

func (v *view) everything(now time.Time) *plan.Hold {
	if holds := v.definitions.Holds("", nil, now); len(holds) > 0 {
		return &holds[0]
	}
	return nil
}

// stillHeld lists what holds a trigger, or a job and its triggers, by a catalog. Nothing holds everything
// but its own pause.
func stillHeld(c *state.Catalog, key run.Key, now time.Time) []plan.Hold {
	record := c.Jobs[key.Job]
	if record == nil {
		return nil
	}
	d := plan.Compile(&state.Catalog{Jobs: map[string]*state.Job{key.Job: record}, Pauses: c.Pauses})
	triggers := []string{key.Trigger}
	if key.Trigger == "" {
		current, _ := d.Jobs[key.Job].Current()
		triggers = triggerNames(current.Config(key.Job))
	}
	return d.Holds(key.Job, triggers, now)
}

func triggerNames(j config.Job) []string {
	names := make([]string, len(j.Triggers))
	for i, t := range j.Triggers {
		names[i] = t.Name
	}
	return names
}
