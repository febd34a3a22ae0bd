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
