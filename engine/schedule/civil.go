package schedule

const secondsPerDay = 24 * 60 * 60

// The proleptic Gregorian calendar repeats after 400 years, weekdays included.
const (
	daysPerCycle    = 146097
	secondsPerCycle = daysPerCycle * secondsPerDay
)

// epochWeekday is the weekday of 1970-01-01, a Thursday, with Sunday as 0.
const epochWeekday = 4

// civilDate returns the date of a day counted from 1970-01-01. Years are counted from
// March inside, so that the leap day comes last.
func civilDate(days int64) (year, month, day int) {
	days += 719468 // 0000-03-01
	era := floorDiv(days, daysPerCycle)
	doe := days - era*daysPerCycle
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	year = int(yoe + era*400)
	month = int(mp) + 3
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// daysFromCivil is the inverse of civilDate; day may lie outside the month.
func daysFromCivil(year, month, day int) int64 {
	y, m := int64(year), int64(month)
	if m <= 2 {
		y--
		m += 12
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*daysPerCycle + doe - 719468
}

// weekday returns the weekday of a day counted from 1970-01-01, Sunday as 0.
func weekday(days int64) int {
	return int(floorMod(days+epochWeekday, 7))
}

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysInMonth(year, month int) int {
	if month == 2 {
		if isLeap(year) {
			return 29
		}
		return 28
	}
	return 30 + (month+month>>3)&1
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 {
	r := a % b
	if r < 0 {
		r += b
	}
	return r
}
