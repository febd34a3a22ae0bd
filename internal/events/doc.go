// Package events turns what somebody should look at into Kubernetes Events: leadership that changes
// or is lost, failed and lost runs, missed instants, refused definitions. Good runs make none.
//
// What happens again and again makes one Event whose count grows, at growing intervals. The rest
// is bounded too: of each reason a few jobs have an Event of their own, the others share one, and
// all together are written at a bounded rate, what matters most first. The metrics are the truth;
// Events are for whoever looks at the objects.
//
// Nothing waits for it: what is told is kept in a map of bounded size and written by a goroutine of
// its own, whatever the API server does. In steady state it sends nothing. Without the right to
// write Events it says so once and goes on without.
package events
