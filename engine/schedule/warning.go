package schedule

import (
	"fmt"
	"time"
)

// WarningReason says what a warning is about.
type WarningReason string

// The reasons of warnings.
const (
	WarnComplete WarningReason = "complete"   // there is no instant any more
	WarnGap      WarningReason = "gap"        // a clock change skips an instant
	WarnRepeat   WarningReason = "repeat"     // a clock change repeats an instant
	WarnEither   WarningReason = "dom-or-dow" // both day fields are restricted
)

// Warning is something about a valid schedule that its author may not expect.
type Warning struct {
	Reason WarningReason `json:"reason"`
	At     time.Time     `json:"at,omitzero"` // the clock change, for WarnGap and WarnRepeat
	Text   string        `json:"text"`        // one line
}

// Warnings looks at the year that follows now: clock changes that skip or repeat an
// instant, a schedule that has ended, and day fields of which either one matches.
func (t *Timeline) Warnings(now time.Time) []Warning {
	var all []Warning
	if t.complete(now) {
		all = append(all, Warning{Reason: WarnComplete, Text: "there is no instant after " + formatTime(now.Truncate(time.Second))})
	}
	if t.cron == nil {
		return all
	}
	if text, err := parseCron(t.cron.text); err == nil &&
		text.fields[fieldDOM].restricted() && text.fields[fieldDOW].restricted() {
		all = append(all, Warning{
			Reason: WarnEither,
			Text:   "the dom and dow fields are both restricted: a day that matches either one counts; write ? in the one that you do not mean",
		})
	}
	return append(all, t.clockWarnings(now)...)
}

func (t *Timeline) complete(now time.Time) bool {
	switch t.kind {
	case KindManual:
		return false
	case KindEvery:
		return t.options.end != noOptions.end && ceilMicros(now) >= t.options.end
	case KindCron, KindRate, KindOnce:
	}
	_, ok := t.Next(now)
	return !ok
}

// clockWarnings lists the clock changes of the coming year that touch the schedule.
func (t *Timeline) clockWarnings(now time.Time) []Warning {
	from, ok := toMicros(now)
	if !ok {
		return nil
	}
	to, _ := toMicros(now.AddDate(1, 0, 0))
	first, end := floorDiv(max(from, t.options.start), micros), floorDiv(min(to, t.options.end)-1, micros)+1
	var all []Warning
	for at := first; at < end; {
		s := t.zone.at(at)
		at = s.end
		if s.start < first {
			continue // a change of the past
		}
		wall := s.start + s.offset
		if s.gap > 0 {
			if skipped, ok := t.cron.table.next(wall-s.gap, wall-1); ok {
				all = append(all, t.gapWarning(s, skipped))
			}
		}
		if s.repeated {
			if repeated, ok := t.cron.table.next(wall, s.end+s.offset-1); ok {
				all = append(all, t.repeatWarning(s, repeated))
			}
		}
	}
	return all
}

func (t *Timeline) gapWarning(s span, wall int64) Warning {
	what := "it is left out"
	if t.cron.atGapEnd {
		what = "it fires at " + formatWall(s.start+s.offset, "15:04:05") + " instead"
	}
	return Warning{
		Reason: WarnGap,
		At:     time.Unix(s.start, 0).UTC(),
		Text: fmt.Sprintf("%s does not exist in %s, the clock skips it: %s",
			formatWall(wall, time.DateTime), t.zone.location, what),
	}
}

func (t *Timeline) repeatWarning(s span, wall int64) Warning {
	what := "it fires the first time only"
	if t.cron.both {
		what = "it fires both times"
	}
	return Warning{
		Reason: WarnRepeat,
		At:     time.Unix(s.start, 0).UTC(),
		Text: fmt.Sprintf("%s occurs twice in %s, the clock goes back: %s",
			formatWall(wall, time.DateTime), t.zone.location, what),
	}
}

func formatWall(wall int64, layout string) string { return time.Unix(wall, 0).UTC().Format(layout) }
