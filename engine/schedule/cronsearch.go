package schedule

import "math/bits"

// A cronTable answers which wall seconds match a cron expression. Wall seconds count from
// 1970-01-01T00:00:00 as if there were no zones; what a zone makes of them is decided in
// cronTimes. A search jumps from field to field by bit masks and never tries a second, a
// day or a month that cannot match.
type cronTable struct {
	second, minute uint64
	hour           uint32
	month          uint32   // bits 1 to 12
	years          *yearSet // nil: every year
	days           *monthDays

	first, last int32 // the first and last matching second of a day
}

func newCronTable(c *cronText, key string) (*cronTable, error) {
	masks, err := c.bitMasks(key)
	if err != nil {
		return nil, err
	}
	t := &cronTable{
		second: masks[fieldSecond],
		minute: masks[fieldMinute],
		hour:   uint32(masks[fieldHour]),
		month:  uint32(masks[fieldMonth]),
		years:  c.years.yearSet(),
	}
	var days monthDays
	for length := 28; length <= 31; length++ {
		for firstDay := range 7 {
			days[length-28][firstDay] = c.daysOf(masks, length, firstDay)
		}
	}
	t.days = sharedDays(days)
	t.first = int32(bits.TrailingZeros32(t.hour)*3600 + bits.TrailingZeros64(t.minute)*60 + bits.TrailingZeros64(t.second))
	t.last = int32((bits.Len32(t.hour)-1)*3600 + (bits.Len64(t.minute)-1)*60 + bits.Len64(t.second) - 1)
	return t, nil
}

// perDay returns how many seconds of a matching day match.
func (t *cronTable) perDay() int64 {
	return int64(bits.OnesCount32(t.hour) * bits.OnesCount64(t.minute) * bits.OnesCount64(t.second))
}

// monthStart returns the first day of a month and the bits of its matching days.
func (t *cronTable) monthStart(year, month int) (firstDay int64, days uint32) {
	firstDay = daysFromCivil(year, month, 1)
	if t.month&(1<<month) == 0 || !t.hasYear(year) {
		return firstDay, 0
	}
	return firstDay, t.days[daysInMonth(year, month)-28][weekday(firstDay)]
}

func (t *cronTable) hasYear(year int) bool {
	if t.years == nil {
		return true
	}
	y, ok := t.years.next(year)
	return ok && y == year
}

// hasDate reports whether any day of any year matches. The calendar repeats after 400
// years.
func (t *cronTable) hasDate() bool {
	first, last := MinYear, MinYear+399
	if t.years != nil {
		first, last = minCronYear, maxCronYear
	}
	for year := first; year <= last; year++ {
		for month := 1; month <= 12; month++ {
			if _, days := t.monthStart(year, month); days != 0 {
				return true
			}
		}
	}
	return false
}

// next returns the first matching wall second in [from, limit].
func (t *cronTable) next(from, limit int64) (int64, bool) {
	today := floorDiv(from, secondsPerDay)
	year, month, day := civilDate(today)
	firstDay, days := t.monthStart(year, month)
	if days&(1<<day) != 0 {
		if tod, ok := t.timeFrom(int(from - today*secondsPerDay)); ok {
			found := today*secondsPerDay + tod
			return found, found <= limit
		}
	}
	days &= ^uint32(0) << day << 1
	for days == 0 {
		later := t.month & (^uint32(0) << month << 1)
		if later == 0 {
			year++
			later = t.month
		}
		if t.years != nil {
			y, ok := t.years.next(year)
			if !ok {
				return 0, false
			}
			if y != year {
				year, later = y, t.month
			}
		}
		month = bits.TrailingZeros32(later)
		firstDay, days = t.monthStart(year, month)
		if firstDay*secondsPerDay > limit {
			return 0, false
		}
	}
	found := (firstDay+int64(bits.TrailingZeros32(days))-1)*secondsPerDay + int64(t.first)
	return found, found <= limit
}

// prev returns the last matching wall second in [limit, from].
func (t *cronTable) prev(from, limit int64) (int64, bool) {
	today := floorDiv(from, secondsPerDay)
	year, month, day := civilDate(today)
	firstDay, days := t.monthStart(year, month)
	if days&(1<<day) != 0 {
		if tod, ok := t.timeUpTo(int(from - today*secondsPerDay)); ok {
			found := today*secondsPerDay + tod
			return found, found >= limit
		}
	}
	days &= 1<<day - 1
	for days == 0 {
		if firstDay*secondsPerDay < limit {
			return 0, false
		}
		earlier := t.month & (1<<month - 1)
		if earlier == 0 {
			year--
			earlier = t.month
		}
		if t.years != nil {
			y, ok := t.years.prev(year)
			if !ok {
				return 0, false
			}
			if y != year {
				year, earlier = y, t.month
			}
		}
		month = bits.Len32(earlier) - 1
		firstDay, days = t.monthStart(year, month)
	}
	found := (firstDay+int64(bits.Len32(days))-2)*secondsPerDay + int64(t.last)
	return found, found >= limit
}

