package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/schedule"
)

func TestCalendars(t *testing.T) {
	calendars := map[string]schedule.CalendarSpec{
		"dates":        {Dates: []string{"2026-10-02", "2026-10-01"}},
		"cn-dates":     {Dates: []string{"2026-10-01"}, TimeZone: "Asia/Shanghai"},
		"weekends":     {Weekdays: []string{}},
		"fridays":      {Weekdays: []string{"fri"}},
		"always":       {Weekdays: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
		"night":        {From: "22:00", To: "06:00"},
		"lunch":        {From: "12:00:30", To: "13:00"},
		"first-8h":     {Cron: "* * 0-7 * * *"},
		"every-second": {Cron: "* * * * * *"},
		"ics":          {ICS: holidays},
		"closed":       {Any: []string{"dates", "weekends", "night"}},
		"nested":       {Any: []string{"closed", "fridays", "closed"}},
	}
	tests := map[string]struct{ text, after, want string }{
		"whole days": {
			"0 12 * * * calendar=dates", "2026-09-29T13:00:00Z",
			"2026-09-30T12:00:00Z 2026-10-03T12:00:00Z",
		},
		"days are those of the trigger's zone": {
			"0 1 * * * tz=Asia/Shanghai calendar=dates", "2026-09-29T00:00:00Z",
			"2026-09-29T17:00:00Z 2026-10-02T17:00:00Z",
		},
		"or of the calendar's own zone": {
			"0 17 * * * calendar=cn-dates", "2026-09-29T00:00:00Z",
			"2026-09-29T17:00:00Z 2026-10-01T17:00:00Z",
		},
		"weekends by default": {
			"0 12 * * * calendar=weekends", "2026-10-02T00:00:00Z",
			"2026-10-02T12:00:00Z 2026-10-05T12:00:00Z",
		},
		"a given weekday": {"0 12 * * * calendar=fridays", "2026-10-01T13:00:00Z", "2026-10-03T12:00:00Z"},
		"a span over midnight": {
			"0 * * * * calendar=night", "2026-10-01T20:30:00Z",
			"2026-10-01T21:00:00Z 2026-10-02T06:00:00Z",
		},
		"a span with seconds": {"*/30 * 12 * * * calendar=lunch", "2026-10-01T12:00:00Z", "2026-10-02T12:00:00Z"},
		"every second of a cron calendar is jumped in one step": {
			"* * * * * * calendar=first-8h", "2026-10-01T23:59:58Z",
			"2026-10-01T23:59:59Z 2026-10-02T08:00:00Z 2026-10-02T08:00:01Z",
		},
		"all that is excluded leaves nothing":          {"* * * * * * calendar=always", "2026-10-01T00:00:00Z", "none"},
		"also for a rate":                              {"rate 1s calendar=always", "2026-10-01T00:00:00Z", "none"},
		"also second by second":                        {"rate 1s calendar=every-second", "2026-10-01T00:00:00Z", "none"},
		"a rate that always falls into the night ends": {"rate 86400s start=2026-10-01T23:00:00Z calendar=night", "2026-10-01T00:00:00Z", "none"},
		"a rate keeps its rhythm": {
			"rate 25200s start=2026-10-01T00:00:00Z calendar=night", "2026-10-01T00:00:00Z",
			"2026-10-01T07:00:00Z 2026-10-01T14:00:00Z 2026-10-01T21:00:00Z 2026-10-02T11:00:00Z",
		},
		"an excluded once never runs": {"once 2026-10-01T12:00:00Z calendar=dates", "2026-09-01T00:00:00Z", "none"},
		"a fixed delay moves to the first allowed moment": {
			"every 00:10:00 calendar=night", "2026-10-01T21:55:00Z",
			"2026-10-02T06:00:00Z 2026-10-02T06:10:00Z",
		},
		"any of several":        {"0 * * * * calendar=closed", "2026-09-30T21:00:00Z", "2026-10-05T06:00:00Z"},
		"any of any of several": {"0 6 * * * calendar=nested", "2026-10-08T06:00:00Z", "2026-10-12T06:00:00Z"},

		"an all-day event of every year": {
			"0 12 * * * calendar=ics", "2030-12-24T00:00:00Z",
			"2030-12-24T12:00:00Z 2030-12-27T12:00:00Z",
		},
		"an all-day event is a day of the trigger's zone": {
			"30 0 * * * tz=Asia/Tokyo calendar=ics", "2030-12-23T00:00:00Z",
			"2030-12-23T15:30:00Z 2030-12-26T15:30:00Z",
		},
		"a recurring event in its own zone": {
			"30 * * * * calendar=ics", "2026-01-04T00:00:00Z",
			"2026-01-04T00:30:00Z 2026-01-04T03:30:00Z",
		},
		"an instance that is excepted": {"0 2 1 2 * tz=Europe/Berlin calendar=ics", "2026-01-31T00:00:00Z", "2026-02-01T01:00:00Z"},
		"an instance that has moved leaves its place": {
			"0 2 1,2 3 * tz=Europe/Berlin calendar=ics", "2026-02-28T00:00:00Z",
			"2026-03-01T01:00:00Z 2027-03-01T01:00:00Z",
		},
		"an instance that was cancelled": {"0 2 5 4 * tz=Europe/Berlin calendar=ics", "2026-04-01T00:00:00Z", "2026-04-05T00:00:00Z"},
		"a time without a zone, up to its last day": {
			"10 9 * * * tz=America/New_York calendar=ics", "2026-01-27T16:00:00Z",
			"2026-01-29T14:10:00Z 2026-01-30T14:10:00Z 2026-01-31T14:10:00Z",
		},
		"an extra date":         {"5 10 2 2 * calendar=ics", "2026-01-01T00:00:00Z", "2027-02-02T10:05:00Z"},
		"days on end in UTC":    {"0 */6 * 6 * calendar=ics", "2026-06-01T00:00:00Z", "2026-06-03T12:00:00Z"},
		"a number of instances": {"0 0 * 7 * calendar=ics", "2026-07-06T00:00:00Z", "2026-07-08T00:00:00Z 2026-07-10T00:00:00Z 2026-07-12T00:00:00Z"},
		"a Windows zone":        {"30 0 4 8 * calendar=ics", "2026-07-01T00:00:00Z", "2027-08-04T00:30:00Z"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			after := utc(t, tt.after)
			line := compile(t, tt.text, schedule.Env{Calendars: calendars, FirstSeen: after})
			got := nextTexts(line, after, strings.Count(tt.want, " ")+1)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s after %s (-want +got):\n%s", tt.text, tt.after, diff)
			}
		})
	}
}

