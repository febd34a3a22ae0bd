package schedule_test

import (
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

// changeZones have clock changes of an hour, of half and of two hours, at midnight and at
// noon UTC, days that never were or were twice, and changes that are not daylight saving.
var changeZones = []string{
	"Africa/Cairo", "Africa/Casablanca", "Africa/Juba", "Africa/Sao_Tome", "Africa/Windhoek",
	"America/Argentina/San_Luis", "America/Asuncion", "America/Caracas", "America/Chicago", "America/Godthab",
	"America/Havana", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Santiago",
	"America/Sao_Paulo", "America/Scoresbysund", "America/St_Johns", "Antarctica/Casey", "Antarctica/Troll",
	"Asia/Amman", "Asia/Beirut", "Asia/Dhaka", "Asia/Gaza", "Asia/Kathmandu",
	"Asia/Pyongyang", "Asia/Tehran", "Australia/Adelaide", "Australia/Lord_Howe", "Australia/Sydney",
	"Europe/Berlin", "Europe/Dublin", "Europe/Istanbul", "Europe/London", "Europe/Moscow",
	"Europe/Volgograd", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Fakaofo",
}

// changeExpressions are 200 expressions, to the minute.
var changeExpressions = twoHundred()

func twoHundred() []string {
	exprs := []string{
		"* * * * *", "*/2 * * * *", "*/5 * * * *", "*/7 * * * *", "*/15 * * * *", "*/30 * * * *", "0/15 * * * *",
		"5/20 * * * *", "10-20 * * * *", "10-50/10 * * * *", "0,30 * * * *", "15,45 * * * *", "59 * * * *",
		"0 * * * *", "1 * * * *", "20 * * * *", "0 */2 * * *", "0 */3 * * *", "0 1/2 * * *", "30 */6 * * *",
		"0 0-3 * * *", "*/10 1-2 * * *", "*/10 2-3 * * *", "*/20 0 * * *", "*/20 23 * * *", "* 2 * * *", "* 1 * * *",
		"* 0 * * *", "* 23 * * *", "0 0 1 * *", "0 0 1 1 *", "0 0 29 2 *", "0 0 L * *", "0 0 LW * *", "0 0 L-2 * *",
		"30 1 15W * *", "30 2 1W * *", "0 2 ? * SUN", "0 2 ? * SUNL", "30 2 ? * SUNL", "30 1 ? * SUNL", "0 1 ? * 7L",
		"30 2 ? * SUN#2", "30 1 ? * SUN#1", "30 3 ? * SUN#4", "0 0 ? * FRI#5", "0 0 ? * SAT", "30 2 * * MON-FRI",
		"30 2 31 * SUN", "0 0 13 * FRI", "30 2 */2 * *", "0 2 * 3,10,11 *", "30 2 8-14 3 *", "30 1 1-7 11 *",
		"15 2 * OCT SUN", "45 23 30 12 *", "0 12 30,31 12 *", "0 0,12 * * *", "0 6,18 * * *", "30 0,1,2,3 * * *",
		"0 2 * * 0-3", "0 2 * * 4-7", "17 1,2 ? * 1-5", "1,2,3 2 * * *", "0 0 * * *",
	}
	for _, hour := range []int{0, 1, 2, 3, 4, 11, 12, 22, 23} {
		for _, minute := range []int{0, 1, 14, 15, 16, 20, 29, 30, 31, 40, 45, 59} {
			exprs = append(exprs, fmt.Sprintf("%d %d * * *", minute, hour))
		}
	}
	for _, hours := range []string{"0-1", "1-2", "2-3", "1,2", "2,3", "0,23", "*/4", "22-23"} {
		for _, minutes := range []string{"0", "30", "*/15"} {
			exprs = append(exprs, minutes+" "+hours+" * * *")
		}
	}
	return append(exprs, "30 2 * * SAT,SUN", "30 1 * * SUN", "45 1 ? 10-11 SUN#1")
}

// secondExpressions are to the second.
var secondExpressions = []string{
	"* * * * * *", "*/7 * * * * *", "59 59 * * * *", "0 0 2 * * *", "1 0 2 * * *", "59 59 1 * * *", "30 30 2 * * *",
	"0-10 0 * * * *", "15,45 */10 1-3 * * *", "59 59 23 * * *", "0 0 0 * * *",
}

type clockChange struct {
	zone          string
	at            time.Time
	before, after int    // offsets, in seconds
	clock         string // of the zone, right before
}

// clockChanges lists the changes from 2000 to 2037 of a zone, or the first of each kind.
func clockChanges(t *testing.T, name string, every bool) []clockChange {
	t.Helper()
	zone, err := schedule.LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	offset := func(unix int64) int {
		_, o := time.Unix(unix, 0).In(zone).Zone()
		return o
	}
	var all []clockChange
	seen := make(map[string]bool)
	const day = 86400
	end := time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for today := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix(); today < end; today += day {
		before := offset(today)
		if before == offset(today+day) {
			continue
		}
		n := sort.Search(day, func(s int) bool { return offset(today+int64(s)) != before })
		c := clockChange{zone: name, at: time.Unix(today+int64(n), 0).UTC(), before: before, after: offset(today + int64(n))}
		c.clock = c.at.Add(time.Duration(before) * time.Second).Format(time.TimeOnly)
		kind := fmt.Sprint(c.before, c.after, c.clock)
		if every || !seen[kind] {
			all = append(all, c)
		}
		seen[kind] = true
	}
	return all
}

// R035, R043, R045: for 48 hours around each kind of clock change, nothing is missed and nothing
// is extra.
func TestClockChanges(t *testing.T) {
	if n := len(changeExpressions); n < 200 {
		t.Fatalf("%d expressions, want 200", n)
	}
	minutely, secondly := referencesOf(changeExpressions), referencesOf(secondExpressions)
	changes := 0
	for i, name := range changeZones {
		found := clockChanges(t, name, long)
		changes += len(found)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for j, c := range found {
				c.compare(t, minutely, 24*time.Hour, time.Minute, i+j)
				c.compare(t, secondly, 90*time.Minute, time.Second, i+j)
			}
		})
	}
	t.Logf("%d clock changes", changes)
}

