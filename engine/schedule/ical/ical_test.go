package ical_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/schedule"
	"github.com/leasecron/leasecron/engine/schedule/ical"
)

// file makes a calendar of events, each given by its lines.
func file(events ...string) string {
	var b strings.Builder
	b.WriteString("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n")
	for _, e := range events {
		b.WriteString("BEGIN:VEVENT\r\n" + strings.ReplaceAll(strings.TrimSpace(e), "\n", "\r\n") + "\r\nEND:VEVENT\r\n")
	}
	b.WriteString("END:VCALENDAR\r\n")
	return b.String()
}

func wall(text string) int64 {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t.Unix()
}

// spans prints what lies in a range, in order.
func spans(c *ical.Calendar, from, to string) []string {
	found := c.Spans(wall(from), wall(to))
	slices.SortFunc(found, func(a, b ical.Span) int { return cmp.Compare(a.Start, b.Start) })
	var texts []string
	for _, s := range found {
		text := time.Unix(s.Start, 0).UTC().Format("2006-01-02 15:04")
		if s.AllDay {
			text += fmt.Sprintf(" %d days", (s.End-s.Start)/86400)
		} else {
			text += " " + s.Duration.String()
		}
		if s.Zone != "" {
			text += " " + s.Zone
		}
		texts = append(texts, text)
	}
	return texts
}

