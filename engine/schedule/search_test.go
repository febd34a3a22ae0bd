package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasecron/leasecron/engine/schedule"
)

// Any expression at any time within 50 years: what the search finds in three days is what
// the reference finds minute by minute.
func TestSearchAgreesWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := generatedCron().Filter(func(expr string) bool {
			return newReference(expr).second[0] // the walk is by minutes
		}).Draw(t, "expr")
		text := fmt.Sprintf("cron %s tz=%s", expr, rapid.SampledFrom(changeZones).Draw(t, "zone"))
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) = %v", text, err)
		}
		line, err := s.Compile(schedule.Env{})
		if err != nil {
			t.Fatal(err)
		}
		zone, err := schedule.LoadZone(s.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(189302400, 3345062400).Draw(t, "from")/60*60, 0).UTC() // 1976 to 2076
		to := from.Add(72 * time.Hour)
		if _, offset := from.In(zone).Zone(); offset%60 != 0 {
			t.Fatalf("%s is not on the minute, which the walk needs", s.TimeZone)
		}
		want := newReference(expr).instants(walk(zone, from, to, time.Minute), "auto", "skip")
		at := from.Add(-time.Second)
		for _, w := range want {
			var ok bool
			// Matches that are not on the minute lie between.
			for at, ok = line.Next(at); ok && at.Before(w); at, ok = line.Next(at) {
				if at.Second() == 0 {
					t.Fatalf("%s: %v is extra, the next one is %v", text, at, w)
				}
			}
			if !ok || !at.Equal(w) {
				t.Fatalf("%s: %v is missed, got %v, %v", text, w, at, ok)
			}
		}
	})
}

// The days that match within five years are those that the reference finds day by day.
func TestDatesAgreeWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := strings.Fields(generatedCron().Draw(t, "expr"))
		dates := fields[len(fields)-3:]
		if len(fields) == 7 {
			dates = fields[3:]
		}
		expr := "0 0 0 " + strings.Join(dates, " ")
		s, err := schedule.Parse(expr)
		if err != nil {
			t.Fatalf("Parse(%q) = %v", expr, err)
		}
		line, err := s.Compile(schedule.Env{})
		if err != nil {
			t.Fatal(err)
		}
		after := time.Date(rapid.IntRange(1976, 2076).Draw(t, "year"), 1, rapid.IntRange(1, 366).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
		limit := after.AddDate(5, 0, 0)
		ref := newReference(expr)
		at := after
		for day := after.AddDate(0, 0, 1); !day.After(limit); day = day.AddDate(0, 0, 1) {
			if !ref.matches(day) {
				continue
			}
			next, ok := line.Next(at)
			if !ok || !next.Equal(day) {
				t.Fatalf("%s: Next(%v) = %v, %v, want %v", expr, at, next, ok, day)
			}
			if prev, ok := line.Prev(next); !at.Equal(after) && (!ok || !prev.Equal(at)) {
				t.Fatalf("%s: Prev(%v) = %v, %v, want %v", expr, next, prev, ok, at)
			}
			at = next
		}
		if at.Equal(after) {
			if next, ok := line.Next(after); ok {
				t.Fatalf("%s: Next(%v) = %v, want none within five years", expr, after, next)
			}
		}
	})
}

// The forms of an interval are consistent: counted, walked forwards and walked backwards.
func TestWalksAgree(t *testing.T) {
	calendars := map[string]schedule.CalendarSpec{
		"closed":  {Any: []string{"night", "weekend", "days", "odd"}},
		"night":   {From: "22:00", To: "06:30"},
		"weekend": {Weekdays: []string{}},
		"days":    {Dates: []string{"2026-03-09", "2026-03-10", "2026-11-03"}, TimeZone: "Asia/Tokyo"},
		"odd":     {Cron: "1-59/2 * * * *"},
		"a":       {Cron: "* * 12-13 * * *"},
		"0.x_y-z": {ICS: holidays},
	}
	rapid.Check(t, func(t *rapid.T) {
		s := generated().Draw(t, "schedule")
		from := time.UnixMicro(rapid.Int64Range(1770000000e6, 1800000000e6).Draw(t, "from")).UTC()
		if s.Kind == schedule.KindOnce {
			s.At = from.Add(time.Duration(rapid.IntRange(-5, 100).Draw(t, "minutes")) * time.Minute)
		}
		if s.Kind != schedule.KindManual {
			s.Start, s.End = time.Time{}, from.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "end"))*time.Minute)
		}
		line, err := s.Compile(schedule.Env{Key: "a/b", FirstSeen: from.Add(-time.Hour), Calendars: calendars})
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == schedule.KindEvery {
			return // its instants depend on how long runs take
		}
		const most = 3000
		var all []time.Time
		for at := from.Add(-time.Nanosecond); len(all) < most; {
			next, ok := line.Next(at)
			if !ok {
				break
			}
			if !next.After(at) || !next.Before(s.End) {
				t.Fatalf("%v: Next(%v) = %v", s, at, next)
			}
			all = append(all, next)
			at = next
		}
		to := s.End
		if len(all) == most {
			to = all[most-1].Add(time.Microsecond)
		}
		if s.Kind == schedule.KindManual {
			to = from.Add(time.Hour)
		}
		if between := slices.Collect(line.Between(from, to)); !slices.EqualFunc(between, all, time.Time.Equal) {
			t.Fatalf("%v: Between(%v, %v) = %v, want %v", s, from, to, between, all)
		}
		if n := line.Count(from, to); n != len(all) {
			t.Fatalf("%v: Count(%v, %v) = %d, want %d", s, from, to, n, len(all))
		}
		at := to
		for _, want := range slices.Backward(all) {
			prev, ok := line.Prev(at)
			if !ok || !prev.Equal(want) {
				t.Fatalf("%v: Prev(%v) = %v, %v, want %v", s, at, prev, ok, want)
			}
			at = prev
		}
	})
}

// Next and Count are asked for every trigger at every turn of the engine's loop.
func TestSearchDoesNotAllocate(t *testing.T) {
	from := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"*/5 * * * * tz=America/New_York", "0 0 29 2 * tz=America/New_York gap=next", "0 0 22 L * ?", "rate 90s",
		"* * * * * * tz=Europe/Berlin calendar=closed",
	} {
		line := compile(t, text, schedule.Env{Calendars: map[string]schedule.CalendarSpec{
			"closed": {Any: []string{"night", "weekend"}}, "night": {From: "22:00", To: "06:00"}, "weekend": {Weekdays: []string{}},
		}})
		n := testing.AllocsPerRun(100, func() {
			next, _ := line.Next(from)
			prev, _ := line.Prev(next)
			line.Count(prev, from.AddDate(0, 0, 30))
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want none", text, n)
		}
	}
}

// What a per-second trigger missed in 30 days is counted within half a millisecond.
func TestCountIsQuick(t *testing.T) {
	line := compile(t, "* * * * * * tz=America/New_York", schedule.Env{})
	from := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC)
	best := time.Hour // of some tries: the machine may be busy
	for range 10 {
		start := time.Now()
		if n := line.Count(from, from.AddDate(0, 0, 30)); n != 30*86400 {
			t.Fatalf("Count = %d, want %d", n, 30*86400)
		}
		best = min(best, time.Since(start))
	}
	if best > 500*time.Microsecond {
		t.Errorf("counting took %v, want at most 0.5ms", best)
	}
}
