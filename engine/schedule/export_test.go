package schedule

import "slices"

// The zone table is compared with the standard library's answers.

// ZoneNames lists the zones of the snapshot.
func ZoneNames() []string {
	files, err := zoneFiles()
	if err != nil {
		panic(err)
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ZoneOffset looks an offset up, and says until when it lasts.
func ZoneOffset(name string, utc int64) (offset, until int64, err error) {
	z, err := loadZone(name)
	if err != nil {
		return 0, 0, err
	}
	s := z.at(utc)
	if utc < s.start || utc >= s.end {
		panic("the span does not hold the instant")
	}
	return s.offset, s.end, nil
}

// ShareDays reports whether two cron schedules share their table of days.
func ShareDays(a, b *Timeline) bool { return a.cron.table.days == b.cron.table.days }

// DaysKnown returns a function that reports whether the table of days of a cron schedule is
// still known. It does not keep the table alive.
func DaysKnown(t *Timeline) func() bool {
	days := *t.cron.table.days
	return func() bool {
		dayTables.Lock()
		defer dayTables.Unlock()
		_, ok := dayTables.known[days]
		return ok
	}
}
