package schedule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/schedule"
)

// compile makes a timeline of a text that is valid.
func compile(t testing.TB, text string, env schedule.Env) *schedule.Timeline {
	t.Helper()
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q) = %v", text, err)
	}
	line, err := s.Compile(env)
	if err != nil {
		t.Fatalf("Compile(%q) = %v", text, err)
	}
	return line
}

func utc(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// nextTexts lists the next instants as text, "none" where there are no more.
func nextTexts(line *schedule.Timeline, after time.Time, count int) string {
	var all []string
	for range count {
		next, ok := line.Next(after)
		if !ok {
			all = append(all, "none")
			break
		}
		all = append(all, next.Format(time.RFC3339Nano))
		after = next
	}
	return strings.Join(all, " ")
}

// Each row stands for a fault that users of other schedulers have reported.
func TestReportedInstants(t *testing.T) {
	tests := []struct {
		row, what, text, after string
		want                   string // the instants that follow
	}{
		{
			"R032", "a fixed time that occurs twice fires once", "0 2 * * * tz=Europe/Berlin", "2023-10-28T12:00:00Z",
			"2023-10-29T00:00:00Z 2023-10-30T01:00:00Z",
		},
		// DESIGN: a time that does not occur is left out unless gap=next; the report wants it run after the gap.
		{
			"R033", "a time in a gap is skipped by default", "0 2 * * * tz=America/Los_Angeles", "2025-03-09T00:00:00-08:00",
			"2025-03-10T09:00:00Z",
		},
		{
			"R033", "and fires right after the gap with gap=next", "0 2 * * * tz=America/Los_Angeles gap=next",
			"2025-03-09T00:00:00-08:00", "2025-03-09T10:00:00Z 2025-03-10T09:00:00Z",
		},
		{
			"R034", "a time in the middle of a gap is skipped by default", "30 2 * * * tz=America/New_York",
			"2026-03-08T00:00:00Z", "2026-03-09T06:30:00Z",
		},
		{
			"R034", "and fires once at the gap's end with gap=next", "*/10 2 * * * tz=America/New_York gap=next",
			"2026-03-08T00:00:00Z", "2026-03-08T07:00:00Z 2026-03-09T06:00:00Z",
		},
		{
			"R038", "a walk over the change ends", "0 0/15 * * * ? tz=Europe/Berlin end=2017-10-29T03:00:00Z",
			"2017-10-29T00:59:59Z", "2017-10-29T01:00:00Z 2017-10-29T01:15:00Z 2017-10-29T01:30:00Z 2017-10-29T01:45:00Z " +
				"2017-10-29T02:00:00Z 2017-10-29T02:15:00Z 2017-10-29T02:30:00Z 2017-10-29T02:45:00Z none",
		},
		{
			"R039", "midnight of a day of 25 hours", "0 0 * * * tz=Europe/London", "2026-10-24T23:00:00Z",
			"2026-10-26T00:00:00Z",
		},
		{
			"R041", "the search starts at the second of two equal times", "18 1 * * * tz=America/Los_Angeles",
			"2022-11-06T09:18:00Z", "2022-11-07T09:18:00Z",
		},
		{
			"R042", "the day of the change has its own offset", "4 16 * * * tz=America/New_York", "2025-03-08T22:00:00Z",
			"2025-03-09T20:04:00Z 2025-03-10T20:04:00Z",
		},
		{
			"R043", "the Monday after the change", "0 12 * * 1 tz=Europe/Berlin", "2013-10-22T00:00:00Z",
			"2013-10-28T11:00:00Z 2013-11-04T11:00:00Z",
		},
		{
			"R045", "a change by half an hour", "15 2 * * * tz=Australia/Lord_Howe", "2025-10-03T18:00:00Z",
			"2025-10-05T15:15:00Z",
		},
		{
			"R045", "and the end of its gap", "15 2 * * * tz=Australia/Lord_Howe gap=next", "2025-10-03T18:00:00Z",
			"2025-10-04T15:30:00Z 2025-10-05T15:15:00Z",
		},
		{
			"R045", "a change back at midnight", "0 0 * * * tz=America/Havana", "2025-11-01T12:00:00Z",
			"2025-11-02T04:00:00Z 2025-11-03T05:00:00Z",
		},
		{"R046", "never back in time", "* * * * * tz=America/Sao_Paulo", "2016-02-21T02:00:00Z", "2016-02-21T02:01:00Z"},
		{
			"R047", "the zone decides which day it is", "35 5 * * * tz=Etc/GMT-1", "2026-05-04T05:39:00Z",
			"2026-05-05T04:35:00Z",
		},
		{"R048", "old names keep working", "0 12 * * * tz=CET", "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z"},
		{"R048", "old names keep working", "0 12 * * * tz=US/Pacific", "2026-07-01T00:00:00Z", "2026-07-01T19:00:00Z"},
		{"R051", "no zone is UTC", "0 12 * * *", "2026-07-01T00:00:00Z", "2026-07-01T12:00:00Z"},
		{
			"R055", "the repeated hour is walked through", "*/5 * * * * tz=America/New_York", "2026-11-01T06:10:00Z",
			"2026-11-01T06:15:00Z",
		},
		{"R055", "from within it", "* * * * * tz=America/New_York", "2026-11-01T06:30:15Z", "2026-11-01T06:31:00Z"},
		{"R056", "31 February never comes", "0 0 0 31 FEB *", "2026-01-01T00:00:00Z", "none"},
		{"R057", "30 February never comes", "0 0 30 2 *", "2026-01-01T00:00:00Z", "none"},
		{
			"R058", "a month without the day is passed over", "0 0 31 2,3,4,5 *", "2018-07-27T00:00:00Z",
			"2019-03-31T00:00:00Z 2019-05-31T00:00:00Z",
		},
		{"R058", "the next leap year", "0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{
			"R059", "dom and dow: either one", "0 0 31 2 1-5", "2026-03-01T00:00:00Z",
			"2027-02-01T00:00:00Z 2027-02-02T00:00:00Z",
		},
		{"R061", "the last working day", "0 5 LW * *", "2023-10-01T00:00:00Z", "2023-10-31T05:00:00Z"},
		{"R061", "the last working day before a weekend", "0 5 LW 5 ?", "2026-01-01T00:00:00Z", "2026-05-29T05:00:00Z"},
		{"R062", "the last Friday", "0 0 * * 5L", "2024-07-11T00:00:00Z", "2024-07-26T00:00:00Z 2024-08-30T00:00:00Z"},
		{"R063", "the last Sunday as 7L", "0 0 ? 10 7L", "2026-01-01T00:00:00Z", "2026-10-25T00:00:00Z 2027-10-31T00:00:00Z"},
		{"R063", "the last Sunday as 0L", "0 0 ? 10 0L", "2026-01-01T00:00:00Z", "2026-10-25T00:00:00Z 2027-10-31T00:00:00Z"},
		{"R063", "the last Sunday as SUNL", "0 0 ? 10 SUNL", "2026-01-01T00:00:00Z", "2026-10-25T00:00:00Z 2027-10-31T00:00:00Z"},
		{"R067", "six fields begin with seconds", "30 0 12 * * *", "2026-01-01T00:00:00Z", "2026-01-01T12:00:30Z"},
		{"R067", "seven end with years", "30 0 12 1 1 ? 2028", "2026-01-01T00:00:00Z", "2028-01-01T12:00:30Z none"},
		{
			"R068", "0/1 is every minute", "0/1 * * * ?", "2026-01-01T00:00:00Z",
			"2026-01-01T00:01:00Z 2026-01-01T00:02:00Z 2026-01-01T00:03:00Z",
		},
		// DESIGN: excluded instants are passed over, neither missed nor skipped.
		{
			"R070", "a holiday is left out", "0 8 * * * calendar=holidays", "2026-12-24T00:00:00Z",
			"2026-12-24T08:00:00Z 2026-12-26T08:00:00Z",
		},
		{
			"R071", "a holiday is a day of the trigger's zone", "30 0 * * * tz=Europe/Berlin calendar=christmas", "2025-12-23T00:00:00Z",
			"2025-12-23T23:30:00Z 2025-12-25T23:30:00Z",
		},
	}
	env := schedule.Env{Calendars: map[string]schedule.CalendarSpec{
		"holidays":  {Dates: []string{"2026-12-25"}},
		"christmas": {Dates: []string{"2025-12-25"}},
	}}
	for _, tt := range tests {
		t.Run(tt.row+" "+tt.what, func(t *testing.T) {
			line := compile(t, tt.text, env)
			got := nextTexts(line, utc(t, tt.after), strings.Count(tt.want, " ")+1)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s after %s (-want +got):\n%s", tt.text, tt.after, diff)
			}
		})
	}
}

