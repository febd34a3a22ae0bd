package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/state"
)

// Definitions is a catalog, compiled: what instants each trigger has and which version decides
// them. It is immutable.
type Definitions struct {
	Revision int64
	Jobs     map[string]*Job
	Tracks   map[run.Key]*Track

	pauses map[string]state.Pause
	skips  map[string]time.Time
}

// Job is one job with the versions that may still decide or finish something.
type Job struct {
	Name      string
	FirstSeen time.Time
	Versions  []Version // oldest first
	tracks    []*Track
	// While it is compiled: the version before says that it has left; the versions that cannot be read,
	// which may have triggers that the versions before them had not.
	left   bool
	broken []segment
	// Err says why the newest version cannot be computed; its triggers stand still.
	Err error
}

// Version is one definition of a job. It holds what planning asks for all the time; the rest is
// decoded when somebody needs it, since most jobs are idle most of the time and there may be
// thousands of them.
type Version struct {
	Number       int
	From         time.Time // decides the instants from here on
	Removed      bool
	Paused       bool
	Overlap      config.Overlap
	MaxParallel  int
	HistoryLimit int

	definition json.RawMessage // the catalog's bytes
}

// Config decodes the definition. It costs some microseconds. One that cannot be decoded any more,
// which marks its job with an error, is empty but for the name.
func (v Version) Config(job string) config.Job {
	var c config.Job
	if err := json.Unmarshal(v.definition, &c); err != nil {
		return config.Job{Name: job}
	}
	return c
}

// Current returns the newest version, and whether the job is still defined.
func (j *Job) Current() (Version, bool) {
	if j == nil || len(j.Versions) == 0 {
		return Version{}, false
	}
	v := j.Versions[len(j.Versions)-1]
	return v, !v.Removed
}

// Version returns the version of a job that a run was decided by, or the newest one that there is
// where that version is no longer kept.
func (d *Definitions) Version(job string, number int) (Version, bool) {
	j := d.Jobs[job]
	if j == nil {
		return Version{}, false
	}
	best, found := Version{}, false
	for _, v := range j.Versions {
		if v.Removed {
			continue
		}
		best, found = v, true
		if v.Number == number {
			break
		}
	}
	return best, found
}

