package schedule_test

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/leasecron/leasecron/engine/schedule"
)

var sinkTime time.Time

// BenchmarkNext walks each schedule in a zone with clock changes, beside robfig/cron where
// that knows the expression: compare ours with robfig of the same name.
func BenchmarkNext(b *testing.B) {
	zone, err := schedule.LoadZone("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
	for _, bench := range []struct{ expr, robfig string }{
		{"0 3 * * *", "0 3 * * *"},
		{"*/5 * * * *", "*/5 * * * *"},
		{"0 9 * * MON-FRI", "0 9 * * MON-FRI"},
		{"0 0 1 1 *", "0 0 1 1 *"},
		{"0 0 29 2 *", "0 0 29 2 *"},
		{"0 0 22 L * ?", ""},
		{"0 0 9 ? * FRI#2", ""},
	} {
		b.Run("ours/"+bench.expr, func(b *testing.B) {
			s, err := schedule.Parse(bench.expr + " tz=America/New_York")
			if err != nil {
				b.Fatal(err)
			}
			line, err := s.Compile(schedule.Env{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			at := start
			for b.Loop() {
				next, ok := line.Next(at)
				if !ok || next.Year() > 2060 {
					next = start
				}
				at = next
			}
			sinkTime = at
		})
		if bench.robfig == "" {
			continue
		}
		b.Run("robfig/"+bench.expr, func(b *testing.B) {
			s, err := cron.ParseStandard(bench.robfig)
			if err != nil {
				b.Fatal(err)
			}
			at := start
			b.ReportAllocs()
			for b.Loop() {
				next := s.Next(at)
				if next.IsZero() || next.Year() > 2060 {
					next = start
				}
				at = next
			}
			sinkTime = at
		})
	}
}

// BenchmarkCount counts what a per-second trigger missed in 30 days: DESIGN wants at most
// half a millisecond.
func BenchmarkCount(b *testing.B) {
	start := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{
		"every second":                "* * * * * * tz=America/New_York",
		"every second but at night":   "* * * * * * tz=America/New_York calendar=night",
		"every second but on seconds": "* * * * * * tz=America/New_York calendar=first-8h",
	} {
		b.Run(name, func(b *testing.B) {
			s, err := schedule.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			line, err := s.Compile(schedule.Env{Calendars: map[string]schedule.CalendarSpec{
				"night":    {From: "22:00", To: "06:00"},
				"first-8h": {Cron: "* * 0-7 * * *"},
			}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = line.Count(start, start.AddDate(0, 0, 30))
			}
			if n == 0 {
				b.Error("nothing counted")
			}
		})
	}
}

// BenchmarkCompile binds a schedule, as is done for each trigger of a document.
func BenchmarkCompile(b *testing.B) {
	s, err := schedule.Parse("0 9 * * MON-FRI tz=America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Compile(schedule.Env{}); err != nil {
			b.Fatal(err)
		}
	}
}
