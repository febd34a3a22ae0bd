package schedule

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
)

// robfigParser reads the six fields without descriptors. Its own reading of zone prefixes,
// names and question marks never comes into play: it is given numbers only.
var robfigParser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// bitMasks returns the bits of the six fields. The forms that robfig/cron does not know
// are given to it as *, and are applied by the caller.
func (c *cronText) bitMasks(key string) (masks [6]uint64, err error) {
	var text strings.Builder
	for i := range c.fields {
		c.fields[i].writeStandard(&text, fieldKind(i), key)
		text.WriteByte(' ')
	}
	parsed, err := robfigParser.Parse(text.String())
	if err != nil {
		return masks, fmt.Errorf("cron expression: %w", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return masks, fmt.Errorf("cron expression: unexpected %T", parsed)
	}
	masks = [6]uint64{spec.Second, spec.Minute, spec.Hour, spec.Dom, spec.Month, spec.Dow}
	for i := range masks {
		masks[i] &^= 1 << 63 // robfig's mark for *
	}
	return masks, nil
}

// writeStandard writes the field in the numbers and ranges that every cron agrees on.
func (f *cronField) writeStandard(text *strings.Builder, kind fieldKind, key string) {
	switch f.form {
	case formHash:
		fmt.Fprint(text, hashedValue(kind, key))
	case formList:
		for i, it := range f.items {
			if i > 0 {
				text.WriteByte(',')
			}
			if kind == fieldDOW && it.hi == 7 {
				writeSundays(text, it)
				continue
			}
			fmt.Fprintf(text, "%d-%d/%d", it.lo, it.hi, max(it.step, 1))
		}
	default:
		text.WriteByte('*')
	}
}

// writeSundays lists the weekdays of an item that reaches 7, with Sunday as 0.
func writeSundays(text *strings.Builder, it cronItem) {
	for v := it.lo; v <= 7; v += max(it.step, 1) {
		if v > it.lo {
			text.WriteByte(',')
		}
		fmt.Fprint(text, v%7)
	}
}
