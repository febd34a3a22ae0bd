package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/logkey"
)

// syncDefinitions brings the desired jobs into the catalog. What it changes decides instants from
// effectiveAt on, and takes effect with the ledger swap that names the new revision.
func (e *Engine) syncDefinitions(ctx context.Context, t *term, want desired) error {
	named := e.view.Load().ledger.CatalogRevision
	if want.sequence == t.sequence && t.catalog.Revision == named && t.unraised == 0 && !t.uncut {
		return nil
	}
	watermark := e.view.Load().ledger.Watermark
	var changed []string
	sync := func(c *state.Catalog) error {
		changed = nil
		if c.Term > t.number {
			return ErrTermOver
		}
		if err := cmp.Or(t.lease.Check(), e.o.ClockCheck()); err != nil {
			return err
		}
		now := e.wall()
		effective, possible := now, e.possible(now)
		if watermark.After(possible) { // of a clock that came back: the next swap cuts it to now
			watermark = now
		}
		if c.Revision == 0 {
			effective = want.seen(now)
		}
		if watermark.After(effective) {
			effective = watermark
		}
		raised := raiseUnnamed(c, named, watermark)
		raised = cutVersions(c, effective, possible) || raised
		if want.sequence > 0 {
			var err error
			if changed, err = merge(c, want.jobs, effective, now.Add(e.o.MaxClockSkew), e.o.Instance); err != nil {
				return err
			}
		}
		if len(changed) == 0 && !raised {
			return ErrNoChange
		}
		plan.DropVersions(c, e.view.Load().ledger, state.MaxVersions)
		c.Revision++
		c.Term = t.number
		return nil
	}
	catalog, err := e.makingRoom(ctx, e.o.Catalog.Swap, sync)
	if errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrUnknown) && t.unraised != 0 {
		// What was written already makes it no larger, and nothing may be decided without it.
		sequence := want.sequence
		want.sequence = 0
		if raised, alone := e.o.Catalog.Swap(ctx, sync); alone == nil {
			t.unraised = 0
			e.define(t, raised, e.view.Load().ledger)
		}
		want.sequence = sequence
	}
	if err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	t.sequence, t.unraised, t.uncut = want.sequence, 0, false
	if len(changed) > 0 {
		slices.Sort(changed)
		e.log.Info("job definitions changed", slog.Any("jobs", changed), slog.Int64("revision", catalog.Revision))
	}
	if catalog.Revision != t.definitions.Revision {
		e.define(t, catalog, e.view.Load().ledger)
	}
	return nil
}

// rereadCatalog reads the catalog anew when another replica has changed it, as a pause does.
func (e *Engine) rereadCatalog(ctx context.Context, t *term) error {
	if !e.catalogWatch.stale.Swap(false) {
		return nil
	}
	catalog, err := e.o.Catalog.Read(ctx)
	if err != nil {
		e.catalogWatch.stale.Store(true)
		return fmt.Errorf("read catalog: %w", err)
	}
	ledger := e.view.Load().ledger
	switch {
	case catalog.Revision == t.catalog.Revision:
	case len(unnamedBehind(catalog, ledger.CatalogRevision, ledger.Watermark)) > 0:
		t.unraised = catalog.Revision // in force when that is written
	default:
		t.unraised = 0
		e.define(t, catalog, ledger)
	}
	return nil
}

// define computes what a catalog asks for and puts it in force for this term.
func (e *Engine) define(t *term, catalog *state.Catalog, ledger *state.Ledger) {
	t.catalog = catalog
	t.definitions = plan.Compile(catalog)
	t.index = plan.NewIndex(t.definitions, ledger)
	t.announce = true
	e.publish(func(v *view) { v.definitions = t.definitions })
	for _, name := range t.definitions.Names() {
		if err := t.definitions.Broken(name, ledger); err != nil {
			e.log.Error("a job cannot be computed and stands still", slog.String(logkey.Job, name), logkey.Err(err))
			e.emit(JobInvalid{Job: name, Err: err})
		}
	}
}

// raiseFirst makes the next turn, at once, raise the versions in force before it decides anything.
func (e *Engine) raiseFirst(t *term) time.Time {
	t.unraised = t.catalog.Revision
	return e.wall()
}

// raiseUnnamed moves the effectiveAt of versions that no ledger swap has named yet up to the
// watermark: the instants before it were decided without them.
func raiseUnnamed(c *state.Catalog, named int64, watermark time.Time) bool {
	behind := unnamedBehind(c, named, watermark)
	for _, v := range behind {
		v.EffectiveAt = watermark
	}
	return len(behind) > 0
}

// unnamedBehind are the versions that raiseUnnamed has to move.
func unnamedBehind(c *state.Catalog, named int64, watermark time.Time) []*state.Version {
	var behind []*state.Version
	for _, j := range c.Jobs {
		if j == nil {
			continue
		}
		for i := range j.Versions {
			if v := &j.Versions[i]; v.Revision > named && v.EffectiveAt.Before(watermark) {
				behind = append(behind, v)
			}
		}
	}
	return behind
}