// R040: a job of every minute does not stand still in the repeated hour.
func TestMinutesOfARepeatedHour(t *testing.T) {
	line := compile(t, "* * * * * tz=Europe/Paris", schedule.Env{})
	from, to := utc(t, "2020-10-25T01:00:00Z"), utc(t, "2020-10-25T02:00:00Z")
	if n := line.Count(from, to); n != 60 {
		t.Errorf("Count(%v, %v) = %d, want 60", from, to, n)
	}
}

// R047: what was due last follows the zone too.
func TestPrevFollowsTheZone(t *testing.T) {
	line := compile(t, "35 5 * * * tz=Etc/GMT-1", schedule.Env{})
	want := utc(t, "2026-05-04T04:35:00Z")
	if got, ok := line.Prev(utc(t, "2026-05-04T05:39:00Z")); !ok || !got.Equal(want) {
		t.Errorf("Prev() = %v, %v, want %v", got, ok, want)
	}
}

// R049: the zones are inside the program.
func TestZonesDoNotComeFromTheHost(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	if _, err := schedule.LoadZone("Europe/Berlin"); err != nil {
		t.Error(err)
	}
}

// R048, R050: an unknown zone is refused when the schedule is bound, with a hint; it never
// becomes UTC.
func TestUnknownZones(t *testing.T) {
	for name, hint := range map[string]string{
		"Europe/Berlim":               "did you mean Europe/Berlin?",
		"europe/berlin":               "did you mean Europe/Berlin?",
		"Mars/Olympus_Mons":           "write an IANA name",
		"Local":                       "the host's own zone is never used",
		"/usr/share/zoneinfo/UTC":     "paths are refused",
		"../Europe/Berlin":            "paths are refused",
		`Europe\Berlin`:               "paths are refused",
		"CET-1CEST,M3.5.0,M10.5.0":    "POSIX rules and bare offsets are refused",
		"UTC+3":                       "POSIX rules and bare offsets are refused",
		"<+03>-3":                     "POSIX rules and bare offsets are refused",
		"China Standard Time":         "write Asia/Shanghai",
		"Somewhere Standard Time":     "this is a Windows name",
		"":                            "the name is empty",
		"Factory":                     "IANA name",
		"Europe":                      "IANA name",
		"Europe/":                     "IANA name",
		strings.Repeat("Europe/", 99): "too long",
	} {
		_, err := schedule.LoadZone(name)
		if !errors.Is(err, schedule.ErrUnknownZone) || !strings.Contains(err.Error(), hint) {
			t.Errorf("LoadZone(%q) = %v, want %v with %q", name, err, schedule.ErrUnknownZone, hint)
		}
		if name == "" {
			continue
		}
		s := schedule.Schedule{Kind: schedule.KindCron, Cron: "0 3 * * *", TimeZone: name}
		if _, err := s.Compile(schedule.Env{}); !errors.Is(err, schedule.ErrUnknownZone) {
			t.Errorf("Compile(%v) = %v, want %v", s, err, schedule.ErrUnknownZone)
		}
	}
}

