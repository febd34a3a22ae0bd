package schedule_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasecron/leasecron/engine/schedule"
)

func TestParse(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]schedule.Schedule{
		"manual":                         {},
		"0 3 * * *":                      {Kind: schedule.KindCron, Cron: "0 3 * * *"},
		"  cron\t0  3 * * *  ":           {Kind: schedule.KindCron, Cron: "0 3 * * *"},
		"@daily tz=Europe/Paris":         {Kind: schedule.KindCron, Cron: "@daily", TimeZone: "Europe/Paris"},
		"rate 60s":                       {Kind: schedule.KindRate, Interval: time.Minute},
		"rate 1h30m":                     {Kind: schedule.KindRate, Interval: 90 * time.Minute},
		"rate 1.5s":                      {Kind: schedule.KindRate, Interval: 1500 * time.Millisecond},
		"every 00:10:00":                 {Kind: schedule.KindEvery, Interval: 10 * time.Minute},
		"every 00:10:00 x5":              {Kind: schedule.KindEvery, Interval: 10 * time.Minute, Count: 5},
		"every 30.00:00:00":              {Kind: schedule.KindEvery, Interval: 30 * 24 * time.Hour},
		"every 00:00:01.000001":          {Kind: schedule.KindEvery, Interval: time.Second + time.Microsecond},
		"once 2026-01-01T00:00:00Z":      {Kind: schedule.KindOnce, At: start},
		"once 2026-01-01T08:00:00+08:00": {Kind: schedule.KindOnce, At: start},
		"rate 60s start=2026-01-01T00:00:00Z end=2026-01-01T00:00:00.000001Z calendar=cn-holidays jitter=30s": {
			Kind: schedule.KindRate, Interval: time.Minute, Start: start, End: start.Add(time.Microsecond),
			Calendar: "cn-holidays", Jitter: 30 * time.Second,
		},
		"0 3 * * * gap=next ambiguous=both": {Kind: schedule.KindCron, Cron: "0 3 * * *", Gap: "next", Ambiguous: "both"},
	} {
		got, err := schedule.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q) = %v", text, err)
			continue
		}
		if got != want {
			t.Errorf("Parse(%q) (-want +got):\n%s", text, cmp.Diff(want, got))
		}
		if again, err := schedule.Parse(got.String()); err != nil || again != got {
			t.Errorf("Parse(%q) = %v, %v, want %v", got.String(), again, err, got)
		}
	}
}

// The examples of the documentation print as they were written.
func TestTextFormIsKept(t *testing.T) {
	for _, text := range []string{
		"manual",
		"every 00:10:00 x5",
		"rate 60s",
		"cron 0 0 9 * * MON-FRI tz=Asia/Shanghai",
		"once 2026-11-01T00:00:00Z",
		"cron 0 0 6 * * MON-FRI tz=Asia/Shanghai calendar=closed",
	} {
		s, err := schedule.Parse(text)
		if err != nil || s.String() != text {
			t.Errorf("Parse(%q).String() = %q, %v", text, s.String(), err)
		}
	}
}