// Names returns the names of the jobs that are defined now, sorted.
func (d *Definitions) Names() []string {
	names := make([]string, 0, len(d.Jobs))
	for name, j := range d.Jobs {
		if _, ok := j.Current(); ok || j.odd() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Compile makes a catalog computable. A version that cannot be compiled marks its job with an
// error and never stops the others.
func Compile(c *state.Catalog) *Definitions {
	d := &Definitions{Revision: c.Revision, Jobs: make(map[string]*Job, len(c.Jobs)), Tracks: make(map[run.Key]*Track), pauses: c.Pauses, skips: c.Skips}
	for _, name := range slices.Sorted(maps.Keys(c.Jobs)) {
		record := c.Jobs[name]
		if record == nil {
			continue
		}
		j := &Job{Name: name, FirstSeen: record.FirstSeen}
		d.Jobs[name] = j
		ends := endsOf(record.Versions)
		for i, v := range record.Versions {
			outdated := len(record.Versions)-i > state.MostVersions
			if err := d.add(j, v, ends[i], outdated); err != nil && i == len(record.Versions)-1 {
				j.Err = fmt.Errorf("version %d: %w", v.Number, err)
			}
		}
	}
	for _, name := range c.OddJobs {
		d.Jobs[name] = &Job{Name: name, Err: errors.New("its record in the catalog cannot be read: repair or remove it")}
	}
	return d
}

// odd reports whether the job's record in the catalog cannot be read: it stands still, and what the ledger
// remembers of it stays.
func (j *Job) odd() bool { return j != nil && len(j.Versions) == 0 && j.Err != nil }

// endsOf says up to when each version decides, zero for the newest: until the first of those that
// follow takes effect. They need not do so in their order, since clocks are set back.
func endsOf(versions []state.Version) []time.Time {
	ends := make([]time.Time, len(versions))
	for i := len(versions) - 2; i >= 0; i-- {
		ends[i] = versions[i+1].EffectiveAt
		ends[i] = earlier(earlier(ends[i], ends[i+1]), versions[i].Until)
	}
	return ends
}

// add compiles one version of a job into segments of its tracks.
//
// What cannot be computed leaves a broken segment: its instants are not known, so that they are not
// decided, and none after them.
func (d *Definitions) add(j *Job, v state.Version, until time.Time, outdated bool) error {
	version := Version{Number: v.Number, From: v.EffectiveAt, Removed: v.Removed()}
	if version.Removed {
		j.Versions, j.left = append(j.Versions, version), true
		return nil
	}
	if j.left { // what it had not decided when it left is not decided when it comes back
		for _, t := range j.tracks {
			t.segments = nil
		}
		j.left, j.broken = false, nil
	}
	var c config.Job
	err := json.Unmarshal(v.Definition, &c)
	version.definition = v.Definition
	version.Paused, version.Overlap, version.MaxParallel, version.HistoryLimit = c.Paused, c.Overlap, c.MaxParallel, c.HistoryLimit
	j.Versions = append(j.Versions, version)
	s := segment{version: v.Number, from: v.EffectiveAt, until: until, outdated: outdated}
	if err != nil {
		s.broken = fmt.Errorf("version %d: %w", v.Number, err)
		for _, t := range j.tracks {
			t.segments = append(t.segments, s)
		}
		j.broken = append(j.broken, s)
		return err
	}
	for i := range c.Triggers {
		t := &c.Triggers[i]
		if t.Schedule.Kind == schedule.KindManual {
			continue
		}
		key := run.Key{Job: j.Name, Trigger: t.Name}
		track := d.Tracks[key]
		if track == nil {
			track = &Track{Key: run.Key{Job: j.Name, Trigger: strings.Clone(t.Name)}, segments: slices.Clone(j.broken)}
			d.Tracks[track.Key] = track
			j.tracks = append(j.tracks, track)
		}
		s := s
		var wrong error
		s.timeline, wrong = t.Schedule.Compile(schedule.Env{
			Key: key.String(), FirstSeen: v.Bases[t.Name], Calendars: c.Calendars,
		})
		if wrong != nil {
			s.broken = fmt.Errorf("version %d: trigger %s: %w", v.Number, t.Name, wrong)
			err = cmp.Or(err, fmt.Errorf("trigger %s: %w", t.Name, wrong))
		} else {
			s.rules = rulesOf(&c, t)
		}
		track.segments = append(track.segments, s)
	}
	return err
}

// Broken says why a job, or a trigger of it, stands still at an instant whose version cannot be computed;
// nil: none does.
func (d *Definitions) Broken(job string, l *state.Ledger) error {
	j := d.Jobs[job]
	if j == nil {
		return nil
	}
	if j.Err != nil {
		return j.Err
	}
	for _, t := range j.tracks {
		remembered := l.Triggers[t.Key]
		if _, s, ok := t.first(from(remembered, l.Watermark), remembered); ok && s.broken != nil {
			return fmt.Errorf("trigger %s waits, its instants before %s are not known (pause it and resume it with misfire=skip to pass over them): %w",
				t.Key.Trigger, s.until.Format(time.RFC3339), s.broken)
		}
	}
	return nil
}

// TracksOf returns the tracks of the triggers that a job has now, in the order of the document.
func (d *Definitions) TracksOf(job string) []*Track {
	current, ok := d.Jobs[job].Current()
	if !ok {
		return nil
	}
	var tracks []*Track
	for _, t := range d.Jobs[job].tracks {
		if n := len(t.segments); n > 0 && t.segments[n-1].version == current.Number {
			tracks = append(tracks, t)
		}
	}
	return tracks
}