// cutVersions cuts to earliest what versions say of times beyond possible: a job must not wait for a
// moment that a clock which was off has made its first.
func cutVersions(c *state.Catalog, earliest, possible time.Time) bool {
	changed := false
	for _, j := range c.Jobs {
		if j == nil {
			continue
		}
		for i := range j.Versions {
			v := &j.Versions[i]
			if v.EffectiveAt.After(possible) {
				v.EffectiveAt, changed = earliest, true
			}
			for trigger, base := range v.Bases {
				if base.After(possible) {
					v.Bases[trigger], changed = earliest, true
				}
			}
		}
	}
	return changed
}

// merge makes new versions of the jobs that differ from their newest one and marks those that
// left. It returns the names of the jobs that changed. A version never takes effect before its
// predecessor, whose clock may have been ahead, unless that lies beyond possible.
func merge(c *state.Catalog, jobs []config.Job, earliest, possible time.Time, instance bool) ([]string, error) {
	var changed []string
	effectiveAfter := func(newest state.Version) time.Time {
		if newest.EffectiveAt.After(earliest) && !newest.EffectiveAt.After(possible) {
			return newest.EffectiveAt
		}
		return earliest
	}
	wanted := make(map[string]bool, len(jobs))
	if c.Jobs == nil {
		c.Jobs = make(map[string]*state.Job)
	}
	for _, job := range jobs {
		wanted[job.Name] = true
		if slices.Contains(c.OddJobs, job.Name) {
			continue // its record cannot be read: it is not written over
		}
		fingerprint := job.Fingerprint()
		record := c.Jobs[job.Name]
		if record == nil {
			record = &state.Job{FirstSeen: earliest}
			c.Jobs[job.Name] = record
		}
		newest := record.Newest()
		if !newest.Removed() && newest.Fingerprint == fingerprint {
			continue
		}
		definition, err := json.Marshal(job)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", job.Name, err)
		}
		effective := effectiveAfter(newest)
		record.Add(state.Version{
			Number: newest.Number + 1, Revision: c.Revision + 1, EffectiveAt: effective,
			Source: state.SourceConfig, Fingerprint: fingerprint, Definition: definition,
			Bases: bases(job, newest, effective, instance), ZoneData: schedule.ZoneDataVersion(),
		})
		changed = append(changed, job.Name)
	}
	for name, record := range c.Jobs {
		if wanted[name] || record == nil {
			continue
		}
		newest := record.Newest()
		switch {
		case newest.Removed() && earliest.Sub(newest.EffectiveAt) > state.KeepRemoved:
			forget(c, name)
		case !newest.Removed():
			record.Add(state.Version{
				Number: newest.Number + 1, Revision: c.Revision + 1, EffectiveAt: effectiveAfter(newest), Source: state.SourceConfig,
			})
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// forget drops all that is remembered of a job that left long ago.
func forget(c *state.Catalog, job string) {
	delete(c.Jobs, job)
	ofJob := func(name string) bool { return name == job || strings.HasPrefix(name, job+"/") }
	maps.DeleteFunc(c.Pauses, func(name string, _ state.Pause) bool { return ofJob(name) })
	maps.DeleteFunc(c.Skips, func(name string, _ time.Time) bool { return ofJob(name) })
}

// bases says what each trigger counts its intervals from: from where it did, unless interval or
// start changed. Rates that every instance plans for itself count from the Unix epoch, so that
// all of them have one grid.
func bases(job config.Job, before state.Version, effective time.Time, instance bool) map[string]time.Time {
	var old config.Job
	if !before.Removed() {
		if err := json.Unmarshal(before.Definition, &old); err != nil {
			old = config.Job{}
		}
	}
	out := make(map[string]time.Time)
	for _, t := range job.Triggers {
		s := t.Schedule
		if s.Kind != schedule.KindRate && s.Kind != schedule.KindEvery {
			continue
		}
		out[t.Name] = effective
		if instance && s.Kind == schedule.KindRate {
			out[t.Name] = time.Unix(0, 0).UTC()
			continue
		}
		for _, o := range old.Triggers {
			base, known := before.Bases[o.Name]
			if o.Name == t.Name && known && o.Schedule.Kind == s.Kind && o.Schedule.Interval == s.Interval && o.Schedule.Start.Equal(s.Start) {
				out[t.Name] = base
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// jobOf returns the definition that a run was decided by.
func (t *term) jobOf(r run.Run) config.Job {
	if t.definitions == nil {
		return config.Job{}
	}
	return jobOf(t.definitions, r)
}

func jobOf(d *plan.Definitions, r run.Run) config.Job {
	v, ok := d.Version(r.Key.Job, r.Version)
	if !ok {
		return config.Job{}
	}
	return v.Config(r.Key.Job)
}

// currentJobs lists the jobs in force, by name.
func currentJobs(d *plan.Definitions) []config.Job {
	var jobs []config.Job
	for _, name := range d.Names() {
		if v, ok := d.Jobs[name].Current(); ok {
			jobs = append(jobs, v.Config(name))
		}
	}
	return jobs
}
