package schedule_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/engine/schedule"
)

// BenchmarkTimelineMemory prints the heap that one compiled schedule keeps.
func BenchmarkTimelineMemory(b *testing.B) {
	const n = 10_000
	for _, bench := range []struct {
		name string
		text func(i int) string
	}{
		{"all different", func(i int) string { return fmt.Sprintf("%d %d %d * *", i%60, i/60%24, i/1440+1) }},
		{"all alike", func(int) string { return "0 9 * * MON-FRI tz=America/New_York" }},
		{"hashed", func(int) string { return "H H * * *" }},
		{"rate", func(i int) string { return fmt.Sprintf("rate %ds", i+1) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			schedules := make([]schedule.Schedule, n)
			keys := make([]string, n)
			for i := range n {
				var err error
				if schedules[i], err = schedule.Parse(bench.text(i)); err != nil {
					b.Fatal(err)
				}
				keys[i] = fmt.Sprintf("job-%d/default", i)
			}
			for b.Loop() {
				before := heapInUse()
				lines := make([]*schedule.Timeline, n)
				for i := range n {
					var err error
					if lines[i], err = schedules[i].Compile(schedule.Env{Key: keys[i]}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(heapInUse()-before)/n-8, "B/timeline")
				runtime.KeepAlive(lines)
			}
			runtime.KeepAlive(schedules)
			runtime.KeepAlive(keys)
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkCompileICS binds the 2,000 jobs of a document that all keep clear of one large
// iCalendar file, each once for the document and once for its next instant.
func BenchmarkCompileICS(b *testing.B) {
	var events strings.Builder
	events.WriteString("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//example//calendar//EN\r\n")
	for i := range 1000 {
		fmt.Fprintf(&events, "BEGIN:VEVENT\r\nUID:%d@example.com\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:%d%02d%02d\r\nSUMMARY:%s\r\nEND:VEVENT\r\n",
			i, 2020+i/100, i%12+1, i%28+1, strings.Repeat("holiday ", 10))
	}
	events.WriteString("END:VCALENDAR\r\n")
	text := events.String()
	s, err := schedule.Parse("0 9 * * MON-FRI calendar=closed tz=Europe/Berlin")
	if err != nil {
		b.Fatal(err)
	}
	from := utc(b, "2026-01-01T00:00:00Z")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for range 2000 {
			// Each version of a job has a text of its own, as it was read from the catalog.
			line, err := s.Compile(schedule.Env{Calendars: map[string]schedule.CalendarSpec{"closed": {ICS: strings.Clone(text)}}})
			if err != nil {
				b.Fatal(err)
			}
			sinkTime, _ = line.Next(from)
		}
	}
}
