package schedule

import (
	"math"
	"slices"
	"time"
)

// A zone is a list of spans of constant offset, made once from the zone's rules, so that a
// search converts between wall time and UTC by an addition. Times are seconds: UTC ones
// since the Unix epoch, wall times as if their zone were UTC.
type zone struct {
	location *time.Location
	spans    []zoneSpan
	// index[k] is the span that holds indexBase + k<<indexShift, where a look-up starts.
	index []int32
}

// zoneSpan begins at start and lasts until the next one begins.
type zoneSpan struct {
	start  int64
	offset int32
	// gap is how many wall seconds right before the span never were; repeatedSpan marks
	// a span whose wall times have all been shown before.
	gap int32
}

const repeatedSpan = -1

// span is a zoneSpan with its end, shifted to the cycle that was asked for.
type span struct {
	start, end int64
	offset     int64
	gap        int64
	repeated   bool
}

// Rules that have no end repeat every 400 years. The table runs to the end of one such
// cycle; later instants are looked up in it.
const (
	cycleStart = 4133980800 // 2101-01-01, after the last change that is listed one by one
	cycleEnd   = cycleStart + secondsPerCycle
	tableEnd   = cycleEnd + 2*366*secondsPerDay

	indexBase  = -5364662400 // 1800-01-01
	indexShift = 25          // about a year
)

var utcZone = newZone(time.UTC)

func newZone(location *time.Location) *zone {
	z := &zone{location: location}
	at := time.Unix(math.MinInt32*4, 0).In(location)
	_, offset := at.Zone()
	z.spans = append(z.spans, zoneSpan{start: math.MinInt64, offset: int32(offset)})
	shown := int64(math.MinInt64) // no wall time at or after it has been shown
	for {
		_, change := at.ZoneBounds()
		if change.IsZero() || change.Unix() >= tableEnd {
			break
		}
		if !change.After(at) {
			// In a leap year ZoneBounds ends a span that reaches over the new year a day early.
			change = at.Add(day)
		}
		at = change
		_, next := at.Zone()
		if next == offset {
			continue // only a name or the daylight flag has changed
		}
		start := at.Unix()
		shown = max(shown, start+int64(offset))
		z.add(start, int64(next), shown)
		offset = next
	}
	z.spans = slices.Clip(z.spans)
	z.buildIndex()
	return z
}

// add appends the span that begins at start, when the wall times up to shown have been
// shown. The part of it that repeats them becomes a span of its own.
func (z *zone) add(start, offset, shown int64) {
	for n := len(z.spans); z.spans[n-1].start >= start; n-- {
		z.spans = z.spans[:n-1] // a repeat that another change cuts short
	}
	wall := start + offset
	switch {
	case wall < shown:
		z.spans = append(z.spans,
			zoneSpan{start: start, offset: int32(offset), gap: repeatedSpan},
			zoneSpan{start: shown - offset, offset: int32(offset)})
	default:
		z.spans = append(z.spans, zoneSpan{start: start, offset: int32(offset), gap: int32(wall - shown)})
	}
}

func (z *zone) buildIndex() {
	last := z.spans[len(z.spans)-1].start
	i := 0
	for at := int64(indexBase); at <= last; at += 1 << indexShift {
		for i+1 < len(z.spans) && z.spans[i+1].start <= at {
			i++
		}
		z.index = append(z.index, int32(i))
	}
}

// at returns the span that holds the UTC second.
func (z *zone) at(utc int64) span {
	var shift int64
	if utc >= cycleEnd {
		shift = (utc - cycleStart) / secondsPerCycle * secondsPerCycle
		utc -= shift
	}
	i := 0
	if k := (utc - indexBase) >> indexShift; k >= 0 && len(z.index) > 0 {
		i = int(z.index[min(k, int64(len(z.index)-1))])
	}
	for i+1 < len(z.spans) && z.spans[i+1].start <= utc {
		i++
	}
	entry := z.spans[i]
	s := span{start: entry.start, end: math.MaxInt64, offset: int64(entry.offset)}
	if entry.gap == repeatedSpan {
		s.repeated = true
	} else {
		s.gap = int64(entry.gap)
	}
	if i+1 < len(z.spans) {
		s.end = z.spans[i+1].start + shift
		if i > 0 {
			s.start += shift
		}
	}
	return s
}

// utc returns the instant at which the zone's clock first shows a wall time, or is first
// beyond it if it never shows it.
func (z *zone) utc(wall int64) int64 {
	for s := z.at(wall - wallMargin); ; s = z.at(s.end) {
		if !s.repeated && (s.end == math.MaxInt64 || wall < s.end+s.offset) {
			return max(wall-s.offset, s.start)
		}
	}
}
