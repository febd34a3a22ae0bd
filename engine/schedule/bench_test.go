package schedule_test

import (
	"math"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/leasecron/leasecron/engine/schedule"
)

var sinkTime time.Time

// BenchmarkNext walks each schedule in a zone with clock changes, beside robfig/cron where
// that knows the expression. It prints how many times faster ours is, and the geometric mean.
func BenchmarkNext(b *testing.B) {
	zone, err := schedule.LoadZone("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
	product, compared := 1.0, 0
	for _, bench := range []struct{ expr, robfig string }{
		{"0 3 * * *", "0 3 * * *"},
		{"*/5 * * * *", "*/5 * * * *"},
		{"0 9 * * MON-FRI", "0 9 * * MON-FRI"},
		{"0 0 1 1 *", "0 0 1 1 *"},
		{"0 0 29 2 *", "0 0 29 2 *"},
		{"0 0 22 L * ?", ""},
		{"0 0 9 ? * FRI#2", ""},
	} {
		var robfig float64 // nanoseconds of a step
		if bench.robfig != "" {
			b.Run(bench.expr+"/robfig", func(b *testing.B) {
				s, err := cron.ParseStandard(bench.robfig)
				if err != nil {
					b.Fatal(err)
				}
				robfig = timeSteps(b, start, s.Next)
			})
		}
		b.Run(bench.expr+"/ours", func(b *testing.B) {
			s, err := schedule.Parse(bench.expr + " tz=America/New_York")
			if err != nil {
				b.Fatal(err)
			}
			line, err := s.Compile(schedule.Env{})
			if err != nil {
				b.Fatal(err)
			}
			ours := timeSteps(b, start, func(at time.Time) time.Time {
				next, _ := line.Next(at)
				return next
			})
			if robfig > 0 {
				b.ReportMetric(robfig/ours, "times-faster")
				product *= robfig / ours
				compared++
			}
		})
	}
	if compared > 0 {
		b.Run("geometric-mean", func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(math.Pow(product, 1/float64(compared)), "times-faster")
		})
	}
}

// timeSteps walks from start to 2060 over and over, and returns the nanoseconds of a step.
func timeSteps(b *testing.B, start time.Time, next func(time.Time) time.Time) float64 {
	b.Helper()
	b.ReportAllocs()
	at := start
	for b.Loop() {
		if at = next(at); at.IsZero() || at.Year() > 2060 {
			at = start
		}
	}
	sinkTime = at
	return float64(b.Elapsed().Nanoseconds()) / float64(b.N)
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
