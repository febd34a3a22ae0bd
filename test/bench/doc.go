// Package bench measures whole sidecars against the limits that are promised: how late callbacks
// are with a durable ledger, and what a thousand triggers of one second cost. make bench-lateness
// runs it at full length and prints the figures; among the other tests it runs briefly, and only
// what cannot depend on a busy machine counts.
package bench
