package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// English describes the schedule in plain English, such as "every weekday at 09:00
// Asia/Shanghai". An invalid cron expression is given back as it is.
func (s Schedule) English() string { return s.english("") }

// English describes the schedule in plain English, with the values that H stands for.
func (t *Timeline) English() string { return t.Schedule().english(t.key) }

func (s Schedule) english(key string) string {
	zone := s.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	var text string
	switch s.Kind {
	case KindManual:
		return "only when triggered by hand"
	case KindCron:
		c, err := parseCron(s.Cron)
		if err != nil {
			return "cron " + s.Cron
		}
		text = c.english(key) + " " + zone
	case KindRate:
		text = "every " + spell(s.Interval) + " at a fixed rate"
	case KindEvery:
		text = spell(s.Interval) + " after the end of the previous run"
		if s.Count > 0 {
			text += ", " + plural(s.Count, "run") + " at most"
		}
	case KindOnce:
		text = "once at " + spellTime(s.At)
	default:
		return s.Kind.String()
	}
	if !s.Start.IsZero() {
		text += ", from " + spellTime(s.Start)
	}
	if !s.End.IsZero() {
		text += ", until before " + spellTime(s.End)
	}
	if s.Calendar != "" {
		text += ", except in calendar " + s.Calendar
	}
	if s.Jitter > 0 {
		text += ", sent up to " + spell(s.Jitter) + " later"
	}
	return text
}

func (c *cronText) english(key string) string {
	resolved := *c
	for i := range resolved.fields {
		if f := &resolved.fields[i]; f.form == formHash && key != "" {
			v := hashedValue(fieldKind(i), key)
			*f = cronField{items: []cronItem{{lo: v, hi: v}}}
		}
	}
	days, text := resolved.daysEnglish(), ""
	if times := resolved.fixedTimes(); times != nil {
		if days == "" {
			days = "every day"
		}
		text = days + " at " + join(times)
	} else {
		text = resolved.clockEnglish()
		if days != "" {
			text += ", " + days
		}
	}
	if month := &resolved.fields[fieldMonth]; month.restricted() {
		text += " in " + month.english(fieldMonth)
	}
	if resolved.years.yearSet() != nil {
		text += " in " + resolved.years.english(fieldYear)
	}
	return text
}

// clockEnglish describes times of day that are not listed one by one, the finest first.
func (c *cronText) clockEnglish() string {
	second, minute, hour := &c.fields[fieldSecond], &c.fields[fieldMinute], &c.fields[fieldHour]
	s, oneSecond := second.single()
	m, oneMinute := minute.single()
	h, oneHour := hour.single()
	hours := ""
	switch {
	case oneHour:
		hours = fmt.Sprintf("from %02d:00 to %02d:59", h, h)
	case hour.restricted():
		hours = hour.each(fieldHour)
	}
	if oneSecond && oneMinute {
		if hours == "" {
			hours = "every hour"
		}
		switch {
		case s != 0:
			return fmt.Sprintf("%s at minute %d, second %d", hours, m, s)
		case m != 0:
			return fmt.Sprintf("%s at minute %d", hours, m)
		}
		return hours
	}
	var parts []string
	if !oneSecond {
		parts = append(parts, second.each(fieldSecond))
	}
	switch {
	case oneMinute:
		parts = append(parts, fmt.Sprintf("at minute %d", m))
	case oneSecond || minute.restricted():
		parts = append(parts, minute.each(fieldMinute))
	}
	if oneSecond && s != 0 {
		parts = append(parts, fmt.Sprintf("at second %d", s))
	}
	if hours != "" {
		parts = append(parts, hours)
	}
	return strings.Join(parts, ", ")
}

// fixedTimes lists the times of day if they are few and named one by one.
func (c *cronText) fixedTimes() []string {
	const most = 6
	var lists [3][]int
	n := 1
	for i := fieldSecond; i <= fieldHour; i++ {
		f := &c.fields[i]
		if f.form != formList || f.followsClock() {
			return nil
		}
		for _, it := range f.items {
			lists[i] = append(lists[i], it.lo)
		}
		n *= len(lists[i])
	}
	if n > most {
		return nil
	}
	var times []string
	for _, h := range lists[fieldHour] {
		for _, m := range lists[fieldMinute] {
			for _, s := range lists[fieldSecond] {
				text := fmt.Sprintf("%02d:%02d", h, m)
				if s != 0 || len(lists[fieldSecond]) > 1 {
					text += fmt.Sprintf(":%02d", s)
				}
				times = append(times, text)
			}
		}
	}
	return times
}