// Every error is one line that names the place and what was expected.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "schedule is empty, want manual, cron, rate, every or once",
		"manual 5":                              "manual takes nothing, but 5 follows",
		"manual tz=UTC":                         "manual takes no options, but tz=UTC follows",
		"cron":                                  "cron expression is empty, want 5, 6 or 7 fields",
		"0 0 * * 8":                             "dow field: 8 is out of range 0-7",
		"0 0 * * L":                             "dow field: L needs a weekday before it, as in FRIL",
		"*/0 * * * *":                           "minute field: step 0 is out of range 1-60", // R065
		"*/61 * * * *":                          "minute field: step 61 is out of range 1-60",
		"0 9 * *":                               "cron expression has 4 fields, want 5 (minute hour dom month dow), 6 (second first) or 7 (year last)", // R065, R067
		"1-70 * * * *":                          "minute field: 70 is out of range 0-59",                                                               // R065
		strings.Repeat("1", 10_000):             "schedule has 10000 characters, the limit is 1024",                                                    // R065
		strings.Repeat("1,", 150) + "1 * * * *": "cron expression has 309 characters, the limit is 256",
		"0 2 1 0 *":                             "month field: 0 is out of range 1-12", // R066
		"0 24 * * *":                            "hour field: 24 is out of range 0-23", // R066
		"0 0 0 * *":                             "dom field: 0 is out of range 1-31",   // R066
		"0 0 * * FRI-SUN":                       "dow field: range FRI-SUN is reversed, write FRI-7",
		"0 0 * * SAT-MON":                       "dow field: range SAT-MON is reversed, write SAT-7,1-MON",
		"0 22-6 * * *":                          "hour field: range 22-6 is reversed, write 22-23,0-6",
		"0 0 ? NOV-FEB *":                       "month field: range NOV-FEB is reversed, write NOV-12,1-FEB",
		"0 0 0 1 1 ? 2030-2028":                 "year field: range 2030-2028 is reversed",
		"0 0 L,15 * *":                          "dom field: L,15 is malformed, want L, L-n, nW or LW alone in the field",
		"0 0 ? * FRIL,MON":                      "dow field: FRIL,MON is malformed, want nL or n#k alone in the field",
		"0 0 ? * MON,FRI#2":                     "dow field: MON,FRI#2 is malformed, want one weekday before #, as in FRI#2",
		"0 0 ? * FRI#6":                         "dow field: # 6 is out of range 1-5",
		"H/15 * * * *":                          "minute field: H/15 is malformed, H stands alone in its field",
		"H,30 * * * *":                          "minute field: H,30 is malformed, H stands alone in its field",
		"0 0 ?,1 * *":                           "dom field: ?,1 is malformed, ? stands alone in its field",
		"0 0 0 1 1 ? H":                         "year field: H has no meaning here, write a year or *",
		"0 noon * * *":                          "hour field: noon is not a number",
		"0 0 * * TUESDAY":                       "dow field: TUESDAY is neither a number nor a name such as SUN",
		"TZ=Europe/Paris 0 8 * * *":             "TZ=Europe/Paris is not part of a cron expression: write timeZone: Europe/Paris beside it, or tz=Europe/Paris after it",      // R052
		"CRON_TZ=Europe/Paris 0 8 * * * tz=UTC": "CRON_TZ=Europe/Paris is not part of a cron expression: write timeZone: Europe/Paris beside it, or tz=Europe/Paris after it", // R052
		"@every 10m":                            `@every is not a cron expression: write "every 10m" (from the end of one run to the next) or "rate 10m" (on a fixed grid)`,
		"@reboot":                               "@reboot is unknown, want @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually",
		"@daily 5":                              "@daily must stand alone, it replaces the whole expression",
		"rate":                                  "rate takes one interval, as in rate 60s, but has 0 words",
		"rate 10":                               "interval 10 is malformed, want 90s, 1h30m or 00:10:00",
		"rate 500ms":                            "interval 500ms is out of range 1s to 30 days",
		"rate 1000h":                            "interval 1000h0m0s is out of range 1s to 30 days",
		"rate -5s":                              "interval -5s is malformed, want 90s, 1h30m or 00:10:00",
		"every 00:10":                           "interval 00:10 is malformed, want 90s, 1h30m or 00:10:00",
		"every 00:60:00":                        "interval 00:60:00 is malformed, want 90s, 1h30m or 00:10:00",
		"every 10m 5":                           "count 5 is malformed, want x and a number, as in x5",
		"every 10m x0":                          "count x0 is out of range x1 to x1000000000",
		"every 10m x99999999999999999999":       "count x99999999999999999999 is out of range x1 to x1000000000",
		"once":                                  "once takes one time, as in once 2026-11-01T00:00:00Z, but has 0 words",
		"once 2026-11-01":                       "once 2026-11-01 is not a time like 2026-11-01T00:00:00Z",
		"once 2026-11-01T00:00:00":              "once 2026-11-01T00:00:00 is not a time like 2026-11-01T00:00:00Z",
		"once 1999-12-31T23:59:59Z":             "once 1999-12-31T23:59:59Z: the year is out of range 2000-9998",
		"once 2026-11-01T00:00:00.0000001Z":     "once 2026-11-01T00:00:00.0000001Z is finer than a microsecond",
		"rate 60s tz=":                          "tz= has no value",
		"rate 60s tz=UTC tz=UTC":                "tz= is given twice",
		"rate 60s zone=UTC":                     "unknown option zone=, want tz, start, end, calendar, ambiguous, gap or jitter",
		"rate 60s tz=UTC x5":                    "x5 stands after the options, which come last",
		"0 8 * * * TZ=UTC":                      "TZ= is not part of a schedule, write tz=UTC",
		"rate 60s calendar=Closed":              "calendar name Closed does not match ^[a-z0-9][a-z0-9._-]{0,127}$",
		"rate 60s ambiguous=last":               "ambiguous=last is unknown, want auto, first or both",
		"rate 60s gap=fill":                     "gap=fill is unknown, want skip or next",
		"rate 60s jitter=48h":                   "jitter 48h0m0s is out of range 1µs to 1 day",
		"rate 60s start=2026-01-02T00:00:00Z end=2026-01-02T00:00:00Z": "end 2026-01-02T00:00:00Z is not after start 2026-01-02T00:00:00Z",
	} {
		s, err := schedule.Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want %q", text, s, want)
			continue
		}
		if err.Error() != want {
			t.Errorf("Parse(%.60q) = %q, want %q", text, err, want)
		}
	}
}

// R065: what a person can type is refused at once, however long it is.
func TestParseIsQuick(t *testing.T) {
	for _, text := range []string{
		"*/0 * * * *", "0 9 * *", "", "1-70 * * * *", strings.Repeat("1", 10_000), strings.Repeat("* ", 500),
		strings.Repeat("1,", 100) + "x * * * *", "rate 60s " + strings.Repeat("a=b ", 200),
	} {
		best := time.Hour // of some tries: the machine may be busy
		for range 5 {
			start := time.Now()
			if s, err := schedule.Parse(text); err == nil {
				t.Fatalf("Parse(%.60q) = %v, want an error", text, s)
			}
			best = min(best, time.Since(start))
		}
		if best > 10*time.Millisecond {
			t.Errorf("Parse(%.60q) took %v, want less than 10ms", text, best)
		}
	}
}

