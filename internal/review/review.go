// Package review looks at jobs documents before they are loaded: when each trigger is due,
// which jobs crowd into one minute, and what an edit changes. It computes with the code that
// the engine runs, and its work is bounded for any document that the sidecar accepts.
package review

import (
	"fmt"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
)

// Trigger is one trigger of a document with its computed instants.
type Trigger struct {
	Key    run.Key
	Job    *config.Job
	Paused bool
	Line   *schedule.Timeline
}

// Triggers compiles the triggers of a document in the order of its jobs. A rate or a fixed
// delay without a start counts from now, as it does when the document is loaded for the first
// time; where every replica runs a rate by itself, it counts from the Unix epoch.
func Triggers(doc config.Document, now time.Time) ([]Trigger, error) {
	var all []Trigger
	for i := range doc.Jobs {
		job := &doc.Jobs[i]
		for _, t := range job.Triggers {
			key := run.Key{Job: job.Name, Trigger: t.Name}
			env := schedule.Env{Key: key.String(), FirstSeen: now, Calendars: job.Calendars}
			if job.Scope == config.ScopeInstance && t.Schedule.Kind == schedule.KindRate {
				env.FirstSeen = time.Time{}
			}
			line, err := t.Schedule.Compile(env)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			all = append(all, Trigger{Key: key, Job: job, Paused: job.Paused, Line: line})
		}
	}
	return all, nil
}

// foreseeable reports whether the instants follow from the document alone. Those of a fixed
// delay depend on the runs, and those of a rate without a start on when it was first seen.
func (t Trigger) foreseeable() bool {
	s := t.Line.Schedule()
	switch s.Kind {
	case schedule.KindEvery:
		return false
	case schedule.KindRate:
		return !s.Start.IsZero() || t.Job.Scope == config.ScopeInstance
	case schedule.KindManual, schedule.KindCron, schedule.KindOnce:
	}
	return true
}
