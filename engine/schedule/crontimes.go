package schedule

import "errors"

// cronTimes is a cron expression in a zone: it turns matching wall times into instants.
type cronTimes struct {
	text  string
	table cronTable
	zone  *zone
	// both: a wall time that is repeated counts each time, not only the first.
	both bool
	// atGapEnd: wall times that are skipped count once, at the end of the gap.
	atGapEnd bool
}

// ErrKeyNeeded says that a schedule with H was compiled without the key of its trigger.
var ErrKeyNeeded = errors.New("the value of H depends on the trigger: its key job/trigger is needed")

func newCronTimes(s Schedule, key string, z *zone) (*cronTimes, error) {
	text, err := parseCron(s.Cron)
	if err != nil {
		return nil, err
	}
	if key == "" && text.usesHash() {
		return nil, ErrKeyNeeded
	}
	table, err := newCronTable(text, key)
	if err != nil {
		return nil, err
	}
	return &cronTimes{
		text:     s.Cron,
		table:    *table,
		zone:     z,
		both:     s.Ambiguous == AmbiguousBoth || s.Ambiguous != AmbiguousFirst && text.followsClock(),
		atGapEnd: s.Gap == GapNext,
	}, nil
}

// wallMargin is more than any two offsets of a zone differ.
const wallMargin = 2 * secondsPerDay

// next returns the first instant at or after from whose wall time is at most limit.
func (c *cronTimes) next(from, limit int64) (int64, bool) {
	s := c.zone.at(from)
	// No wall time in [checked, found) matches.
	var checked, found int64
	for known := false; ; {
		start := max(from, s.start) + s.offset
		if start > limit {
			return 0, false
		}
		if c.atGapEnd && s.gap > 0 && from <= s.start && c.table.matchesIn(start-s.gap, start) {
			return s.start, true
		}
		if !s.repeated || c.both {
			if !known || start < checked || start > found {
				found = c.table.nextOr(start, limit, limit+1)
				checked, known = start, true
			}
			if utc := found - s.offset; utc < s.end {
				return utc, found <= limit
			}
		}
		if s.end >= maxInstant {
			return 0, false
		}
		s = c.zone.at(s.end)
		if known && s.start+s.offset > checked+wallMargin && found-wallMargin > s.end {
			s = c.zone.at(found - wallMargin) // the spans between show no matching time
		}
		from = s.start
	}
}

// prev returns the last instant at or before from whose wall time is at least limit.
func (c *cronTimes) prev(from, limit int64) (int64, bool) {
	s := c.zone.at(from)
	// No wall time in (found, checked] matches.
	var checked, found int64
	for known := false; ; {
		last := min(from, s.end-1) + s.offset
		if last < limit {
			return 0, false
		}
		if !s.repeated || c.both {
			if !known || last > checked || last < found {
				found = c.table.prevOr(last, limit, limit-1)
				checked, known = last, true
			}
			if utc := found - s.offset; utc >= s.start {
				return utc, found >= limit
			}
		}
		if c.atGapEnd && s.gap > 0 && c.table.matchesIn(s.start+s.offset-s.gap, s.start+s.offset) {
			return s.start, true
		}
		if s.start <= minInstant {
			return 0, false
		}
		from = s.start - 1
		s = c.zone.at(from)
		if known && from+s.offset < checked-wallMargin && found+wallMargin < s.start {
			from = found + wallMargin
			s = c.zone.at(from)
			from = s.end - 1
		}
	}
}

// count returns how many instants lie in [from, to).
func (c *cronTimes) count(from, to int64) int64 {
	var n int64
	for from < to {
		s := c.zone.at(from)
		if !s.repeated || c.both {
			n += c.table.count(from+s.offset, min(to, s.end)+s.offset)
		}
		if start := s.start + s.offset; c.atGapEnd && s.gap > 0 && from == s.start &&
			c.table.matchesIn(start-s.gap, start) && !c.table.matchesIn(start, start+1) {
			n++
		}
		from = s.end
	}
	return n
}

// searchYears is how far ahead, or back, an instant is looked for.
const searchYears = 5

// limit returns the wall time that lies the given number of years from an instant.
func (c *cronTimes) limit(utc int64, years int) int64 {
	wall := utc + c.zone.at(utc).offset
	days := floorDiv(wall, secondsPerDay)
	year, month, day := civilDate(days)
	year += years
	day = min(day, daysInMonth(year, month))
	return wall + (daysFromCivil(year, month, day)-days)*secondsPerDay
}
