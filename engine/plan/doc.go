// Package plan decides. It is given the definitions, the ledger's state, a time and limits, and
// answers with the changed state, what was decided and when to look again.
//
// It has no clock, starts nothing and does no I/O: the same input gives the same answer, so that
// every rule of scheduling can be tested by a table, by a property or by simulation. Each rule has
// a file: which instants are undecided (track.go), late (misfire.go), due while the job runs
// (overlap.go), what gets a slot (slots.go), what follows an outcome (settle.go, retry.go) and the
// death of a node (lost.go).
package plan