// nextOr and prevOr answer with none where there is no match.
func (t *cronTable) nextOr(from, limit, none int64) int64 {
	if found, ok := t.next(from, limit); ok {
		return found
	}
	return none
}

func (t *cronTable) prevOr(from, limit, none int64) int64 {
	if found, ok := t.prev(from, limit); ok {
		return found
	}
	return none
}

// matchesIn reports whether any wall second in [from, to) matches.
func (t *cronTable) matchesIn(from, to int64) bool {
	_, ok := t.next(from, to-1)
	return ok
}

// timeFrom returns the first matching second of the day that is not before tod.
func (t *cronTable) timeFrom(tod int) (int64, bool) {
	h, m, s := tod/3600, tod/60%60, tod%60
	if t.hour&(1<<h) != 0 {
		if t.minute&(1<<m) != 0 {
			if later := t.second >> s; later != 0 {
				return int64(tod + bits.TrailingZeros64(later)), true
			}
		}
		if later := t.minute >> (m + 1); later != 0 {
			m += 1 + bits.TrailingZeros64(later)
			return int64(h*3600 + m*60 + bits.TrailingZeros64(t.second)), true
		}
	}
	later := t.hour >> (h + 1)
	if later == 0 {
		return 0, false
	}
	h += 1 + bits.TrailingZeros32(later)
	return int64(h*3600) + int64(t.first%3600), true
}

// timeUpTo returns the last matching second of the day that is not after tod.
func (t *cronTable) timeUpTo(tod int) (int64, bool) {
	h, m, s := tod/3600, tod/60%60, tod%60
	if t.hour&(1<<h) != 0 {
		if t.minute&(1<<m) != 0 {
			if earlier := t.second & (2<<s - 1); earlier != 0 {
				return int64(h*3600 + m*60 + bits.Len64(earlier) - 1), true
			}
		}
		if earlier := t.minute & (1<<m - 1); earlier != 0 {
			return int64(h*3600 + (bits.Len64(earlier)-1)*60 + bits.Len64(t.second) - 1), true
		}
	}
	earlier := t.hour & (1<<h - 1)
	if earlier == 0 {
		return 0, false
	}
	return int64((bits.Len32(earlier)-1)*3600) + int64(t.last%3600), true
}

// count returns how many wall seconds in [from, to) match: whole days by the month, and the
// partial ones at both ends.
func (t *cronTable) count(from, to int64) int64 {
	if from >= to {
		return 0
	}
	firstDay, lastDay := floorDiv(from, secondsPerDay), floorDiv(to, secondsPerDay)
	return t.perDay()*t.matchingDays(firstDay, lastDay) +
		t.countInDay(lastDay, int(to-lastDay*secondsPerDay)) -
		t.countInDay(firstDay, int(from-firstDay*secondsPerDay))
}

// countInDay returns how many seconds of the day before tod match.
func (t *cronTable) countInDay(day int64, tod int) int64 {
	if t.matchingDays(day, day+1) == 0 {
		return 0
	}
	h, m, s := tod/3600, tod/60%60, tod%60
	perMinute := bits.OnesCount64(t.second)
	n := bits.OnesCount32(t.hour&(1<<h-1)) * bits.OnesCount64(t.minute) * perMinute
	if t.hour&(1<<h) != 0 {
		n += bits.OnesCount64(t.minute&(1<<m-1)) * perMinute
		if t.minute&(1<<m) != 0 {
			n += bits.OnesCount64(t.second & (1<<s - 1))
		}
	}
	return int64(n)
}

// matchingDays returns how many days in [from, to) match.
func (t *cronTable) matchingDays(from, to int64) int64 {
	if from >= to {
		return 0
	}
	n := 0
	year, month, day := civilDate(from)
	for {
		firstDay, days := t.monthStart(year, month)
		if firstDay >= to {
			return int64(n)
		}
		days &= ^uint32(0) << day
		if left := to - firstDay; left < 31 {
			days &= 1<<(left+1) - 1
		}
		n += bits.OnesCount32(days)
		day = 1
		if month++; month > 12 {
			month = 1
			year++
		}
	}
}