// A wall time that a clock change repeats is excluded both times.
func TestCalendarInARepeatedHour(t *testing.T) {
	line := compile(t, "*/30 * * * * tz=Europe/Berlin calendar=c", schedule.Env{Calendars: map[string]schedule.CalendarSpec{
		"c": {From: "02:30", To: "03:00"},
	}})
	want := "2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z"
	if got := nextTexts(line, utc(t, "2026-10-24T23:30:00Z"), 3); got != want {
		t.Errorf("Next = %s, want %s", got, want)
	}
}

func TestCheckCalendars(t *testing.T) {
	event := func(lines string) string {
		return "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20260101\n" + lines + "END:VEVENT\nEND:VCALENDAR\n"
	}
	for name, tt := range map[string]struct {
		spec schedule.CalendarSpec
		want string
	}{
		"nothing":                   {schedule.CalendarSpec{}, "it is empty, want one of dates, weekdays, from and to, cron, ics or any"},
		"two kinds":                 {schedule.CalendarSpec{Cron: "* * * * *", From: "22:00"}, "it has from and to, cron, want exactly one of them"},
		"no dates":                  {schedule.CalendarSpec{Dates: []string{}}, "dates has 0 entries, want 1 to 10000"},
		"not a date":                {schedule.CalendarSpec{Dates: []string{"2026-02-30"}}, "dates: 2026-02-30 is not a date like 2026-12-25"},
		"not a weekday":             {schedule.CalendarSpec{Weekdays: []string{"SATURDAY"}}, "weekdays: SATURDAY is not one of SUN, MON"},
		"an empty span":             {schedule.CalendarSpec{From: "22:00", To: "22:00"}, "from and to are both 22:00: the span would be empty or the whole day"},
		"half a span":               {schedule.CalendarSpec{From: "22:00"}, `to "" is not a time of day like 22:00`},
		"not a time":                {schedule.CalendarSpec{From: "24:00", To: "06:00"}, "from 24:00 is not a time of day"},
		"a cron that is none":       {schedule.CalendarSpec{Cron: "* * 24 * * *"}, "cron: hour field: 24 is out of range 0-23"},
		"H in a cron":               {schedule.CalendarSpec{Cron: "H * * * *"}, "cron: H has no meaning in a calendar"},
		"an unknown zone":           {schedule.CalendarSpec{Weekdays: []string{}, TimeZone: "Local"}, "unknown time zone Local"},
		"an unknown part":           {schedule.CalendarSpec{Any: []string{"other"}}, "any names other, which is not defined"},
		"itself":                    {schedule.CalendarSpec{Any: []string{"x"}}, "it contains itself: x → x"},
		"any of none":               {schedule.CalendarSpec{Any: []string{}}, "any is empty, want names of calendars"},
		"a zone beside any":         {schedule.CalendarSpec{Any: []string{}, TimeZone: "UTC"}, "timeZone has no meaning beside any"},
		"a file that is none":       {schedule.CalendarSpec{ICS: "hello"}, "iCalendar file"},
		"a file that is cut":        {schedule.CalendarSpec{ICS: "BEGIN:VCALENDAR\nBEGIN:VEVENT\n"}, "iCalendar file"},
		"an event without a start":  {schedule.CalendarSpec{ICS: "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Fair\nEND:VEVENT\nEND:VCALENDAR\n"}, `iCalendar event 1 ("Fair"): DTSTART is missing`},
		"a rule that never matches": {schedule.CalendarSpec{ICS: event("RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30\n")}, "RRULE: the rule never matches"},
		"a rule of minutes":         {schedule.CalendarSpec{ICS: event("RRULE:FREQ=MINUTELY\n")}, "RRULE: a recurrence finer than daily is refused"},
		"a huge interval":           {schedule.CalendarSpec{ICS: event("RRULE:FREQ=DAILY;INTERVAL=99999999999\n")}, "RRULE: "},
		"a huge count":              {schedule.CalendarSpec{ICS: event("RRULE:FREQ=DAILY;COUNT=1000000\n")}, "COUNT 1000000 is out of range"},
		"a broken rule":             {schedule.CalendarSpec{ICS: event("RRULE:FREQ=SOMETIMES\n")}, "RRULE: "},
		"an end before the start":   {schedule.CalendarSpec{ICS: event("DTEND;VALUE=DATE:20251231\n")}, "its length"},
		"an unknown TZID":           {schedule.CalendarSpec{ICS: event("EXDATE;TZID=Here:20260101T000000\n")}, "EXDATE: unknown time zone Here"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := schedule.CheckCalendars(map[string]schedule.CalendarSpec{"x": tt.spec})
			var refused *schedule.CalendarError
			if !errors.As(err, &refused) || refused.Name != "x" || !strings.Contains(err.Error(), "calendar x: "+tt.want) &&
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("CheckCalendars() = %v, want calendar x: %s", err, tt.want)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestCheckCalendarsReportsAllInOrder(t *testing.T) {
	err := schedule.CheckCalendars(map[string]schedule.CalendarSpec{
		"b": {}, "a": {Any: []string{"c", "d", "b", "e"}}, "c": {Any: []string{"a"}}, "fine": {Weekdays: []string{}}, "Not": {Weekdays: []string{}},
	})
	want := "calendar Not: the name does not match ^[a-z0-9][a-z0-9._-]{0,127}$\n" +
		"calendar a: it contains itself: a → c → a\n" +
		"calendar a: any names d, which is not defined\n" +
		"calendar a: any names e, which is not defined\n" +
		"calendar b: it is empty, want one of dates, weekdays, from and to, cron, ics or any"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompileNamesAnUnknownCalendar(t *testing.T) {
	s := schedule.Schedule{Kind: schedule.KindCron, Cron: "0 3 * * *", Calendar: "closed"}
	if _, err := s.Compile(schedule.Env{}); err == nil || err.Error() != "calendar closed: it is not defined" {
		t.Errorf("Compile() = %v", err)
	}
}