func TestSpans(t *testing.T) {
	tests := map[string]struct {
		events   []string
		from, to string
		want     []string
	}{
		"an all-day event lasts a day": {
			[]string{"UID:1\nDTSTART;VALUE=DATE:20261225"},
			"2026-01-01 00:00", "2027-01-01 00:00",
			[]string{"2026-12-25 00:00 1 days"},
		},
		"its end is the day after the last": {
			[]string{"UID:1\nDTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227"},
			"2026-01-01 00:00", "2027-01-01 00:00",
			[]string{"2026-12-25 00:00 2 days"},
		},
		"an event that has begun is found": {
			[]string{"UID:1\nDTSTART;VALUE=DATE:20261220\nDURATION:P1W"},
			"2026-12-26 12:00", "2026-12-26 13:00",
			[]string{"2026-12-20 00:00 7 days"},
		},
		"a time in a zone": {
			[]string{"UID:1\nDTSTART;TZID=Europe/Paris:20260601T090000\nDTEND;TZID=Europe/London:20260601T093000"},
			"2026-06-01 00:00", "2026-06-02 00:00",
			[]string{"2026-06-01 09:00 1h30m0s Europe/Paris"},
		},
		"a length over a clock change is elapsed time": {
			[]string{"UID:1\nDTSTART;TZID=Europe/Paris:20260329T010000\nDTEND;TZID=Europe/Paris:20260329T040000"},
			"2026-03-29 00:00", "2026-03-30 00:00",
			[]string{"2026-03-29 01:00 2h0m0s Europe/Paris"},
		},
		"a folded line is one line": {
			[]string{"UID:1\nDTSTART;TZID=Europe/Pa\n ris:20260601T090000\nDURATION:PT90M"},
			"2026-06-01 00:00", "2026-06-02 00:00",
			[]string{"2026-06-01 09:00 1h30m0s Europe/Paris"},
		},
		"a rule keeps the wall time over clock changes": {
			[]string{"UID:1\nDTSTART;TZID=Europe/Paris:20260327T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY"},
			"2026-03-28 00:00", "2026-03-30 12:00",
			[]string{"2026-03-28 09:00 1h0m0s Europe/Paris", "2026-03-29 09:00 1h0m0s Europe/Paris", "2026-03-30 09:00 1h0m0s Europe/Paris"},
		},
		"UNTIL is an instant": {
			[]string{"UID:1\nDTSTART;TZID=Asia/Tokyo:20260327T080000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260327T230000Z"},
			"2026-03-01 00:00", "2026-04-01 00:00",
			[]string{"2026-03-27 08:00 1h0m0s Asia/Tokyo", "2026-03-28 08:00 1h0m0s Asia/Tokyo"},
		},
		"a rule of old is found far ahead": {
			[]string{"UID:1\nDTSTART;VALUE=DATE:16010101\nRRULE:FREQ=YEARLY"},
			"2399-06-01 00:00", "2401-06-01 00:00",
			[]string{"2400-01-01 00:00 1 days", "2401-01-01 00:00 1 days"},
		},
		"every other week keeps its week": {
			[]string{"UID:1\nDTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR"},
			"2026-02-01 00:00", "2026-03-01 00:00",
			[]string{"2026-02-02 00:00 1 days", "2026-02-06 00:00 1 days", "2026-02-16 00:00 1 days", "2026-02-20 00:00 1 days"},
		},
		"the last Monday of May": {
			[]string{"UID:1\nDTSTART;VALUE=DATE:20200525\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO"},
			"2026-01-01 00:00", "2028-01-01 00:00",
			[]string{"2026-05-25 00:00 1 days", "2027-05-31 00:00 1 days"},
		},
		"a day excepted by its date": {
			[]string{"UID:1\nDTSTART:20260601T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE;VALUE=DATE:20260602"},
			"2026-06-01 00:00", "2026-07-01 00:00",
			[]string{"2026-06-01 09:00 1h0m0s", "2026-06-03 09:00 1h0m0s"},
		},
		"a moved instance, given in another zone": {
			[]string{
				"UID:1\nDTSTART;TZID=Europe/Paris:20260601T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=2",
				"UID:1\nRECURRENCE-ID:20260602T070000Z\nDTSTART;TZID=Europe/Paris:20260602T110000\nDURATION:PT1H",
			},
			"2026-06-01 00:00", "2026-07-01 00:00",
			[]string{"2026-06-01 09:00 1h0m0s Europe/Paris", "2026-06-02 11:00 1h0m0s Europe/Paris"},
		},
		"no events": {nil, "2026-06-01 00:00", "2026-07-01 00:00", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := ical.Parse(file(tt.events...), schedule.LoadZone)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tt.want, spans(c, tt.from, tt.to)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	many := make([]string, ical.MaxEvents+1)
	recurring := make([]string, ical.MaxRecurring+1)
	for i := range many {
		many[i] = fmt.Sprintf("UID:%d\nDTSTART;VALUE=DATE:20260101", i)
	}
	for i := range recurring {
		recurring[i] = many[i] + "\nRRULE:FREQ=YEARLY"
	}
	const start = "UID:1\nDTSTART;VALUE=DATE:20260101\n"
	for name, tt := range map[string]struct{ text, want string }{
		"too long":                {strings.Repeat("x", ical.MaxBytes+1), "the limit is"},
		"empty":                   {"", "BEGIN:VCALENDAR is missing"},
		"not a calendar":          {"<html>", "iCalendar file"},
		"too many events":         {file(many...), "has 10001 events"},
		"too many recurrences":    {file(recurring...), "more than 1000 recurring events"},
		"a period":                {file(start + "RDATE;VALUE=PERIOD:20260101T000000Z/PT1H"), "periods are not supported"},
		"a date that is none":     {file("UID:1\nDTSTART;VALUE=DATE:20260230"), "DTSTART"},
		"a time that is none":     {file("UID:1\nDTSTART:20260101T250000"), "DTSTART"},
		"a year far back":         {file("UID:1\nDTSTART;VALUE=DATE:00010101"), "the year 1 is out of range"},
		"a date and a time":       {file(start + "DTEND:20260102T000000"), "must both be dates or both be times"},
		"a length of years":       {file(start + "DTEND;VALUE=DATE:20360101"), "its length"},
		"a duration that is none": {file(start + "DURATION:P"), "is not a duration"},
		"two rules":               {file(start + "RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY"), "more than one RRULE"},
		"an excepting rule":       {file(start + "EXRULE:FREQ=DAILY"), "EXRULE is not supported"},
		"this and the future":     {file(start + "RECURRENCE-ID;RANGE=THISANDFUTURE:20260101T000000Z"), "RANGE is not supported"},
		"Easter":                  {file(start + "RRULE:FREQ=YEARLY;BYEASTER=0"), "BYEASTER"},
		"hours of a day":          {file(start + "RRULE:FREQ=DAILY;BYHOUR=9,10"), "BYHOUR"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ical.Parse(tt.text, schedule.LoadZone); err == nil || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("Parse() = %v, want one line with %q", err, tt.want)
			}
		})
	}
}

// Neither a file nor a range makes it panic or takes long.
func FuzzParse(f *testing.F) {
	f.Add(file("UID:1\nDTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY"))
	f.Add(file("UID:1\nDTSTART;TZID=Europe/Paris:20260601T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;COUNT=9\nEXDATE:20260602T070000Z"))
	f.Add(file("UID:1\nDTSTART:20260601T090000Z\nDTEND:20260601T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1SU;BYSETPOS=1\nRDATE:20260101T000000Z"))
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		c, err := ical.Parse(text, schedule.LoadZone)
		if err != nil {
			return
		}
		from := wall("2026-01-01 00:00")
		for _, s := range c.Spans(from, from+366*86400) {
			if s.End < s.Start || s.Duration < 0 {
				t.Fatalf("span %+v", s)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("it took %v", took)
		}
	})
}