// daysEnglish describes the days, empty for every day.
func (c *cronText) daysEnglish() string {
	dom, dow := &c.fields[fieldDOM], &c.fields[fieldDOW]
	switch {
	case dom.restricted() && dow.restricted():
		return dom.datesEnglish() + " or " + dow.weekdaysEnglish()
	case dom.restricted():
		return dom.datesEnglish()
	case dow.restricted():
		return dow.weekdaysEnglish()
	}
	return ""
}

func (f *cronField) datesEnglish() string {
	switch f.form {
	case formLast:
		if f.n == 0 {
			return "on the last day of the month"
		}
		return plural(f.n, "day") + " before the last day of the month"
	case formLastWork:
		return "on the last weekday of the month"
	case formWeekday:
		return fmt.Sprintf("on the weekday nearest to day %d of the month", f.n)
	default:
		return "on day " + f.english(fieldDOM) + " of the month"
	}
}

var ordinals = [...]string{"", "first", "second", "third", "fourth", "fifth"}

func (f *cronField) weekdaysEnglish() string {
	switch f.form {
	case formLastDOW:
		return "on the last " + time.Weekday(f.n).String() + " of the month"
	case formNthDOW:
		return "on the " + ordinals[f.k] + " " + time.Weekday(f.n).String() + " of the month"
	case formHash:
		return "on one hashed weekday"
	default:
	}
	var days [7]bool
	for _, it := range f.items {
		for v := it.lo; v <= it.hi; v += max(it.step, 1) {
			days[v%7] = true
		}
	}
	switch days {
	case [7]bool{false, true, true, true, true, true, false}:
		return "every weekday"
	case [7]bool{true, false, false, false, false, false, true}:
		return "every Saturday and Sunday"
	case [7]bool{true, true, true, true, true, true, true}:
		return "every day of the week"
	}
	var names []string
	for i := range days {
		if day := (i + 1) % 7; days[day] { // a week begins on Monday
			names = append(names, time.Weekday(day).String())
		}
	}
	return "every " + join(names)
}

// single returns the only value of a field that names one.
func (f *cronField) single() (int, bool) {
	if f.form == formList && len(f.items) == 1 && f.items[0].lo == f.items[0].hi {
		return f.items[0].lo, true
	}
	return 0, false
}

// each describes a second, minute or hour field that is not a single value.
func (f *cronField) each(kind fieldKind) string {
	unit := fieldSpecs[kind].name
	switch f.form {
	case formAny:
		return "every " + unit
	case formHash:
		return "at a " + unit + " hashed from the name"
	default:
	}
	if len(f.items) == 1 && f.items[0].star {
		step := f.items[0].step
		switch {
		case step == 1:
			return "every " + unit
		case (fieldSpecs[kind].max+1)%step == 0:
			return "every " + plural(step, unit)
		}
		whole := map[fieldKind]string{fieldSecond: "minute", fieldMinute: "hour", fieldHour: "day"}[kind]
		return "every " + plural(step, unit) + " from the start of each " + whole
	}
	return "at " + unit + "s " + f.english(kind)
}

// english lists the values of a field.
func (f *cronField) english(kind fieldKind) string {
	if f.form == formHash {
		return "(hashed from the name)"
	}
	name := func(v int) string {
		if kind == fieldMonth {
			return time.Month(v).String()
		}
		return strconv.Itoa(v)
	}
	var parts []string
	for _, it := range f.items {
		text := name(it.lo)
		if it.hi > it.lo {
			text += " to " + name(it.hi)
			if it.step > 1 {
				text += " in steps of " + strconv.Itoa(it.step)
			}
		}
		parts = append(parts, text)
	}
	return join(parts)
}

// join writes a list as in "a, b and c".
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// spell writes a duration as in "1 hour 30 minutes".
func spell(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", day}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if n := d / unit.size; n > 0 {
			parts = append(parts, plural(int(n), unit.name))
			d %= unit.size
		}
	}
	if d > 0 {
		seconds := strings.TrimSuffix(formatSeconds(d), "s")
		noun := " seconds"
		if seconds == "1" {
			noun = " second"
		}
		parts = append(parts, seconds+noun)
	}
	return strings.Join(parts, " ")
}

func spellTime(t time.Time) string {
	return strings.Replace(strings.TrimSuffix(formatTime(t), "Z"), "T", " ", 1) + " UTC"
}
