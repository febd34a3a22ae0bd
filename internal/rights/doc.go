// Package rights finds out, at the start and whenever the API server refuses something, whether this
// sidecar may do what the features that are switched on will ask of it, and says what is missing
// before it is missed: one line for each right, with the command that shows it and the one that grants it.
//
// It needs no right of its own beyond what every authenticated account has (system:basic-user). Where
// even that was taken away it goes by what the API server refuses. Nothing waits for it, and once
// everything is granted it sends nothing.
package rights
