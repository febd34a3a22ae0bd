package schedule_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/schedule"
)

func TestNext(t *testing.T) {
	const noon = "2026-05-01T12:00:00Z"
	tests := map[string]struct{ text, firstSeen, after, want string }{
		"manual has no instants": {"manual", noon, noon, "none"},

		"start is inclusive": {"0 12 * * * start=2026-05-03T12:00:00Z", noon, noon, "2026-05-03T12:00:00Z 2026-05-04T12:00:00Z"},
		"end is exclusive":   {"0 12 * * * end=2026-05-03T12:00:00Z", noon, noon, "2026-05-02T12:00:00Z none"},
		"an end in the past": {"0 12 * * * end=2026-05-01T12:00:00Z", noon, noon, "none"},
		"a start beyond the five years, which count from it": {
			"0 0 29 2 * start=2040-03-01T00:00:00Z", noon, noon, "2044-02-29T00:00:00Z 2048-02-29T00:00:00Z",
		},
		"five years ahead":           {"0 0 12 1 5 ? 2031", noon, noon, "2031-05-01T12:00:00Z none"},
		"more than five years ahead": {"1 0 12 1 5 ? 2031", noon, noon, "none"},
		"far ahead":                  {"0 12 * * * tz=Europe/Paris", noon, "9000-06-30T12:00:00Z", "9000-07-01T10:00:00Z"},
		"the last instant of all":    {"0 0 31 12 *", noon, "9998-01-01T00:00:00Z", "9998-12-31T00:00:00Z none"},
		"long ago":                   {"0 12 * * *", noon, "0001-01-01T00:00:00Z", "0001-01-01T12:00:00Z"},

		"a step from a weekday runs to Sunday as 7": {
			"0 0 ? * 1/2", noon, "2026-05-03T00:00:00Z",
			"2026-05-04T00:00:00Z 2026-05-06T00:00:00Z 2026-05-08T00:00:00Z 2026-05-10T00:00:00Z",
		},
		"a gap far ahead": {
			"30 2 8 3 * tz=America/New_York gap=next", noon, "2025-04-01T00:00:00Z", "2026-03-08T07:00:00Z 2027-03-08T07:30:00Z",
		},
		"a repeat far ahead": {
			"30 1 1 11 * tz=America/New_York ambiguous=both", noon, "2025-12-01T00:00:00Z",
			"2026-11-01T05:30:00Z 2026-11-01T06:30:00Z 2027-11-01T05:30:00Z",
		},
		"a day that never was, far ahead": {
			"0 12 30 12 * tz=Pacific/Apia gap=next", noon, "2010-12-31T00:00:00Z",
			"2011-12-30T10:00:00Z 2012-12-29T22:00:00Z",
		},

		"a rate counts from when it was first seen, once an interval has passed": {
			"rate 600s", noon, noon, "2026-05-01T12:10:00Z 2026-05-01T12:20:00Z",
		},
		"not before":                       {"rate 600s", noon, "2020-01-01T00:00:00Z", "2026-05-01T12:10:00Z"},
		"it never drifts":                  {"rate 600s", noon, "2026-05-01T12:13:07.5Z", "2026-05-01T12:20:00Z"},
		"a rate with a start begins there": {"rate 600s start=2026-05-01T12:01:00Z", noon, noon, "2026-05-01T12:01:00Z 2026-05-01T12:11:00Z"},
		"a start in the past keeps the rhythm": {
			"rate 3600s start=2000-01-01T00:30:00Z", noon, noon, "2026-05-01T12:30:00Z",
		},
		"a rate of fractions": {
			"rate 1.5s start=2026-05-01T12:00:00.000001Z", noon, noon,
			"2026-05-01T12:00:00.000001Z 2026-05-01T12:00:01.500001Z",
		},
		"a rate from the Unix epoch": {"rate 86400s", "1970-01-01T00:00:00Z", noon, "2026-05-02T00:00:00Z"},
		"a rate that ends":           {"rate 600s end=2026-05-01T12:20:00Z", noon, noon, "2026-05-01T12:10:00Z none"},

		"a fixed delay follows what it is given": {"every 00:10:00", noon, "2026-05-01T12:13:07.5Z", "2026-05-01T12:23:07.5Z"},
		"but not before its start":               {"every 00:10:00 start=2026-05-02T00:00:00Z", noon, noon, "2026-05-02T00:00:00Z"},
		"and not at its end":                     {"every 00:10:00 end=2026-05-01T12:10:00Z", noon, noon, "none"},

		"once":                   {"once 2026-05-01T12:00:01Z", noon, noon, "2026-05-01T12:00:01Z none"},
		"once is strictly later": {"once 2026-05-01T12:00:00Z", noon, noon, "none"},
		"once before its start":  {"once 2026-05-01T12:00:01Z start=2026-05-02T00:00:00Z", noon, noon, "none"},
		"once at its end":        {"once 2026-05-01T12:00:01Z end=2026-05-01T12:00:01Z", noon, noon, "none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			line := compile(t, tt.text, schedule.Env{FirstSeen: utc(t, tt.firstSeen)})
			got := nextTexts(line, utc(t, tt.after), strings.Count(tt.want, " ")+1)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s after %s (-want +got):\n%s", tt.text, tt.after, diff)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	calendars := map[string]schedule.CalendarSpec{"noon": {From: "12:00", To: "13:00"}}
	for name, tt := range map[string]struct{ text, want string }{
		"one interval after it was first seen": {"every 01:00:00", "2026-05-01T12:30:00Z"},
		"one interval after its start":         {"every 01:00:00 start=2026-05-02T00:00:00Z", "2026-05-02T01:00:00Z"},
		"a start that has just passed":         {"every 01:00:00 start=2026-05-01T11:00:00Z", "2026-05-01T12:00:00Z"},
		"a start long past starts nothing now": {"every 01:00:00 start=2020-01-01T00:00:00Z", "2026-05-01T12:30:00Z"},
		"an excluded moment moves":             {"every 01:00:00 calendar=noon", "2026-05-01T13:00:00Z"},
		"cron: the first since it was seen":    {"30 11 * * *", "2026-05-01T11:30:00Z"},
		"rate: one interval after it was seen": {"rate 3600s", "2026-05-01T12:30:00Z"},
		"nothing":                              {"manual", "0001-01-01T00:00:00Z"},
	} {
		line := compile(t, tt.text, schedule.Env{FirstSeen: utc(t, "2026-05-01T11:30:00Z"), Calendars: calendars})
		if got, ok := line.First(); !got.Equal(utc(t, tt.want)) || ok == got.IsZero() {
			t.Errorf("%s: %s: First() = %v, %v, want %s", name, tt.text, got, ok, tt.want)
		}
	}
}

func TestPrevAndCount(t *testing.T) {
	calendars := map[string]schedule.CalendarSpec{"nights": {From: "18:00", To: "08:00"}, "always": {Cron: "* * * * * *"}}
	env := schedule.Env{FirstSeen: utc(t, "2026-05-01T00:00:00Z"), Calendars: calendars}
	from := utc(t, "2026-05-01T00:00:00Z")
	for name, tt := range map[string]struct {
		text, before, prev string
		count              int // from firstSeen to before
	}{
		"cron":                     {"0 * * * *", "2026-05-01T12:00:00Z", "2026-05-01T11:00:00Z", 12},
		"cron, between":            {"0 * * * *", "2026-05-01T12:00:00.0000001Z", "2026-05-01T12:00:00Z", 13},
		"over an excluded night":   {"* * * * * * calendar=nights", "2026-05-02T08:00:00Z", "2026-05-01T17:59:59Z", 36000},
		"all excluded":             {"* * * * * calendar=always", "2026-05-02T08:00:00Z", "none", 0},
		"before the start":         {"0 * * * * start=2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z", "none", 0},
		"after the end":            {"0 * * * * end=2026-05-01T12:00:00Z", "2026-06-01T00:00:00Z", "2026-05-01T11:00:00Z", 12},
		"five years back":          {"0 0 29 2 *", "2026-05-02T08:00:00Z", "2024-02-29T00:00:00Z", 0},
		"more than five years":     {"0 0 1 1 1 ? 2020", "2026-05-02T08:00:00Z", "none", 0},
		"rate":                     {"rate 3600s", "2026-05-01T12:00:00Z", "2026-05-01T11:00:00Z", 11},
		"rate, nothing yet":        {"rate 3600s", "2026-05-01T01:00:00Z", "none", 0},
		"once":                     {"once 2026-05-01T12:00:00Z", "2026-05-01T12:00:01Z", "2026-05-01T12:00:00Z", 1},
		"once, nothing yet":        {"once 2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z", "none", 0},
		"once, at the end of time": {"once 2026-05-01T12:00:00Z", "9999-12-31T00:00:00Z", "2026-05-01T12:00:00Z", 1},
		"every":                    {"every 01:00:00", "2026-05-01T12:00:00Z", "none", 0},
		"manual":                   {"manual", "2026-05-01T12:00:00Z", "none", 0},
	} {
		line := compile(t, tt.text, env)
		before := utc(t, tt.before)
		got := "none"
		if prev, ok := line.Prev(before); ok {
			got = prev.Format(time.RFC3339Nano)
		}
		if got != tt.prev {
			t.Errorf("%s: %s: Prev(%s) = %s, want %s", name, tt.text, tt.before, got, tt.prev)
		}
		if n := line.Count(from, before); n != tt.count {
			t.Errorf("%s: %s: Count to %s = %d, want %d", name, tt.text, tt.before, n, tt.count)
		}
	}
}

func TestWarnings(t *testing.T) {
	now := utc(t, "2026-01-01T00:00:00Z")
	for _, tt := range []struct {
		text string
		want []schedule.WarningReason
	}{
		{"0 12 * * * tz=America/New_York", nil},
		{"30 2 * * * tz=America/New_York", []schedule.WarningReason{schedule.WarnGap}},
		{"30 1 * * * tz=America/New_York", []schedule.WarningReason{schedule.WarnRepeat}},
		{"*/15 * * * * tz=America/New_York", []schedule.WarningReason{schedule.WarnGap, schedule.WarnRepeat}},
		{"30 2 * * * tz=Asia/Shanghai", nil},
		{"30 2 1 1 * tz=America/New_York", nil},
		{"30 2 * * * tz=America/New_York end=2026-03-01T00:00:00Z", nil},
		{"30 2 * * * tz=America/New_York start=2026-04-01T00:00:00Z", nil},
		{"0 12 13 * FRI", []schedule.WarningReason{schedule.WarnEither}},
		{"0 12 13 * ?", nil},
		{"0 0 12 1 1 ? 2020", []schedule.WarningReason{schedule.WarnComplete}},
		{"once 2020-01-01T00:00:00Z", []schedule.WarningReason{schedule.WarnComplete}},
		{"rate 60s end=2020-01-01T00:00:00Z", []schedule.WarningReason{schedule.WarnComplete}},
		{"every 00:01:00 end=2020-01-01T00:00:00Z", []schedule.WarningReason{schedule.WarnComplete}},
		{"every 00:01:00", nil},
		{"manual", nil},
	} {
		line := compile(t, tt.text, schedule.Env{})
		var got []schedule.WarningReason
		for _, w := range line.Warnings(now) {
			got = append(got, w.Reason)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
	gap := compile(t, "30 2 * * * tz=America/New_York gap=next", schedule.Env{}).Warnings(now)
	want := []schedule.Warning{{
		Reason: schedule.WarnGap, At: utc(t, "2026-03-08T07:00:00Z"),
		Text: "2026-03-08 02:30:00 does not exist in America/New_York, the clock skips it: it fires at 03:00:00 instead",
	}}
	if diff := cmp.Diff(want, gap); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A timeline keeps less than the schedule it was compiled from, and gives it back whole.
func TestTimelineReturnsItsSchedule(t *testing.T) {
	for _, text := range []string{
		"0 3 * * *",
		"@daily",
		"cron 30 2 * * * tz=America/New_York gap=next ambiguous=both",
		"cron 30 2 * * * tz=UTC gap=skip ambiguous=auto",
		"cron 0 0 9 ? * FRI#2 2026-2030 start=2026-01-01T00:00:00.000001Z end=9998-12-31T23:59:59Z jitter=90s calendar=weekends",
		"cron H H * * * ambiguous=first",
		"rate 60s",
		"rate 60s start=2000-01-01T00:00:00Z tz=Asia/Shanghai calendar=weekends",
		"every 00:10:00 x5 end=2026-01-01T00:00:00Z",
		"once 2026-11-01T00:00:00Z jitter=5s",
		"manual",
	} {
		t.Run(text, func(t *testing.T) {
			want, err := schedule.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			line, err := want.Compile(schedule.Env{
				Key: "a/b", FirstSeen: utc(t, "2026-01-01T00:00:00Z"),
				Calendars: map[string]schedule.CalendarSpec{"weekends": {Weekdays: []string{}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := line.Schedule(); got != want {
				t.Errorf("got %#v, want %#v", got, want)
			}
		})
	}
}

// Expressions of the same days share their table, and it is forgotten with the last of them.
func TestDayTablesAreSharedAndForgotten(t *testing.T) {
	compile := func(text string) *schedule.Timeline {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		line, err := s.Compile(schedule.Env{})
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	a, b := compile("0 3 7,11,23,29 * *"), compile("5 4 7,11,23,29 * *")
	if !schedule.ShareDays(a, b) {
		t.Error("there are two tables of the same days")
	}
	known := schedule.DaysKnown(a)
	runtime.GC()
	if !known() {
		t.Error("the table is forgotten while it is used")
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	deadline := time.Now().Add(10 * time.Second)
	for known() {
		if time.Now().After(deadline) {
			t.Fatal("the table is still known")
		}
		runtime.GC()
		runtime.Gosched()
	}
}
