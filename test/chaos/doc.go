// Package chaos breaks whole sidecars on purpose and proves from outside what docs/guarantees.md
// promises: every instant is decided exactly once, no attempt starts twice or before its time, and
// nothing is lost without a record.
//
// A run has real parts only: etcd and kube-apiserver, a fault proxy for each sidecar in front of
// them, sidecar processes, and an app beside each. Faults follow a schedule that a seed makes
// (plot.go). Meanwhile a witness (witness.go) watches every version of the ledger as the
// administrator, past the proxies, and the apps record each callback. When the faults have ended
// and all is settled, account (account.go), a pure function, compares the three: the instants that
// the definitions name, what the ledger and the history say of them, and what arrived. It asks not
// only whether each instant was decided once, but whether the decision holds: skipped and coalesced
// with a reason that is true (decisions.go), attempts no more and no fewer than were called for
// (attempts.go), and enough of all that fired and reached the app, everything of it in a quiet
// stretch at the end (share.go). Of the faults those count that hit something.
//
//	make chaos TIME=10m SEED=7
package chaos
