package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

// longestSchedule bounds the text form: a cron text of 256 characters and every option.
const longestSchedule = 1_024

// scheduleContext is what a schedule takes from around it.
type scheduleContext struct {
	key      string // job/trigger
	defaults defaults
	manual   bool // whether `manual` may stand here
}

// timeZone reads the time zone of an object, or passes on the one around it.
func (o *object) timeZone(around string) string {
	name, at, ok := o.text("timeZone", 64)
	if !ok {
		return around
	}
	if _, err := schedule.LoadZone(name); err != nil {
		o.d.fail(at, "%w", err)
		return around
	}
	return name
}

// schedule reads a schedule, in text or as a mapping, and gives job the calendars that it needs.
func (d *decoder) schedule(n *node, at place, ctx scheduleContext, job *Job) (schedule.Schedule, bool) {
	var s schedule.Schedule
	var ok bool
	if n.kind == kindMap {
		s, ok = d.scheduleMapping(n, at)
	} else {
		s, ok = d.scheduleText(n, at)
	}
	if !ok {
		return s, false
	}
	if s.Kind == schedule.KindManual {
		if !ctx.manual {
			d.fail(at, "is manual, which a trigger cannot be (want a job without triggers)")
		}
		return s, ctx.manual
	}
	return d.bindSchedule(s, at, ctx, job)
}

func (d *decoder) scheduleText(n *node, at place) (schedule.Schedule, bool) {
	text, ok := d.text(n, at, longestSchedule)
	if !ok {
		return schedule.Schedule{}, false
	}
	s, err := schedule.Parse(text)
	if err != nil {
		if _, notInstant := time.Parse(time.RFC3339Nano, text); notInstant == nil {
			err = fmt.Errorf("%s is an instant, not a schedule (want once %s)", text, text)
		}
		d.fail(at, "%w", err)
		return s, false
	}
	return s, true
}

// scheduleMapping reads each key on its own, so that each error names its own place. What does not
// fit together is found where both forms meet, in bindSchedule.
func (d *decoder) scheduleMapping(n *node, at place) (schedule.Schedule, bool) {
	before := len(d.problems)
	o := d.object(n, at)
	s, kinds := d.scheduleKind(o)
	switch {
	case len(kinds) == 0:
		d.fail(at, "names no kind of schedule (want one of cron, rate, every, once)")
	case len(kinds) > 1:
		d.fail(at, "names more than one kind of schedule: %s (want one)", strings.Join(kinds, ", "))
	}
	s.TimeZone = o.timeZone("")
	s.Start = d.instant(o, "start")
	s.End = d.instant(o, "end")
	if v, at, ok := o.text("calendar", longestURL); ok {
		if err := checkName(v); err != nil {
			d.fail(at, "%w", err)
		} else {
			s.Calendar = v
		}
	}
	if v, ok := word(o, "ambiguous", schedule.AmbiguousAuto, schedule.AmbiguousFirst, schedule.AmbiguousBoth); ok {
		s.Ambiguous = v
	}
	if v, ok := word(o, "gap", schedule.GapSkip, schedule.GapNext); ok {
		s.Gap = v
	}
	if v, ok := o.duration("jitter", time.Millisecond, schedule.MaxJitter); ok {
		s.Jitter = v
	}
	if v, ok := o.integer("count", 1, schedule.MaxCount); ok {
		s.Count = v
	}
	o.done()
	if len(d.problems) > before {
		return s, false
	}
	return s, true
}

// scheduleKind reads the key that says what kind of schedule it is, and returns all such keys.
func (d *decoder) scheduleKind(o *object) (schedule.Schedule, []string) {
	var s schedule.Schedule
	var kinds []string
	for _, kind := range []string{"cron", "rate", "every", "once"} {
		if o.has(kind) {
			kinds = append(kinds, kind)
		}
		if n := o.value(kind); n.kind == kindNumber && (kind == "rate" || kind == "every") {
			_, at, _ := o.take(kind)
			d.fail(at, "%s has no unit (want an interval such as 30s, 5m or 2h)", quote(n.text))
			continue
		}
		v, at, ok := o.text(kind, longestSchedule)
		if !ok {
			continue
		}
		parsed, err := parseKind(kind, v)
		if err != nil {
			d.fail(at, "%w", err)
			continue
		}
		s = parsed
	}
	return s, kinds
}

func parseKind(kind, value string) (schedule.Schedule, error) {
	switch {
	case strings.Contains(value, "="):
		return schedule.Schedule{}, fmt.Errorf("%s holds an option (want it as a key of its own beside %s, such as timeZone)", quote(value), kind)
	case kind != "cron" && len(strings.Fields(value)) != 1:
		return schedule.Schedule{}, fmt.Errorf("%s is more than one word (want options as keys of their own beside %s)", quote(value), kind)
	}
	return schedule.Parse(kind + " " + value)
}

// instant reads one point in time, with its offset from UTC.
func (d *decoder) instant(o *object, key string) time.Time {
	v, at, ok := o.text(key, 64)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	switch {
	case err != nil:
		d.fail(at, "%s is no instant (want one such as 2026-11-01T00:00:00Z)", quote(v))
		return time.Time{}
	case t.Nanosecond()%1_000 != 0:
		d.fail(at, "%s is finer than a microsecond", quote(v))
		return time.Time{}
	}
	return t.UTC()
}

// bindSchedule fills in the zone, ties the schedule to its calendars and asks whether it ever
// fires: one that cannot is a mistake, one that will not again is worth a warning.
func (d *decoder) bindSchedule(s schedule.Schedule, at place, ctx scheduleContext, job *Job) (schedule.Schedule, bool) {
	if s.TimeZone == "" && (s.Kind == schedule.KindCron || s.Calendar != "") {
		if ctx.defaults.timeZone == "" && ctx.defaults.requireTimeZone {
			d.fail(at, "has no time zone, and defaults.requireTimeZone is set (want timeZone, UTC if that is meant)")
			return s, false
		}
		s.TimeZone = ctx.defaults.timeZone
		if s.TimeZone == "" {
			s.TimeZone = "UTC"
		}
	}
	if s.Calendar != "" {
		if err := ctx.defaults.calendars.lend(s.Calendar, job); err != nil {
			if !errors.Is(err, errBrokenCalendar) { // which has been reported where it is defined
				d.fail(at, "%w", err)
			}
			return s, false
		}
	}
	if err := s.Validate(); err != nil {
		d.fail(at, "%w", err)
		return s, false
	}
	// The calendars have been checked, and to bind them anew for each of thousands of triggers would
	// take its time: whether they leave anything over is not looked at.
	free := s
	free.Calendar = ""
	line, err := free.Compile(schedule.Env{Key: ctx.key, FirstSeen: d.opts.Now})
	if err != nil {
		d.fail(at, "%w", err)
		return s, false
	}
	d.warnIfOver(free, line, at)
	return s, true
}

// warnIfOver says so when a schedule has no instant any more.
func (d *decoder) warnIfOver(s schedule.Schedule, line *schedule.Timeline, at place) {
	now := d.opts.Now
	if now.IsZero() {
		return
	}
	switch {
	case s.Kind == schedule.KindOnce && !s.At.After(now):
		d.warn(at, "lies in the past: it will not fire")
	case !s.End.IsZero() && !s.End.After(now):
		d.warn(at, "ended in the past: it will not fire again")
	default:
		if _, ok := line.Next(now); !ok {
			d.warn(at, "has no instant any more: it will not fire again")
		}
	}
}
