package schedule

// cronText is an expression whose grammar has been checked, and that is not yet bound to
// a key or a zone.
type cronText struct {
	fields [6]cronField // second, minute, hour, dom, month, dow
	years  cronField
}

type fieldKind int

const (
	fieldSecond fieldKind = iota
	fieldMinute
	fieldHour
	fieldDOM
	fieldMonth
	fieldDOW
	fieldYear
)

// fieldSpec is the vocabulary of a field.
type fieldSpec struct {
	name     string
	min, max int
	names    []string // of the values min, min+1, …
}

var (
	monthNames   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

	fieldSpecs = [...]fieldSpec{
		fieldSecond: {name: "second", min: 0, max: 59},
		fieldMinute: {name: "minute", min: 0, max: 59},
		fieldHour:   {name: "hour", min: 0, max: 23},
		fieldDOM:    {name: "dom", min: 1, max: 31},
		fieldMonth:  {name: "month", min: 1, max: 12, names: monthNames},
		fieldDOW:    {name: "dow", min: 0, max: 7, names: weekdayNames},
		fieldYear:   {name: "year", min: minCronYear, max: maxCronYear},
	}
)

// The years that a year field may name.
const (
	minCronYear = 1970
	maxCronYear = 2099
)

// cronField is one field: a list of items, or one of the special forms.
type cronField struct {
	items []cronItem
	form  cronForm
	n, k  int // of the form
}

// cronItem is lo-hi/step; a value has lo = hi and step 0.
type cronItem struct {
	lo, hi, step int
	star         bool // written with *
	ranged       bool // written as a range
}

type cronForm int

const (
	formList     cronForm = iota
	formAny               // a literal * or ?, or no year field
	formHash              // H
	formLast              // dom L, L-n: n days before the last
	formWeekday           // dom nW: the weekday nearest to day n
	formLastWork          // dom LW
	formLastDOW           // dow nL
	formNthDOW            // dow n#k
)

// restricted reports whether the field is anything but a literal * or ?.
func (f *cronField) restricted() bool { return f.form != formAny }

// usesHash reports whether any field is H.
func (c *cronText) usesHash() bool {
	for i := range c.fields {
		if c.fields[i].form == formHash {
			return true
		}
	}
	return false
}

// followsClock reports whether the expression follows the clock rather than naming times:
// it has a *, a step or a range in its second, minute or hour field.
func (c *cronText) followsClock() bool {
	for i := fieldSecond; i <= fieldHour; i++ {
		if c.fields[i].followsClock() {
			return true
		}
	}
	return false
}

// followsClock reports whether the field was written with a *, a step or a range.
func (f *cronField) followsClock() bool {
	if f.form == formAny {
		return true
	}
	for _, it := range f.items {
		if it.star || it.ranged || it.step > 0 {
			return true
		}
	}
	return false
}
