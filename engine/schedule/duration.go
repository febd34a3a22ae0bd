package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// parseDuration reads 90s and 1h30m as Go writes them, hh:mm:ss and d.hh:mm:ss.
func parseDuration(what, text string) (time.Duration, error) {
	if strings.Contains(text, ":") {
		if d, ok := parseClock(text); ok {
			return d, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && isPlainDuration(text) {
		return d, nil
	}
	return 0, fmt.Errorf("%s %s is malformed, want 90s, 1h30m or 00:10:00", what, clip(text))
}

// isPlainDuration refuses signs and the units below a microsecond.
func isPlainDuration(text string) bool {
	return !strings.HasPrefix(text, "+") && !strings.HasPrefix(text, "-") && !strings.Contains(text, "ns")
}

// parseClock reads [d.]hh:mm:ss[.ffffff].
func parseClock(text string) (time.Duration, bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, false
	}
	days, hours, ok := strings.Cut(parts[0], ".")
	if !ok {
		days, hours = "0", parts[0]
	}
	seconds, fraction, _ := strings.Cut(parts[2], ".")
	if strings.HasSuffix(parts[2], ".") || len(fraction) > 6 || fraction != "" && !isDigits(fraction) {
		return 0, false
	}
	fraction += strings.Repeat("0", 6-len(fraction))
	if !isDigits(days) || len(days) > 4 || !twoDigits(hours, 23) || !twoDigits(parts[1], 59) || !twoDigits(seconds, 59) {
		return 0, false
	}
	total := ((digits(days)*24+digits(hours))*60+digits(parts[1]))*60 + digits(seconds)
	return time.Duration(total)*time.Second + time.Duration(digits(fraction))*time.Microsecond, true
}

func twoDigits(text string, most int64) bool {
	return len(text) == 2 && isDigits(text) && digits(text) <= most
}

// digits reads a short number that has been checked.
func digits(text string) (n int64) {
	for i := range len(text) {
		n = n*10 + int64(text[i]-'0')
	}
	return n
}

// formatClock writes [d.]hh:mm:ss[.ffffff].
func formatClock(d time.Duration) string {
	var b strings.Builder
	if d >= day {
		fmt.Fprintf(&b, "%d.", d/day)
	}
	fmt.Fprintf(&b, "%02d:%02d:%02d", d%day/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
	if micros := d % time.Second / time.Microsecond; micros > 0 {
		b.WriteString(strings.TrimRight(fmt.Sprintf(".%06d", micros), "0"))
	}
	return b.String()
}

// formatDays writes whole days in words, for people: a schedule's text form says 30.00:00:00.
func formatDays(d time.Duration) string {
	switch {
	case d == day:
		return "1 day"
	case d > day && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + " days"
	}
	return d.String()
}

// formatSeconds writes whole seconds as 90s, and fractions of one as 1.5s.
func formatSeconds(d time.Duration) string {
	text := strconv.FormatInt(int64(d/time.Second), 10)
	if micros := d % time.Second / time.Microsecond; micros > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%06d", micros), "0")
	}
	return text + "s"
}
