package schedule

import (
	"runtime"
	"sync"
	"weak"
)

// monthDays holds the matching days of a month as bits 1 to 31, by the month's length less
// 28 and the weekday of its first day: there are only 28 kinds of months.
type monthDays [4][7]uint32

// dayTables are the tables in use. Thousands of triggers have but a few of them: each day,
// each weekday, the first of the month.
var dayTables = struct {
	sync.Mutex
	known map[monthDays]weak.Pointer[monthDays]
}{known: make(map[monthDays]weak.Pointer[monthDays])}

// sharedDays returns the one table of this content. It must not be changed, and is forgotten
// with the last expression that uses it.
func sharedDays(days monthDays) *monthDays {
	dayTables.Lock()
	defer dayTables.Unlock()
	if shared := dayTables.known[days].Value(); shared != nil {
		return shared
	}
	shared := &days
	dayTables.known[days] = weak.Make(shared)
	runtime.AddCleanup(shared, forgetDays, days)
	return shared
}

func forgetDays(days monthDays) {
	dayTables.Lock()
	defer dayTables.Unlock()
	if dayTables.known[days].Value() == nil { // else it has come up anew in the meantime
		delete(dayTables.known, days)
	}
}
