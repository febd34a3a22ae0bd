// Package leases gives an app named leases for its own singleton work: whoever holds one may do
// what it stands for, with a time to live and a fencing token that only grows.
//
// All leases of an app are entries of one [Table], which a [Store] changes by compare-and-swap
// only. What becomes of a table is decided by pure functions of the table, the time and a [View],
// which is what one process has seen; a [Service] gathers, decides, swaps and answers. Nothing
// runs and nothing is asked of the store between requests.
//
// The rules:
//
//   - A lease is held by one holder at a time and is not re-entrant: whoever acquires it again
//     without its token is refused, whatever it calls itself.
//   - Expiry is judged by the observer's own monotonic clock, since it last saw the entry change, with
//     the entry's time to live. Stored times are for people. A process that has just started
//     therefore sees a whole time to live pass before it takes over.
//   - The holder's validity counts from before its request was sent, and ends when the monotonic or
//     the wall clock says so. It ends sooner than any observer's patience, and is not revived.
//   - A renewal changes no time to live, because an observer may have seen either, and needs the
//     pod that acquired the lease.
//   - A token is larger than every token before it, of any lease, and than the Unix time in
//     milliseconds, so that tokens also grow past a table that was lost or restored from a copy.
//   - A repeated request gives the answer of the first: an acquisition is known by its request, a
//     renewal and a release by the token.
//
// A lease is advice: a holder that was frozen does not know that its time is over. What has to be
// safe against that compares tokens.
package leases
