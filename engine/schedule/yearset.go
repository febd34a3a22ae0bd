package schedule

import "math/bits"

// yearSet returns the allowed years, or nil for all.
func (f *cronField) yearSet() *yearSet {
	if f.form == formAny {
		return nil
	}
	set := new(yearSet)
	for _, it := range f.items {
		for y := it.lo; y <= it.hi; y += max(it.step, 1) {
			set.add(y)
		}
	}
	return set
}

// yearSet is a set of years from minCronYear to maxCronYear.
type yearSet [3]uint64

func (s *yearSet) add(year int) {
	i := year - minCronYear
	s[i>>6] |= 1 << (i & 63)
}

// next returns the first year of the set that is not before year.
func (s *yearSet) next(year int) (int, bool) {
	i := max(year-minCronYear, 0)
	for w := i >> 6; w < len(s); w++ {
		word := s[w]
		if w == i>>6 {
			word &= ^uint64(0) << (i & 63)
		}
		if word != 0 {
			return minCronYear + w<<6 + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}

// prev returns the last year of the set that is not after year.
func (s *yearSet) prev(year int) (int, bool) {
	for i := min(year, maxCronYear) - minCronYear; i >= 0; i-- {
		if s[i>>6]&(1<<(i&63)) != 0 {
			return minCronYear + i, true
		}
	}
	return 0, false
}
