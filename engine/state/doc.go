// Package state holds the three documents that all replicas of an app share: the ledger (hot:
// what is decided and in flight), the catalog (definitions and their versions) and the history
// (runs that ended). They are plain values; how they are stored is package ledger's matter, and
// what is done with them package plan's.
//
// Times are UTC, with microseconds at most.
package state
