package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// never is after every instant.
const never = int64(1) << 60

// wallCalendar is a set of excluded wall seconds; at is that of calendar.
type wallCalendar interface {
	at(wall int64) (excluded bool, until int64)
}

// dateCalendar excludes whole days, sorted.
type dateCalendar []int64

func newDateCalendar(dates []string) (dateCalendar, error) {
	if len(dates) == 0 || len(dates) > MaxCalendarDates {
		return nil, fmt.Errorf("dates has %d entries, want 1 to %d", len(dates), MaxCalendarDates)
	}
	days := make(dateCalendar, len(dates))
	for i, text := range dates {
		t, err := time.Parse(time.DateOnly, text)
		if err != nil || len(text) != len(time.DateOnly) {
			return nil, fmt.Errorf("dates: %s is not a date like 2026-12-25", clip(text))
		}
		days[i] = t.Unix() / secondsPerDay
	}
	slices.Sort(days)
	return slices.Compact(days), nil
}

func (c dateCalendar) at(wall int64) (excluded bool, until int64) {
	today := floorDiv(wall, secondsPerDay)
	i, found := slices.BinarySearch(c, today)
	if !found {
		if i == len(c) {
			return false, never
		}
		return false, c[i] * secondsPerDay
	}
	last := today
	for i++; i < len(c) && c[i] == last+1; i++ {
		last++
	}
	return true, (last + 1) * secondsPerDay
}

// weekdayCalendar excludes weekdays: bit 0 is Sunday.
type weekdayCalendar uint8

func newWeekdayCalendar(names []string) (weekdayCalendar, error) {
	if len(names) == 0 {
		return 1<<saturday | 1<<sunday, nil
	}
	var days weekdayCalendar
	for _, name := range names {
		i := slices.Index(weekdayNames, strings.ToUpper(name))
		if i < 0 {
			return 0, fmt.Errorf("weekdays: %s is not one of %s", clip(name), strings.Join(weekdayNames, ", "))
		}
		days |= 1 << i
	}
	return days, nil
}

func (c weekdayCalendar) at(wall int64) (excluded bool, until int64) {
	today := floorDiv(wall, secondsPerDay)
	excluded = c.has(today)
	for n := int64(1); n <= 7; n++ {
		if c.has(today+n) != excluded {
			return excluded, (today + n) * secondsPerDay
		}
	}
	return excluded, never // all of them, or none
}

func (c weekdayCalendar) has(day int64) bool { return c&(1<<weekday(day)) != 0 }

// dailyCalendar excludes [from, to) of each day, or across midnight if to is before from.
type dailyCalendar struct{ from, to int64 }

func newDailyCalendar(from, to string) (dailyCalendar, error) {
	var c dailyCalendar
	var err error
	if c.from, err = timeOfDay("from", from); err != nil {
		return c, err
	}
	if c.to, err = timeOfDay("to", to); err != nil {
		return c, err
	}
	if c.from == c.to {
		return c, fmt.Errorf("from and to are both %s: the span would be empty or the whole day", from)
	}
	return c, nil
}

// timeOfDay reads hh:mm or hh:mm:ss.
func timeOfDay(what, text string) (int64, error) {
	full := text
	if len(text) == len("22:00") {
		full += ":00"
	}
	d, ok := parseClock(full)
	if !ok || len(full) != len("22:00:00") {
		return 0, fmt.Errorf("%s %s is not a time of day like 22:00", what, clip(text))
	}
	return int64(d / time.Second), nil
}

func (c dailyCalendar) at(wall int64) (excluded bool, until int64) {
	tod := floorMod(wall, secondsPerDay)
	midnight := wall - tod
	first, second := min(c.from, c.to), max(c.from, c.to)
	inside := c.from < c.to // whether [first, second) is what is excluded
	switch {
	case tod < first:
		return !inside, midnight + first
	case tod < second:
		return inside, midnight + second
	default:
		return !inside, midnight + secondsPerDay + first
	}
}

// cronCalendar excludes the seconds that match an expression.
type cronCalendar struct{ table *cronTable }

func newCronCalendar(text string) (cronCalendar, error) {
	c, err := parseCron(text)
	if err != nil {
		return cronCalendar{}, fmt.Errorf("cron: %w", err)
	}
	if c.usesHash() {
		return cronCalendar{}, errors.New("cron: H has no meaning in a calendar")
	}
	table, err := newCronTable(c, "")
	return cronCalendar{table}, err
}

func (c cronCalendar) at(wall int64) (excluded bool, until int64) {
	// The rarest date, a leap day on a given weekday, is at most 40 years away.
	const far = secondsPerCycle / 8
	next, ok := c.table.next(wall, wall+far)
	switch {
	case !ok:
		return false, wall + far
	case next > wall:
		return false, next
	default:
		return true, c.table.runEnd(wall)
	}
}

// runEnd returns the first wall second after a matching one that does not match, or at
// which the next day begins. The fields are looked at from the finest on: a minute of which
// not all seconds match ends the run, and so on.
func (t *cronTable) runEnd(wall int64) int64 {
	tod := int(floorMod(wall, secondsPerDay))
	midnight := wall - int64(tod)
	h, m, s := tod/3600, tod/60%60, tod%60
	const full = 1<<60 - 1
	if s += bits.TrailingZeros64(^(t.second >> s)); s < 60 {
		return midnight + int64(h*3600+m*60+s)
	}
	if t.second != full {
		return midnight + int64(h*3600+m*60+60) // the next minute begins anew
	}
	if m += bits.TrailingZeros64(^(t.minute >> m)); m < 60 {
		return midnight + int64(h*3600+m*60)
	}
	if t.minute != full {
		return midnight + int64(h*3600+3600)
	}
	h += bits.TrailingZeros32(^(t.hour >> h))
	return midnight + int64(min(h, 24)*3600)
}
