// Package electionbench measures the election of whole sidecars against the limits that are
// promised, with client-go's tools/leaderelection beside it on the same API server: how long a
// hand-over and a crash leave nobody in charge, what standing by costs, and when a leader that is
// cut off stops. `make bench-election` runs it with everyone's default settings and prints one
// table; among the other tests it runs briefly, and only what cannot depend on a busy machine
// counts.
//
// client-go's elector is imported by these tests alone: it needs the typed clients.
package electionbench
