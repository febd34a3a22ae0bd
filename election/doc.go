// Package election decides which sidecar of an app leads, and ends a term in an order that keeps
// two of them from acting at once.
//
// An Elector campaigns for ever and calls lead for each term that it wins, with the Lease of that
// term in hand. The Lease is what counts: its Check is cheap and is to be the last step before
// anything that only a leader may do. Once it has failed it never succeeds again: a lost term is
// over, even if the API server answers a millisecond later.
//
// A term ends in this order, whatever ended it: the Lease becomes invalid, which ends lead's context
// and is what Status shows; lead hands back what it will not do any more and returns; the election
// record is released; and the elector campaigns again. A lead that hangs delays neither the loss nor
// the release, only this sidecar's next term.
//
// Kubernetes and Standalone are the electors of this package. Another one, on another store, makes a
// Keeper for each term and shows by package electiontest that it keeps these rules; that package also
// says what to mind.
//
// Safety does not rest here. An expired lease or a skewed clock can let two sidecars believe that
// they lead, for a while; the fencing term in the ledger is what keeps them from doing a thing twice.
package election