// R053: the text of a schedule stays readable when its zone is gone; binding it fails.
func TestZoneThatIsGone(t *testing.T) {
	s, err := schedule.Parse("0 3 * * * tz=Gone/Away")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compile(schedule.Env{}); !errors.Is(err, schedule.ErrUnknownZone) {
		t.Errorf("Compile() = %v, want %v", err, schedule.ErrUnknownZone)
	}
}

// R054: whether a zone was written is known, so that a document can be asked for one. DESIGN
// has no setting for it: without a zone it is UTC.
func TestMissingZoneIsVisible(t *testing.T) {
	s, err := schedule.Parse("0 3 * * *")
	if err != nil || s.TimeZone != "" {
		t.Errorf("Parse() = %+v, %v, want an empty time zone", s, err)
	}
}

// R056, R057: a date that exists in no year is refused when it is loaded.
func TestImpossibleDates(t *testing.T) {
	for text, impossible := range map[string]bool{
		"0 0 0 31 FEB *":         true,
		"0 0 30 2 *":             true,
		"0 0 31 2,4,6,9,11 *":    true,
		"0 0 L-30 2,4 *":         true,
		"0 0 0 29 2 ? 2026,2027": true,
		"0 0 30W 2 *":            true,
		"0 0 29 2 *":             false,
		"0 0 31 2,3 *":           false,
		"0 0 30 2 MON":           false, // either field is enough
		"0 0 0 29 2 ? 2028":      false,
		"0 0 0 1 1 ? 1999":       false, // past, not impossible
	} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q) = %v", text, err)
			continue
		}
		err = s.Validate()
		if errors.Is(err, schedule.ErrNoDate) != impossible || !impossible && err != nil {
			t.Errorf("Validate(%q) = %v, want ErrNoDate: %t", text, err, impossible)
		}
	}
}

// R069: H spreads jobs over the hour, and each stays where it is. Jitter is bounded.
func TestHashSpreadsJobs(t *testing.T) {
	minutes := make(map[int]bool)
	for i := range 100 {
		key := fmt.Sprintf("job-%d/default", i)
		next, ok := compile(t, "H * * * *", schedule.Env{Key: key}).Next(time.Unix(0, 0))
		again, _ := compile(t, "H * * * *", schedule.Env{Key: key}).Next(time.Unix(0, 0))
		if !ok || !next.Equal(again) {
			t.Fatalf("%s: %v, %v, then %v", key, next, ok, again)
		}
		minutes[next.Minute()] = true
	}
	if len(minutes) < 40 {
		t.Errorf("100 jobs are due at %d different minutes, want at least 40", len(minutes))
	}
	line := compile(t, "0 * * * * jitter=30s", schedule.Env{Key: "job/default"})
	delays := make(map[time.Duration]bool)
	for i := range 1000 {
		d := line.Jitter(fmt.Sprint(i))
		if d < 0 || d >= 30*time.Second {
			t.Errorf("Jitter(%d) = %v, want 0 to below 30s", i, d)
		}
		delays[d.Truncate(time.Second)] = true
	}
	if len(delays) != 30 {
		t.Errorf("1000 occurrences have delays in %d different seconds, want 30", len(delays))
	}
}
