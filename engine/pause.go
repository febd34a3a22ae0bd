package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// pauseWait bounds how long Pause and Resume wait for the leader to act by them.
const pauseWait = 10 * time.Second

// ErrNoLeader says that a change is stored and nobody has acted by it yet, because nobody leads.
var ErrNoLeader = errors.New("stored, but no leader has taken note of it yet")

// Pause keeps a trigger, a job (key.Trigger empty) or everything (key zero) from firing until it
// is resumed or until, if that is not zero, has come. Instants meanwhile stay undecided and are not
// missed; manual runs still work. Pausing what is paused replaces reason and end.
//
// Any replica may be asked. It returns once the leader acts by it, with the runs that were decided
// already and will still run, or [ErrNoLeader] when that did not happen within 10 s.
func (e *Engine) Pause(ctx context.Context, key run.Key, reason string, until time.Time) ([]run.Run, error) {
	_, runs, err := e.changePauses(ctx, key, func(c *state.Catalog, name string, now time.Time) {
		if c.Pauses == nil {
			c.Pauses = make(map[string]state.Pause)
		}
		c.Pauses[name] = state.Pause{Reason: reason, At: now, Until: until}
	})
	return runs, err
}

// Resume takes a pause back. The misfire policy decides the instants of the pause; with skip they
// are passed over instead, reason resume-skip. Resuming what is not paused, or whose pause has ended by
// itself, changes nothing. It returns the pauses that still hold what was resumed: of a job those of its
// triggers too, of everything none.
func (e *Engine) Resume(ctx context.Context, key run.Key, skip bool) ([]plan.Hold, error) {
	if err := e.o.ClockCheck(); skip && err != nil {
		return nil, fmt.Errorf("this replica cannot say up to when instants are passed over, ask another one: %w", err)
	}
	catalog, _, err := e.changePauses(ctx, key, func(c *state.Catalog, name string, now time.Time) {
		pause, paused := c.Pauses[name]
		delete(c.Pauses, name)
		if skip && paused && pause.Active(now) { // what no pause has kept back is not this call's to drop
			if c.Skips == nil {
				c.Skips = make(map[string]time.Time)
			}
			c.Skips[name] = now
		}
	})
	if err != nil {
		return nil, err
	}
	return stillHeld(catalog, key, e.wall()), nil
}

// changePauses writes to the catalog and waits for the ledger swap that names the new revision.
func (e *Engine) changePauses(ctx context.Context, key run.Key, change func(c *state.Catalog, name string, now time.Time)) (*state.Catalog, []run.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, pauseWait)
	defer cancel()
	catalog, err := e.makingRoom(ctx, e.o.Catalog.SwapOnce, func(c *state.Catalog) error {
		if err := e.known(c, key); err != nil {
			return err
		}
		change(c, state.PauseKey(key), e.wall())
		c.Revision++
		return nil
	})
	if errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrUnknown) {
		return nil, nil, run.Errorf(run.CodeLedgerFull, "the catalog has no room for this, even without old versions: define fewer jobs or smaller ones (%v)", err)
	}
	if err != nil {
		return nil, nil, err
	}
	e.catalogWatch.changed()
	for {
		ledger, err := e.o.Ledger.Read(ctx)
		if err == nil && ledger.CatalogRevision >= catalog.Revision {
			return catalog, concerned(ledger, key), nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ErrNoLeader
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// known reports an error where the catalog has no such job or trigger: another one where it is defined
// and will be there soon.
func (e *Engine) known(c *state.Catalog, key run.Key) error {
	if key.Job == "" {
		return nil
	}
	j := c.Jobs[key.Job]
	if j == nil || j.Newest().Removed() {
		if e.wants(key.Job) {
			return errUnnoted(key.Job)
		}
		return fmt.Errorf("%w: %q", ErrJobNotFound, key.Job)
	}
	if key.Trigger != "" && !hasTrigger(j.Newest(), key.Trigger) {
		return run.Errorf(run.CodeTriggerNotFound, "job %q has no trigger %q", key.Job, key.Trigger)
	}
	return nil
}

// concerned lists the open runs of what was paused.
func concerned(l *state.Ledger, key run.Key) []run.Run {
	var out []run.Run
	for _, r := range l.Runs {
		if (key.Job == "" || r.Key.Job == key.Job) && (key.Trigger == "" || r.Key.Trigger == key.Trigger) {
			out = append(out, r)
		}
	}
	return out
}

// hasTrigger reports whether a version defines a trigger.
func hasTrigger(v state.Version, name string) bool {
	var job config.Job
	if err := json.Unmarshal(v.Definition, &job); err != nil {
		return false
	}
	return slices.ContainsFunc(job.Triggers, func(t config.Trigger) bool { return t.Name == name })
}
