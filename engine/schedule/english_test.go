package schedule_test

import (
	"testing"

	"github.com/leasecron/leasecron/engine/schedule"
)

func TestEnglish(t *testing.T) {
	for text, want := range map[string]string{
		"manual": "only when triggered by hand",
		"cron 0 0 9 * * MON-FRI tz=Asia/Shanghai": "every weekday at 09:00 Asia/Shanghai",
		"0 3 * * *":                            "every day at 03:00 UTC",
		"* * * * *":                            "every minute UTC",
		"* * * * * *":                          "every second UTC",
		"*/15 * * * *":                         "every 15 minutes UTC",
		"*/15 9-17 * * MON,WED":                "every 15 minutes, at hours 9 to 17, every Monday and Wednesday UTC",
		"*/7 * * * *":                          "every 7 minutes from the start of each hour UTC",
		"5 * * * *":                            "every hour at minute 5 UTC",
		"4-28/7 5 * * *":                       "at minutes 4 to 28 in steps of 7, from 05:00 to 05:59 UTC",
		"30 5 */8 * * *":                       "every 8 hours at minute 5, second 30 UTC",
		"*/10 5 * * * *":                       "every 10 seconds, at minute 5 UTC",
		"H 4 * * *":                            "at a minute hashed from the name, from 04:00 to 04:59 UTC",
		"@hourly":                              "every hour UTC",
		"0 */6 * * *":                          "every 6 hours UTC",
		"0 6,18 1 1,7 *":                       "on day 1 of the month at 06:00 and 18:00 in January and July UTC",
		"0 0 22 L * ?":                         "on the last day of the month at 22:00 UTC",
		"0 0 22 L-3 * ?":                       "3 days before the last day of the month at 22:00 UTC",
		"0 0 22 LW * ?":                        "on the last weekday of the month at 22:00 UTC",
		"0 0 22 15W * ?":                       "on the weekday nearest to day 15 of the month at 22:00 UTC",
		"0 0 9 ? * FRI#2":                      "on the second Friday of the month at 09:00 UTC",
		"0 0 9 ? * FRIL":                       "on the last Friday of the month at 09:00 UTC",
		"0 9 13 * FRI":                         "on day 13 of the month or every Friday at 09:00 UTC",
		"0 0 9 1 1 ? 2027,2029":                "on day 1 of the month at 09:00 in January in 2027 and 2029 UTC",
		"* 3 * * *":                            "every minute, from 03:00 to 03:59 UTC",
		"rate 90s":                             "every 1 minute 30 seconds at a fixed rate",
		"every 00:10:00 x5":                    "10 minutes after the end of the previous run, 5 runs at most",
		"once 2026-11-01T00:00:00Z":            "once at 2026-11-01 00:00:00 UTC",
		"0 3 * * * calendar=closed jitter=30s": "every day at 03:00 UTC, except in calendar closed, sent up to 30 seconds later",
		"rate 3600s start=2026-01-01T00:00:00Z tz=Europe/Paris": "every 1 hour at a fixed rate, from 2026-01-01 00:00:00 UTC",
	} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q) = %v", text, err)
			continue
		}
		if got := s.English(); got != want {
			t.Errorf("Parse(%q).English() = %q, want %q", text, got, want)
		}
	}
}
