package schedule_test

import (
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

// seeds open the corpora: every form once.
var seeds = []string{
	"manual", "0 3 * * *", "*/5 * * * *", "0 0 22 L * ?", "0 0 9 ? * FRI#2", "0 0 0 29 2 ? 2028", "0 5 LW * *", "0 0 15W * 7L",
	"H H * * *", "@daily tz=Europe/Paris", "rate 60s", "rate 1h30m start=2026-01-01T00:00:00Z", "every 00:10:00 x5",
	"once 2026-11-01T00:00:00Z", "cron * * * * * * tz=Pacific/Apia ambiguous=both gap=next", "0 0 30 2 *",
	"30 2 * * * tz=America/New_York calendar=closed jitter=30s end=2030-01-01T00:00:00Z", "TZ=UTC 0 3 * * *",
	"0 0 * * FRI-SUN", "1,,2 * * * *", "\xff * * * *", "* * * * * ſun",
}

// FuzzParse: no text makes it panic, and what it accepts prints to a text that reads back.
func FuzzParse(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schedule.Parse(text)
		if err != nil {
			for _, r := range err.Error() {
				if r == '\n' {
					t.Fatalf("Parse(%q): the error has more than one line: %v", text, err)
				}
			}
			return
		}
		again, err := schedule.Parse(s.String())
		if err != nil || again != s {
			t.Fatalf("Parse(%q) = %+v prints as %q, which reads as %+v, %v", text, s, s, again, err)
		}
		if s.English() == "" {
			t.Fatalf("%q has no English", text)
		}
		_ = s.Validate() // must not panic
	})
}

// FuzzNext: whatever the schedule and the time, the next instant is strictly later, the one
// before it is not after where the search began, and no answer takes long.
func FuzzNext(f *testing.F) {
	for i, text := range seeds {
		f.Add(text, int64(i)*40_000_000, int64(i))
	}
	f.Add("0 12 30 12 * tz=Pacific/Apia", int64(1325200000), int64(0))
	f.Add("* * * * * * tz=Antarctica/Troll", int64(1<<62), int64(-1))
	f.Add("0 0 * * * tz=Africa/Monrovia", int64(-1<<62), int64(1))
	calendars := map[string]schedule.CalendarSpec{
		"closed":  {Any: []string{"night", "weekend", "odd"}},
		"night":   {From: "22:00", To: "06:30"},
		"odd":     {Cron: "* 1-59/2 * * * *", TimeZone: "Australia/Lord_Howe"},
		"events":  {ICS: holidays},
		"weekend": {Weekdays: []string{}, TimeZone: "Asia/Gaza"},
	}
	f.Fuzz(func(t *testing.T, text string, seconds, nanos int64) {
		s, err := schedule.Parse(text)
		if err != nil {
			return
		}
		after := time.Unix(seconds, nanos)
		line, err := s.Compile(schedule.Env{Key: "job/trigger", FirstSeen: after, Calendars: calendars})
		if err != nil {
			return
		}
		start := time.Now()
		next, ok := line.Next(after)
		prev, okPrev := line.Prev(after)
		if took := time.Since(start); took > time.Second {
			t.Fatalf("%v: Next and Prev of %v took %v", s, after, took)
		}
		if ok && !next.After(after) {
			t.Fatalf("%v: Next(%v) = %v is not later", s, after, next)
		}
		if okPrev && !prev.Before(after) {
			t.Fatalf("%v: Prev(%v) = %v is not earlier", s, after, prev)
		}
		if !ok || s.Kind == schedule.KindEvery {
			return
		}
		if again, ok := line.Next(next.Add(-time.Nanosecond)); !ok || !again.Equal(next) {
			t.Fatalf("%v: Next(%v) = %v, but just before it Next = %v, %v", s, after, next, again, ok)
		}
		if back, ok := line.Prev(next); ok && back.After(after) {
			t.Fatalf("%v: Prev(%v) = %v lies between %v and its next", s, next, back, after)
		}
		if n := line.Count(after.Add(time.Microsecond), next); n != 0 {
			t.Fatalf("%v: Count(%v, %v) = %d, want 0", s, after, next, n)
		}
		if n := line.Count(next, next.Add(time.Microsecond)); n != 1 {
			t.Fatalf("%v: Count at %v = %d, want 1", s, next, n)
		}
	})
}
