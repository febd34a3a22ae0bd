package schedule_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// reference is the slow and obvious reading of a cron expression that the package is
// compared with: it is asked for one wall time at a time. It knows no errors.
type reference struct {
	second, minute, hour, month []bool // by value
	dom, dow, year              string
	followsClock                bool
}

var refNames = strings.NewReplacer("JAN", "1", "FEB", "2", "MAR", "3", "APR", "4", "MAY", "5", "JUN", "6", "JUL", "7",
	"AUG", "8", "SEP", "9", "OCT", "10", "NOV", "11", "DEC", "12",
	"SUN", "0", "MON", "1", "TUE", "2", "WED", "3", "THU", "4", "FRI", "5", "SAT", "6")

func newReference(expr string) reference {
	f := strings.Fields(refNames.Replace(strings.ToUpper(expr)))
	if len(f) == 5 {
		f = append([]string{"0"}, f...)
	}
	r := reference{
		second: refSet(f[0], 0, 59), minute: refSet(f[1], 0, 59), hour: refSet(f[2], 0, 23),
		dom: f[3], month: refSet(f[4], 1, 12), dow: f[5], year: "*",
		followsClock: strings.ContainsAny(f[0]+f[1]+f[2], "*/-"),
	}
	if len(f) == 7 {
		r.year = f[6]
	}
	return r
}

// refSet marks the values of a field.
func refSet(field string, lo, hi int) []bool {
	set := make([]bool, hi+1)
	for item := range strings.SplitSeq(field, ",") {
		base, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		from, to := lo, hi
		if base != "*" && base != "?" {
			a, b, ranged := strings.Cut(base, "-")
			from, _ = strconv.Atoi(a)
			switch {
			case ranged:
				to, _ = strconv.Atoi(b)
			case !stepped:
				to = from
			}
		}
		for v := from; v <= to; v += step {
			set[v] = true
		}
	}
	return set
}

// matches reports whether a wall time, written as if it were UTC, matches.
func (r reference) matches(w time.Time) bool {
	return r.second[w.Second()] && r.minute[w.Minute()] && r.hour[w.Hour()] && r.matchesDate(w)
}

func (r reference) matchesDate(w time.Time) bool {
	if !r.month[int(w.Month())] || r.year != "*" && !refSet(r.year, 1970, 2099)[w.Year()] {
		return false
	}
	anyDOM, anyDOW := r.dom == "*" || r.dom == "?", r.dow == "*" || r.dow == "?"
	switch {
	case anyDOM && anyDOW:
		return true
	case anyDOW:
		return r.matchesDOM(w)
	case anyDOM:
		return r.matchesDOW(w)
	}
	return r.matchesDOM(w) || r.matchesDOW(w)
}

func (r reference) matchesDOM(w time.Time) bool {
	if before, ok := strings.CutPrefix(r.dom, "L-"); ok {
		n, _ := strconv.Atoi(before)
		return w.AddDate(0, 0, n).Month() == w.Month() && w.AddDate(0, 0, n+1).Month() != w.Month()
	}
	lastDay := time.Date(w.Year(), w.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	if r.dom == "L" {
		return w.Day() == lastDay
	}
	if day, ok := strings.CutSuffix(r.dom, "W"); ok {
		n := lastDay
		if day != "L" {
			n, _ = strconv.Atoi(day)
		}
		best := 0
		for d := 1; d <= lastDay && n <= lastDay; d++ {
			switch time.Date(w.Year(), w.Month(), d, 0, 0, 0, 0, time.UTC).Weekday() {
			case time.Saturday, time.Sunday:
			default:
				if best == 0 || abs(d-n) < abs(best-n) {
					best = d
				}
			}
		}
		return w.Day() == best
	}
	return refSet(r.dom, 1, 31)[w.Day()]
}

func (r reference) matchesDOW(w time.Time) bool {
	if day, ok := strings.CutSuffix(r.dow, "L"); ok {
		n, _ := strconv.Atoi(day)
		return int(w.Weekday()) == n%7 && w.AddDate(0, 0, 7).Month() != w.Month()
	}
	if day, nth, ok := strings.Cut(r.dow, "#"); ok {
		n, _ := strconv.Atoi(day)
		k, _ := strconv.Atoi(nth)
		return int(w.Weekday()) == n%7 && (w.Day()-1)/7+1 == k
	}
	set := refSet(r.dow, 0, 7)
	return set[int(w.Weekday())] || w.Weekday() == time.Sunday && set[7]
}

func abs(n int) int { return max(n, -n) }

// tick is one moment of the reference's walk through a stretch of time.
type tick struct {
	at       time.Time
	wall     time.Time   // what the zone's clock shows, as if it were UTC
	repeated bool        // the clock has shown it before
	skipped  []time.Time // wall times that the clock has jumped over right before
}

// walk lists the ticks of [from, to), one a step, as the zone's clock shows them.
func walk(zone *time.Location, from, to time.Time, step time.Duration) []tick {
	const lookBack = 30 * time.Hour // longer than any clock goes back
	var ticks []tick
	shown := make(map[int64]bool)
	var last time.Time
	for at := from.Add(-lookBack); at.Before(to); at = at.Add(step) {
		_, offset := at.In(zone).Zone()
		wall := time.Unix(at.Unix()+int64(offset), 0).UTC()
		t := tick{at: at.UTC(), wall: wall, repeated: shown[wall.Unix()]}
		if !last.IsZero() {
			for w := last.Add(step); w.Before(wall); w = w.Add(step) {
				t.skipped = append(t.skipped, w)
			}
		}
		shown[wall.Unix()] = true
		last = wall
		if !at.Before(from) {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// instants lists the ticks at which the expression is due.
func (r reference) instants(ticks []tick, ambiguous, gap string) []time.Time {
	both := ambiguous == "both" || ambiguous == "auto" && r.followsClock
	dates := make(map[int64]bool)
	due := func(w time.Time) bool {
		if !r.second[w.Second()] || !r.minute[w.Minute()] || !r.hour[w.Hour()] {
			return false
		}
		date := w.Unix() / 86400
		matches, known := dates[date]
		if !known {
			matches = r.matchesDate(w)
			dates[date] = matches
		}
		return matches
	}
	var all []time.Time
	for _, t := range ticks {
		is := due(t.wall) && (both || !t.repeated)
		if gap == "next" {
			for _, w := range t.skipped {
				is = is || due(w)
			}
		}
		if is {
			all = append(all, t.at)
		}
	}
	return all
}

// The reference is itself tested by the cases that were worked out by hand.
func TestReferenceKnowsTheForms(t *testing.T) {
	for expr, dates := range map[string]string{
		"0 0 L * ?":      "2026-02-28 2026-03-31",
		"0 0 L-3 * ?":    "2026-02-25 2026-03-28",
		"0 0 LW * ?":     "2026-02-27 2026-03-31",
		"0 0 1W * ?":     "2026-02-02 2026-03-02",
		"0 0 31W * ?":    "2026-03-31",
		"0 0 ? * 5L":     "2026-02-27 2026-03-27",
		"0 0 ? * SUN#5":  "2026-03-29",
		"0 0 31 * SUN#5": "2026-03-29 2026-03-31",
	} {
		r := newReference(expr)
		var got []string
		for day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC); day.Month() < time.April; day = day.AddDate(0, 0, 1) {
			if r.matches(day) {
				got = append(got, day.Format(time.DateOnly))
			}
		}
		if strings.Join(got, " ") != dates {
			t.Errorf("%s: %v, want %s", expr, got, dates)
		}
	}
}
