package schedule

// Excluded instants are passed over, a span of them in one step. The number of steps is
// bounded, so that no combination of schedule and calendar makes a search endless.
const (
	maxSteps      = 10_000    // of Next
	maxStepsBack  = 100_000   // of Prev, which looks at a stretch of time more than once
	maxCountSteps = 1_000_000 // of Count
)

func (t *Timeline) next(after int64) (int64, bool) {
	switch t.kind {
	case KindManual:
	case KindEvery:
		return t.allowed(after + t.interval)
	case KindOnce:
		if after < t.base {
			return t.within(t.base)
		}
	case KindRate, KindCron:
		return t.search(max(after+1, t.options.start))
	}
	return 0, false
}

// within returns a single instant if it lies in range and is not excluded.
func (t *Timeline) within(at int64) (int64, bool) {
	if at < t.options.start || at >= t.options.end {
		return 0, false
	}
	if t.options.calendar != nil {
		if excluded, _ := t.options.calendar.at(floorDiv(at, micros)); excluded {
			return 0, false
		}
	}
	return at, true
}

// allowed returns the first moment at or after the given one that is not excluded.
func (t *Timeline) allowed(at int64) (int64, bool) {
	at = max(at, t.options.start)
	if t.options.calendar == nil {
		return at, at < t.options.end
	}
	until, steps := t.excludedUntil(at, maxSteps)
	return until, until < t.options.end && steps > 0
}

// search returns the first instant at or after from.
func (t *Timeline) search(from int64) (int64, bool) {
	if from >= t.options.end {
		return 0, false
	}
	var limit int64
	if t.cron != nil {
		// The instant searched from is the last one that does not count.
		limit = t.cron.limit(floorDiv(from-1, micros), searchYears)
	}
	for steps := maxSteps; steps > 0; steps-- {
		at, ok := t.candidate(from, limit)
		if !ok || at >= t.options.end {
			return 0, false
		}
		if t.options.calendar == nil {
			return at, true
		}
		if from, steps = t.excludedUntil(at, steps); from == at {
			return at, true
		}
	}
	return 0, false
}

// candidate returns the first instant at or after from, excluded or not.
func (t *Timeline) candidate(from, limit int64) (int64, bool) {
	if t.cron != nil {
		seconds, ok := t.cron.next(-floorDiv(-from, micros), limit)
		return seconds * micros, ok
	}
	if from <= t.base {
		return t.base, true
	}
	return t.base - floorDiv(t.base-from, t.interval)*t.interval, true
}

// excludedUntil returns the end of the excluded span that holds the instant, or the instant
// itself if it is not excluded, and what is left of the steps. If they are used up, the end
// may lie within the span.
func (t *Timeline) excludedUntil(at int64, steps int) (until int64, left int) {
	end := floorDiv(at, micros)
	for ; steps > 0 && end < maxInstant; steps-- {
		excluded, next := t.options.calendar.at(end)
		if !excluded {
			break
		}
		end = next
	}
	return max(at, min(end, maxInstant)*micros), steps
}

func (t *Timeline) prev(before int64) (int64, bool) {
	before = min(before, t.options.end)
	switch t.kind {
	case KindManual, KindEvery:
		return 0, false
	case KindOnce:
		if t.base >= before {
			return 0, false
		}
		return t.within(t.base)
	case KindRate, KindCron:
	}
	var limit int64
	if t.cron != nil {
		limit = t.cron.limit(-floorDiv(-before, micros), -searchYears)
	}
	for steps := maxStepsBack; steps > 0; steps-- {
		at, ok := t.candidateBefore(before, limit)
		if !ok || at < t.options.start {
			return 0, false
		}
		if t.options.calendar == nil {
			return at, true
		}
		seconds := floorDiv(at, micros)
		if excluded, _ := t.options.calendar.at(seconds); !excluded {
			return at, true
		}
		var allowed int64
		if allowed, steps = lastAllowed(t.options.calendar, seconds, steps); steps > 0 {
			before = allowed * micros
		}
	}
	return 0, false
}

// lastAllowed returns the end of the last span before an excluded second that is not
// excluded, and what is left of the steps: none if nothing was found. Calendars look ahead
// only, so that it begins ever further back.
func lastAllowed(c calendar, utc int64, steps int) (end int64, left int) {
	const first, furthest = 64, 2 * searchYears * 366 * secondsPerDay
	for width := int64(first); width < furthest; width *= 4 {
		found := false
		for at := utc - width; at < utc; steps-- {
			if steps == 0 {
				return 0, 0
			}
			excluded, until := c.at(at)
			if !excluded {
				end, found = min(until, utc), true
			}
			at = until
		}
		if found {
			return end, steps
		}
	}
	return 0, 0
}

func (t *Timeline) candidateBefore(before, limit int64) (int64, bool) {
	if t.cron != nil {
		seconds, ok := t.cron.prev(floorDiv(before-1, micros), limit)
		return seconds * micros, ok
	}
	if before <= t.base {
		return 0, false
	}
	return t.base + (before-1-t.base)/t.interval*t.interval, true
}

func (t *Timeline) count(from, to int64) int64 {
	from, to = max(from, t.options.start), min(to, t.options.end)
	if from >= to {
		return 0
	}
	if t.options.calendar == nil {
		return t.countAll(from, to)
	}
	var n int64
	for steps := maxCountSteps; from < to; steps-- {
		if steps == 0 {
			return n + t.countAll(from, to)
		}
		excluded, until := t.options.calendar.at(floorDiv(from, micros))
		end := min(until, maxInstant) * micros
		if !excluded {
			n += t.countAll(from, min(end, to))
		}
		from = end
	}
	return n
}

// countAll counts the instants in [from, to), excluded or not.
func (t *Timeline) countAll(from, to int64) int64 {
	switch t.kind {
	case KindCron:
		return t.cron.count(-floorDiv(-from, micros), -floorDiv(-to, micros))
	case KindRate:
		from = max(from, t.base)
		if from >= to {
			return 0
		}
		return floorDiv(to-1-t.base, t.interval) - floorDiv(from-1-t.base, t.interval)
	case KindOnce:
		if from <= t.base && t.base < to {
			return 1
		}
	case KindManual, KindEvery:
	}
	return 0
}
