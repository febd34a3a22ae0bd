// Package run holds the words that every other package speaks: keys, causes, states, reasons,
// codes, identifiers, and the record of one run.
//
// A job has triggers; a trigger has instants; an instant is decided once, as part of an
// occurrence; an occurrence that fires is worked off by one or more runs, each of them one
// attempt. The package imports nothing of this project, has no clock and does no I/O.
package run
