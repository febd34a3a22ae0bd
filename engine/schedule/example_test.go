package schedule_test

import (
	"fmt"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

func ExampleParse() {
	s, err := schedule.Parse("0 0 9 * * MON-FRI tz=Asia/Shanghai")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	fmt.Println(s.English())
	// Output:
	// cron 0 0 9 * * MON-FRI tz=Asia/Shanghai
	// every weekday at 09:00 Asia/Shanghai
}

func ExampleParse_error() {
	_, err := schedule.Parse("0 0 * * 8")
	fmt.Println(err)
	_, err = schedule.Parse("0 0 * * L")
	fmt.Println(err)
	// Output:
	// dow field: 8 is out of range 0-7
	// dow field: L needs a weekday before it, as in FRIL
}

func ExampleTimeline_Next() {
	s, err := schedule.Parse("0 9 * * MON-FRI tz=Asia/Shanghai calendar=holidays")
	if err != nil {
		fmt.Println(err)
		return
	}
	line, err := s.Compile(schedule.Env{
		Key: "reports/workdays",
		Calendars: map[string]schedule.CalendarSpec{
			"holidays": {Dates: []string{"2026-10-01", "2026-10-02"}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(line.Next(time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)))
	// Output: 2026-10-05 01:00:00 +0000 UTC true
}

func ExampleTimeline_Count() {
	s, err := schedule.Parse("* * * * * *")
	if err != nil {
		fmt.Println(err)
		return
	}
	line, err := s.Compile(schedule.Env{})
	if err != nil {
		fmt.Println(err)
		return
	}
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	fmt.Println(line.Count(from, from.AddDate(0, 0, 30)))
	// Output: 2592000
}

func ExampleTimeline_Warnings() {
	s, err := schedule.Parse("30 2 * * * tz=America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	line, err := s.Compile(schedule.Env{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range line.Warnings(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		fmt.Println(w.Text)
	}
	// Output:
	// 2026-03-08 02:30:00 does not exist in America/New_York, the clock skips it: it is left out
}

func ExampleCheckCalendars() {
	fmt.Println(schedule.CheckCalendars(map[string]schedule.CalendarSpec{
		"closed": {Any: []string{"holidays", "weekends"}},
		"night":  {From: "22:00", To: "22:00"},
	}))
	// Output:
	// calendar closed: any names holidays, which is not defined
	// calendar closed: any names weekends, which is not defined
	// calendar night: from and to are both 22:00: the span would be empty or the whole day
}