// generated draws schedules of every kind, with every option.
func generated() *rapid.Generator[schedule.Schedule] {
	return rapid.Custom(func(t *rapid.T) schedule.Schedule {
		s := schedule.Schedule{Kind: schedule.Kind(rapid.IntRange(0, 4).Draw(t, "kind"))}
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return time.UnixMicro(rapid.Int64Range(946684800e6, 253370764799e6).Draw(t, "micros")).UTC()
		})
		interval := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(1e6, 30*86400e6).Draw(t, "micros")) * time.Microsecond
		})
		switch s.Kind {
		case schedule.KindManual:
			return s
		case schedule.KindCron:
			s.Cron = generatedCron().Draw(t, "cron")
		case schedule.KindRate:
			s.Interval = interval.Draw(t, "interval")
		case schedule.KindEvery:
			s.Interval = interval.Draw(t, "interval")
			s.Count = rapid.IntRange(0, schedule.MaxCount).Draw(t, "count")
		case schedule.KindOnce:
			s.At = moment.Draw(t, "at")
		}
		if rapid.Bool().Draw(t, "has start") {
			s.Start = moment.Draw(t, "start")
		}
		if rapid.Bool().Draw(t, "has end") {
			s.End = moment.Filter(func(end time.Time) bool { return s.Start.IsZero() || end.After(s.Start) }).Draw(t, "end")
		}
		s.TimeZone = rapid.SampledFrom(append([]string{"", "UTC"}, changeZones...)).Draw(t, "zone")
		s.Calendar = rapid.SampledFrom([]string{"", "closed", "a", "0.x_y-z"}).Draw(t, "calendar")
		s.Ambiguous = rapid.SampledFrom([]string{"", "auto", "first", "both"}).Draw(t, "ambiguous")
		s.Gap = rapid.SampledFrom([]string{"", "skip", "next"}).Draw(t, "gap")
		s.Jitter = time.Duration(rapid.Int64Range(0, 86400e6).Draw(t, "jitter")) * time.Microsecond
		return s
	})
}

// generatedCron draws valid expressions of 5, 6 and 7 fields.
func generatedCron() *rapid.Generator[string] {
	field := func(lo, hi int, special ...string) *rapid.Generator[string] {
		item := rapid.Custom(func(t *rapid.T) string {
			a, b := rapid.IntRange(lo, hi).Draw(t, "a"), rapid.IntRange(lo, hi).Draw(t, "b")
			step := rapid.IntRange(1, hi-lo+1).Draw(t, "step")
			switch rapid.IntRange(0, 4).Draw(t, "form") {
			case 0:
				return fmt.Sprint(a)
			case 1:
				return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
			case 2:
				return fmt.Sprintf("%d/%d", a, step)
			case 3:
				return fmt.Sprintf("*/%d", step)
			default:
				return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), step)
			}
		})
		list := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(item, 1, 3).Draw(t, "items"), ",")
		})
		return rapid.OneOf(list, rapid.SampledFrom(append([]string{"*", "*"}, special...)))
	}
	return rapid.Custom(func(t *rapid.T) string {
		fields := []string{
			field(0, 59).Draw(t, "minute"),
			field(0, 23).Draw(t, "hour"),
			field(1, 31, "?", "L", "L-3", "L-30", "LW", "1W", "15W", "31W").Draw(t, "dom"),
			field(1, 12, "JAN", "feb-Apr", "OCT,DEC").Draw(t, "month"),
			field(0, 7, "?", "MON-FRI", "SUN", "7L", "FRIL", "3#2", "SAT#5").Draw(t, "dow"),
		}
		extra := rapid.IntRange(0, 2).Draw(t, "extra fields")
		if extra > 0 {
			fields = append([]string{field(0, 59).Draw(t, "second")}, fields...)
		}
		if extra > 1 {
			fields = append(fields, field(1970, 2099).Draw(t, "year"))
		}
		return strings.Join(fields, " ")
	})
}

func TestTextFormReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := generated().Draw(t, "schedule")
		text := s.String()
		again, err := schedule.Parse(text)
		if err != nil || again != s {
			t.Fatalf("Parse(%q) = %+v, %v, want %+v", text, again, err, s)
		}
		if again.String() != text {
			t.Fatalf("%q prints as %q", text, again.String())
		}
		data, err := json.Marshal(struct{ S schedule.Schedule }{s})
		if err != nil {
			t.Fatal(err)
		}
		var back struct{ S schedule.Schedule }
		if err := json.Unmarshal(data, &back); err != nil || back.S != s {
			t.Fatalf("%s decodes to %+v, %v", data, back.S, err)
		}
	})
}