type referenced struct {
	expr string
	ref  reference
}

func referencesOf(exprs []string) []referenced {
	all := make([]referenced, len(exprs))
	for i, expr := range exprs {
		all[i] = referenced{expr, newReference(expr)}
	}
	return all
}

// compare walks each expression through the time around a change. The policies take turns.
func (c clockChange) compare(t *testing.T, exprs []referenced, around, step time.Duration, turn int) {
	t.Helper()
	zone, err := schedule.LoadZone(c.zone)
	if err != nil {
		t.Fatal(err)
	}
	from, to := c.at.Add(-around), c.at.Add(around)
	ticks := walk(zone, from, to, step)
	for i, e := range exprs {
		ambiguous := []string{"auto", "first", "both"}[(turn+i)%3]
		gap := []string{"skip", "next"}[(turn+i)/3%2]
		text := fmt.Sprintf("cron %s tz=%s ambiguous=%s gap=%s", e.expr, c.zone, ambiguous, gap)
		compareWith(t, text, e.ref.instants(ticks, ambiguous, gap), from, to)
	}
}

// compareWith walks a schedule forwards, backwards and in one count.
func compareWith(t *testing.T, text string, want []time.Time, from, to time.Time) {
	t.Helper()
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q) = %v", text, err)
	}
	line, err := s.Compile(schedule.Env{})
	if err != nil {
		t.Fatalf("Compile(%q) = %v", text, err)
	}
	var got []time.Time
	for at := from.Add(-time.Nanosecond); ; {
		next, ok := line.Next(at)
		if !ok || !next.Before(to) {
			break
		}
		if !next.After(at) {
			t.Fatalf("%s: Next(%v) = %v is not later", text, at, next)
		}
		got = append(got, next)
		at = next
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Fatalf("%s from %v:\n got %v\nwant %v", text, from, difference(got, want), difference(want, got))
	}
	for i, at := 0, to; ; i++ {
		prev, ok := line.Prev(at)
		if !ok || prev.Before(from) {
			if i != len(want) {
				t.Fatalf("%s: Prev(%v) = %v, %v after %d instants, want %d", text, at, prev, ok, i, len(want))
			}
			break
		}
		if i == len(want) || !prev.Equal(want[len(want)-1-i]) {
			t.Fatalf("%s: Prev(%v) = %v, want one of %v", text, at, prev, want)
		}
		at = prev
	}
	if n := line.Count(from, to); n != len(want) {
		t.Fatalf("%s: Count(%v, %v) = %d, want %d", text, from, to, n, len(want))
	}
}

// difference lists what is in a and not in b.
func difference(a, b []time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(a), func(x time.Time) bool { return slices.ContainsFunc(b, x.Equal) })
}
