package ical

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// moment is a DATE or DATE-TIME value.
type moment struct {
	wall     int64
	allDay   bool
	zone     string         // IANA name, empty: floating
	location *time.Location // nil: floating
}

const (
	dateForm = "20060102"
	timeForm = "20060102T150405"
)

// moment reads a value with its parameters.
func (r *reader) moment(parameters map[string][]string, value string) (moment, error) {
	if strings.Contains(value, "/") {
		return moment{}, errors.New("periods are not supported, write a time")
	}
	if len(value) == len(dateForm) {
		t, err := time.Parse(dateForm, value)
		if err != nil {
			return moment{}, fmt.Errorf("%q is not a date like 20261225", value)
		}
		return checkYear(moment{wall: t.Unix(), allDay: true}, t)
	}
	local, utc := strings.CutSuffix(value, "Z")
	t, err := time.Parse(timeForm, local)
	if err != nil || len(local) != len(timeForm) {
		return moment{}, fmt.Errorf("%.40q is not a time like 20261225T080000", value)
	}
	m := moment{wall: t.Unix()}
	switch id := parameters["TZID"]; {
	case utc:
		m.zone, m.location = "UTC", time.UTC
	case len(id) > 0:
		m.zone = strings.TrimPrefix(strings.Trim(id[0], `"`), "/")
		if m.location, err = r.loadZone(m.zone); err != nil {
			return moment{}, err
		}
		m.zone = m.location.String() // the file may have had an alias
	}
	return checkYear(m, t)
}

// checkYear keeps the recurrences of very old and very late starts out: nobody means them.
func checkYear(m moment, t time.Time) (moment, error) {
	if t.Year() < 1601 || t.Year() > 9998 {
		return moment{}, fmt.Errorf("the year %d is out of range 1601-9998", t.Year())
	}
	return m, nil
}

// unix returns the elapsed seconds of a time with a zone.
func (m moment) unix() int64 {
	if m.location == nil {
		return m.wall
	}
	t := time.Unix(m.wall, 0).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, m.location).Unix()
}

func (m moment) until(end moment) time.Duration {
	seconds := end.wall - m.wall
	if m.location != nil && end.location != nil {
		seconds = end.unix() - m.unix()
	}
	return time.Duration(max(min(seconds, int64(MaxDuration/time.Second)+1), -1)) * time.Second
}

// in returns the wall time in an event's zone.
func (m moment) in(e *event) int64 {
	if m.allDay && !e.span.AllDay {
		return m.wall + floorMod(e.span.Start, secondsPerDay) // a date names the instance of that day
	}
	if m.location == nil || e.location == nil {
		if e.span.AllDay {
			return m.wall - floorMod(m.wall, secondsPerDay)
		}
		return m.wall
	}
	return wallTime(m.unix(), e.location)
}

func wallTime(unix int64, location *time.Location) int64 {
	_, offset := time.Unix(unix, 0).In(location).Zone()
	return unix + int64(offset)
}

const secondsPerDay = 24 * 60 * 60

func floorMod(a, b int64) int64 {
	if a %= b; a < 0 {
		a += b
	}
	return a
}

var durationForm = regexp.MustCompile(`^\+?P(?:(\d{1,5})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?$`)

// parseDuration reads P1W, P2DT3H4M5S and the like.
func parseDuration(text string) (time.Duration, error) {
	parts := durationForm.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "P") || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%.40q is not a duration like PT1H30M or P1D", text)
	}
	var seconds int64
	for i, unit := range []int64{7 * secondsPerDay, secondsPerDay, 3600, 60, 1} {
		if digits := parts[i+1]; digits != "" {
			n, err := strconv.ParseInt(digits, 10, 32)
			if err != nil {
				return 0, fmt.Errorf("%.40q: %w", text, err)
			}
			seconds += n * unit
		}
	}
	return time.Duration(seconds) * time.Second, nil
}
