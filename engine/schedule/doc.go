// Package schedule parses schedules and computes their instants: cron expressions, fixed
// rates, fixed delays and single times, with time zones, calendars of excluded instants,
// and a rule for wall times that a clock change skips or repeats.
//
// A Schedule is a value with a text form. Compile binds it to what the text leaves open and
// gives a Timeline, which answers what comes next, what came before and how many instants
// an interval has. Equal inputs give equal answers on every machine: the package does no
// I/O, never looks at the clock, and takes the rules of time zones from a snapshot of its
// own. The search is bounded: no text and no instant makes it loop, and the next instant is
// always strictly later.
package schedule
