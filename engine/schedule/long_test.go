//go:build long

package schedule_test

// long: whether to look at every clock change, not only at one of each kind.
const long = true
