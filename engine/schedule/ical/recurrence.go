package ical

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// maxCount bounds COUNT: such a rule is listed when the file is read.
const maxCount = 10_000

// maxInterval bounds INTERVAL.
const maxInterval = 1_000

const secondsPerCycle = 146097 * secondsPerDay // 400 years, after which the calendar repeats

// recurrence is a rule in wall time. A rule with COUNT is the list of its starts; others
// are searched from near the window that is asked for.
type recurrence struct {
	listed []int64
	option rrule.ROption // in UTC, which stands for wall time
	start  int64
	until  int64 // last start, 0: none
}

func parseRecurrence(text string, e *event) (*recurrence, error) {
	option, err := rrule.StrToROption(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("%.80q: %w", text, err)
	}
	switch {
	case option.Freq > rrule.DAILY:
		return nil, errors.New("a recurrence finer than daily is refused")
	case option.Interval > maxInterval:
		return nil, fmt.Errorf("INTERVAL %d is out of range 1-%d", option.Interval, maxInterval)
	case option.Count > maxCount:
		return nil, fmt.Errorf("COUNT %d is out of range 1-%d", option.Count, maxCount)
	case len(option.Byhour)+len(option.Byminute)+len(option.Bysecond)+len(option.Byeaster) > 0:
		return nil, errors.New("BYHOUR, BYMINUTE, BYSECOND and BYEASTER are refused: one occurrence a day at most")
	}
	r := &recurrence{option: *option, start: e.span.Start}
	if !option.Until.IsZero() {
		r.until = option.Until.Unix()
		if e.location != nil && strings.Contains(strings.ToUpper(text), "Z") {
			r.until = wallTime(r.until, e.location) // UNTIL is UTC, the rule runs in wall time
		}
	}
	r.option.Until = time.Time{}
	count := option.Count
	r.option.Count = 0
	// Searching for a rule that never matches would run to the end of time, at each call.
	if first := r.search(r.start, r.start+secondsPerCycle, 1); len(first) == 0 {
		return nil, errors.New("the rule never matches")
	}
	if count > 0 {
		r.listed = r.search(r.start, r.start+8000*366*secondsPerDay, count)
	}
	return r, nil
}

// between returns the starts in [from, to).
func (r *recurrence) between(from, to int64) []int64 {
	if r.listed != nil {
		var found []int64
		for _, s := range r.listed {
			if s >= from && s < to {
				found = append(found, s)
			}
		}
		return found
	}
	if r.until != 0 {
		to = min(to, r.until+1)
	}
	from = max(from, r.start)
	if from >= to {
		return nil
	}
	return r.search(from, to, maxCount)
}

// search lists at most most starts in [from, to). It moves the rule's start up to the
// window by whole intervals, and the whole question by whole cycles of the calendar to
// where the library ends its search, so that a search that finds nothing ends soon.
func (r *recurrence) search(from, to int64, most int) []int64 {
	start := r.start
	if step := r.step(); step > 0 && from > start {
		start += (from - start) / step * step
	}
	shift := (lastSearched - to) / secondsPerCycle * secondsPerCycle
	shift = max(shift, 0)
	option := r.option
	option.Dtstart = time.Unix(start+shift, 0).UTC()
	option.Until = time.Unix(to+shift, 0).UTC() // without it the library stops after 292 years
	rule, err := rrule.NewRRule(option)
	if err != nil {
		return nil // parseRecurrence has made the same rule
	}
	var found []int64
	next := rule.Iterator()
	for len(found) < most {
		t, ok := next()
		at := t.Unix() - shift
		if !ok || at >= to {
			break
		}
		if at >= from {
			found = append(found, at)
		}
	}
	return found
}

// lastSearched is the end of the last year that the library looks at.
var lastSearched = time.Date(rrule.MAXYEAR, 12, 31, 0, 0, 0, 0, time.UTC).Unix()

// step is the seconds after which a rule of days or weeks repeats, 0 for others.
func (r *recurrence) step() int64 {
	interval := int64(max(r.option.Interval, 1))
	switch r.option.Freq {
	case rrule.DAILY:
		return interval * secondsPerDay
	case rrule.WEEKLY:
		return interval * 7 * secondsPerDay
	default:
		return 0
	}
}
