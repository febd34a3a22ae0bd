package schedule

import "hash/fnv"

const (
	saturday = 6
	sunday   = 0
)

// daysOf returns the days, as bits, that match the dom and dow fields in a month of the
// given length whose first day is the given weekday. If both fields are restricted, either
// is enough.
func (c *cronText) daysOf(masks [6]uint64, length, firstDay int) uint32 {
	dom, dow := &c.fields[fieldDOM], &c.fields[fieldDOW]
	whole := uint32(1)<<(length+1) - 2
	byDate := dom.datesOf(uint32(masks[fieldDOM]), length, firstDay) & whole
	byWeekday := dow.weekdaysOf(uint32(masks[fieldDOW]), length, firstDay) & whole
	if dom.restricted() && dow.restricted() {
		return byDate | byWeekday
	}
	return byDate & byWeekday
}

// datesOf returns the days that match a dom field.
func (f *cronField) datesOf(mask uint32, length, firstDay int) uint32 {
	day := 0
	switch f.form {
	case formLast:
		day = length - f.n
	case formLastWork:
		day = nearestWorkday(length, length, firstDay)
	case formWeekday:
		if f.n <= length {
			day = nearestWorkday(f.n, length, firstDay)
		}
	default:
		return mask
	}
	if day < 1 {
		return 0
	}
	return 1 << day
}

// nearestWorkday returns the day from Monday to Friday that is nearest to the given one in
// the same month.
func nearestWorkday(day, length, firstDay int) int {
	switch (firstDay + day - 1) % 7 {
	case saturday:
		if day == 1 {
			return 3
		}
		return day - 1
	case sunday:
		if day == length {
			return day - 2
		}
		return day + 1
	}
	return day
}

// weekdaysOf returns the days that match a dow field.
func (f *cronField) weekdaysOf(mask uint32, length, firstDay int) uint32 {
	first := 1 + (f.n-firstDay+7)%7 // the first day of the month on weekday n
	switch f.form {
	case formLastDOW:
		return 1 << (first + (length-first)/7*7)
	case formNthDOW:
		return 1 << (first + (f.k-1)*7)
	default:
	}
	var days uint32
	for day := 1; day <= length; day++ {
		if mask&(1<<((firstDay+day-1)%7)) != 0 {
			days |= 1 << day
		}
	}
	return days
}

// hashedValue returns the value that H stands for in a field. It depends on the key alone,
// so that it stays the same over restarts and on all replicas. Days stop at 28, for every
// month to have them.
func hashedValue(kind fieldKind, key string) int {
	lo, hi := fieldSpecs[kind].min, fieldSpecs[kind].max
	switch kind {
	case fieldDOM:
		hi = 28
	case fieldDOW:
		hi = 6
	case fieldSecond, fieldMinute, fieldHour, fieldMonth, fieldYear:
	}
	return lo + int(hash64(fieldSpecs[kind].name, key)%uint64(hi-lo+1))
}

// hash64 spreads a text evenly: FNV-1a with a final mix, because its low bits alone hardly
// depend on the last characters, in which names of jobs differ.
func hash64(salt, text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(salt + "\x00" + text)) // never fails
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}
